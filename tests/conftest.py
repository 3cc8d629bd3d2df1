"""Real corpora: tests that need them look in $SSLBENCH_DATA, else in ../shared/data, else skip."""

from __future__ import annotations

import os
from pathlib import Path

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"

if "SSLBENCH_DATA" not in os.environ and BESIDE.is_dir():
    os.environ["SSLBENCH_DATA"] = str(BESIDE)
