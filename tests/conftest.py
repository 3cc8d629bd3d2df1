"""Folders of the tests: real corpora, and the machine code of kernels.

Tests that need real corpora look in $SSLBENCH_DATA, else in ../shared/data, else skip.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from sslbench.engine.files.folders import cache_folder

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"

if "SSLBENCH_DATA" not in os.environ and BESIDE.is_dir():
    os.environ["SSLBENCH_DATA"] = str(BESIDE)
# Where it is without this, also for tests that give derived data another folder.
os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))

# An example may compile a kernel, and the machine may be busy: no test fails for its time.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder for derived data, so that no graph of another test is found."""
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def fake_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The plugin of `support.run_fakes`, installed for the test and for its child processes."""
    from sslbench.plugins import registry
    from support.run_fakes import install

    install(tmp_path, monkeypatch)
    yield
    registry.cache_clear()
