"""The engine: corpora, features, chain CRFs and graphs, and the kernels they are made of.

It imports nothing of the bench, and knows no method, dataset or paper. Everything that its rooms
export is a name here, imported on first use (PEP 562): `sslbench.engine.errors` pulls in neither
numpy nor numba. `README.md` beside this file has an example and the floors inside.
"""

# ruff: noqa: F403 - each room lists its names

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sslbench.engine.corpus import *
    from sslbench.engine.crf import *
    from sslbench.engine.errors import *
    from sslbench.engine.features import *
    from sslbench.engine.graph import *
    from sslbench.engine.spread import *
    from sslbench.engine.types import *
    from sslbench.engine.version import *

#: lowest floor first; numpy comes in with the third, numba with `features`
ROOMS = ("version", "errors", "types", "spread", "corpus", "features", "crf", "graph")


def __getattr__(name: str) -> object:
    """Import the rooms up to the one that exports ``name``."""
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is None:
        for room in ROOMS:
            module = import_module(f"{__name__}.{room}")
            if name in module.__all__:
                value: object = getattr(module, name)
                globals()[name] = value
                return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    exported = (import_module(f"{__name__}.{room}").__all__ for room in ROOMS)
    return sorted({*globals(), *(name for names in exported for name in names)})
