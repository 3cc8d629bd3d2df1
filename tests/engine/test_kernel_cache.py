"""What machine code in files needs of numba, and that numba is left as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

INTERFACE = """
import sys
import numpy as np
import numba
from numba.core import caching, compiler
numba.njit(lambda: None)()  # numba has imported all of itself
before = {(kind, name): value for kind in KINDS for name, value in vars(kind).items()}
BREAK
from sslbench.engine.features.kernels import unresolved as kernel
print(kernel(np.array([1, 0], "i4"), np.full(2, -2, "i4")).tolist(), len(kernel.stats.cache_hits))
"""
MISSING = {
    "no base class": "del caching.NullCache",
    "no inverse": "del compiler.CompileResult._rebuild",
    "another reduction": "compiler.CompileResult._reduce = lambda self, level: ()",
}
KINDS = """
def kinds():
    for module in [module for name, module in sys.modules.items() if name.startswith("numba.")]:
        yield module
        for value in vars(module).values():
            if isinstance(value, type) and value.__module__.startswith("numba."):
                yield value
"""
CHANGED = """
changed = {f"{kind.__name__}.{name}" for (kind, name), value in before.items()
           if callable(value) and vars(kind).get(name) is not value}
print(len(before) > 5000, sorted(changed))
"""


@pytest.mark.parametrize("change", MISSING.values(), ids=MISSING)
def test_another_version_of_numba(tmp_path: Path, change: str) -> None:
    """Where it has not what the files of machine code need, kernels are compiled each time."""
    code = INTERFACE.replace("KINDS", "()").replace("BREAK", change)
    for _ in range(2):
        done = python(code, tmp_path)
        assert done.stdout == "[1, 0] 0\n", done.stderr
        (line,) = [line for line in done.stderr.splitlines() if "compiling, once" not in line]
        assert line.startswith(f"sslbench: numba {numba.__version__}: machine code cannot be kept")


def test_numba_is_left_as_it_is(tmp_path: Path) -> None:
    """No function of it is replaced: code of the user's own compiles as without this package."""
    code = "import sys\n" + KINDS + INTERFACE.replace("KINDS", "kinds()").replace("BREAK", "")
    code += CHANGED
    assert python(code, tmp_path).stdout == "[1, 0] 0\nTrue []\n"


def python(code: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a process that has said nothing yet."""
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "SSLBENCH_TOLD": ""}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
