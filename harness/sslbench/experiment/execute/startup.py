"""How the processes of runs begin: the number of threads, and what they find imported.

Imports nothing heavy itself: libraries read the number of threads when they are imported.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable
from importlib import import_module

from sslbench.engine.compilation.threads import set_number_of_threads
from sslbench.engine.variables import processors
from sslbench.plugins import Registry
from sslbench.plugins.registered import built_in_plugins
from sslbench.processes.fork_server import ForkServer, import_modules, may_fork

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
    threads = threads or processors()
    if "numba" not in sys.modules:
        os.environ.update(thread_variables(threads))
    set_number_of_threads(threads)
    return threads


def early_server(threads: int, names: Iterable[tuple[str, str]]) -> ForkServer | None:
    """Return a server forked from a command that has just begun, with what that imports anyway.

    None if this process may have more than a fork should have, see `may_fork`.

    threads: per run.  names: (kind, name) of plugins of sslbench's distribution to import.
    """
    if not may_fork():
        return None
    use_threads(threads)
    import_engine()
    import_modules(modules_of(built_in_plugins(), names))
    return ForkServer(import_engine, fork=True)


def import_engine() -> None:
    """Import what every run needs. It is imported late: numpy reads the environment.

    The garbage collector would walk through the modules again and again, and write to pages that
    are shared with the runs.
    """
    gc.disable()
    import_module("sslbench.experiment.run.runner")
    import_module("sslbench.engine.compilation.compiled").prepare()
    gc.freeze()
    gc.enable()


def modules_of(plugins: Registry, names: Iterable[tuple[str, str]]) -> list[str]:
    """Return the modules of these (kind, name) that sslbench's own distribution registers."""
    return [target.partition(":")[0] for target in plugins.built_in_targets(names)]
