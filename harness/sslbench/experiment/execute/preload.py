"""What the processes of runs find imported. Imports nothing heavy itself."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from importlib import import_module

from sslbench.experiment.execute.threads import use_threads
from sslbench.plugins import Registry
from sslbench.plugins.registered import built_in_plugins
from sslbench.processes.fork_server import ForkServer, import_modules, may_fork


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
