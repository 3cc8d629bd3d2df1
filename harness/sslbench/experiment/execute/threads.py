"""The number of threads of a process: libraries read it from variables when they are imported.

Imports nothing heavy, so that it can be used before they are.
"""

from __future__ import annotations

import os
import sys

from sslbench.engine.compilation.threads import set_number_of_threads

# BLAS gets one thread, since its threads change the order of sums. The kernels of numba sum in a
# fixed order.
_BLAS_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def thread_variables(threads: int) -> dict[str, str]:
    """Environment variables of a process whose kernels may use this many threads."""
    return {"NUMBA_NUM_THREADS": str(threads), **dict.fromkeys(_BLAS_VARIABLES, "1")}


def use_threads(threads: int | None) -> int:
    """Set the number of threads of this process and return it; None = all cores.

    Variables have no effect on libraries that are already imported.
    """
    threads = threads or os.cpu_count() or 1
    if "numba" not in sys.modules:
        os.environ.update(thread_variables(threads))
    set_number_of_threads(threads)
    return threads
