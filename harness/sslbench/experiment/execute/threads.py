"""Numbers of threads, which the libraries read from variables when they are imported.

Imports nothing heavy, so that it can be used before they are.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

# BLAS threads would change the order of sums; numba's kernels reduce in a fixed order and may.
_BLAS_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def thread_variables(threads: int) -> dict[str, str]:
    """Environment variables for a process whose kernels may use this many threads."""
    return {"NUMBA_NUM_THREADS": str(threads), **dict.fromkeys(_BLAS_VARIABLES, "1")}


def use_threads(threads: int) -> None:
    """Set the number of threads of this process, as far as its libraries are not loaded yet."""
    if "numba" in sys.modules:
        import numba

        with suppress(ValueError):  # more than it was started with
            numba.set_num_threads(threads)
    else:
        os.environ.update(thread_variables(threads))
