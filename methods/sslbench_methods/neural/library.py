"""JAX, loaded when a neural model is first used."""

from __future__ import annotations

import os
from collections.abc import Callable
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


def compiled(function: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """Compile a function of weights and inputs.

    Returns it; one that gives its value and what leads back to the weights; and one that takes that
    and derivatives by the value, and gives those by the weights.
    """
    jax = jax_library()

    def opened(weights: Any, *given: Any) -> Any:
        return jax.vjp(lambda each: function(each, *given), weights)

    return jax.jit(function), jax.jit(opened), jax.jit(lambda back, slopes: back(slopes)[0])
