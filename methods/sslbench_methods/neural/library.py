"""JAX, loaded when a neural model is first used."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from sslbench.engine.files.folders import cache_folder
from sslbench_methods.neural.tokenizer import needed_library

#: one thread: sums have the same bits on any number of processors
_FLAGS = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


@cache
def jax_library() -> Any:
    """Return the module; UserError if it is not installed.

    Unless the user's environment says otherwise, it computes on the CPU, in one thread, and keeps
    compiled code in the cache folder.
    """
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("XLA_FLAGS", _FLAGS)
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_folder() / "xla"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    return needed_library("jax", "neural")
