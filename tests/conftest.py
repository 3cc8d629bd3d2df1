"""Folders of the tests: real corpora, and the machine code of kernels.

Tests that need real corpora look in $SSLBENCH_DATA, else in ../shared/data, else skip.
"""

from __future__ import annotations

import os
from pathlib import Path

from sslbench.folders import cache_folder

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"

if "SSLBENCH_DATA" not in os.environ and BESIDE.is_dir():
    os.environ["SSLBENCH_DATA"] = str(BESIDE)
# Where it is without this, also for tests that give derived data another folder.
os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))
