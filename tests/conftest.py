"""Folders of the tests: real corpora, and the machine code of kernels.

Real corpora are looked for in $SSLBENCH_DATA, else in ../shared/data. Only tests with the marker
``corpus`` see them, and skip without them. For all others the data home is empty, and nothing is
downloaded: they give the same result on every machine.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from sslbench.engine.files.folders import cache_folder

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
EMPTY = os.path.join(tempfile.gettempdir(), "sslbench-tests-no-corpora")  # is not made
_GIVEN = os.environ.get("SSLBENCH_DATA") or (str(BESIDE) if BESIDE.is_dir() else EMPTY)
# The workers of pytest-xdist inherit the variable that is set below: they read this one.
CORPORA = os.environ.setdefault("SSLBENCH_TEST_CORPORA", _GIVEN)

os.environ["SSLBENCH_DATA"] = EMPTY
os.environ.setdefault("SSLBENCH_OFFLINE", "1")
# Where it is without this, also for tests that give derived data another folder.
os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))

# An example may compile a kernel, and the machine may be busy: no test fails for its time.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first, so that with several workers none of them is alone at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before all fixtures."""
    reads = item.get_closest_marker("corpus") or "benchmarks" in item.path.parts
    os.environ["SSLBENCH_DATA"] = CORPORA if reads else EMPTY


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
