"""Files of real corpora, for tests that skip without them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from sslbench import DataHome, RemoteFile


def real_home(files: Iterable[RemoteFile]) -> DataHome:
    """Return the data home; skip the test unless all these files are in it."""
    home = DataHome(offline=True)
    for file in files:
        if home.state(file) != "ok":
            pytest.skip(f"no {file.path} in the data home {home.root}")
        assert home.locate(file).stat().st_size == file.bytes
    return home
