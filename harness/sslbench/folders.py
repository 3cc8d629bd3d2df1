"""The user's folders: where corpora lie and where derived files are kept.

Imports nothing heavy.
"""

from __future__ import annotations

import os
from pathlib import Path

HOME_VARIABLE = "SSLBENCH_DATA"
CACHE_VARIABLE = "SSLBENCH_CACHE"


def data_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of upstream files: `given`, ``$SSLBENCH_DATA`` or the user cache folder."""
    return _folder(given, HOME_VARIABLE, "")


def cache_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of derived files: `given`, ``$SSLBENCH_CACHE`` or the user cache's."""
    return _folder(given, CACHE_VARIABLE, "derived")


def _folder(given: str | os.PathLike[str] | None, variable: str, below: str) -> Path:
    chosen = given or os.environ.get(variable)
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("sslbench", appauthor=False) / below
