"""Estimates of the memory that the engine needs, compared with what there is.

A system may promise more memory than it has, and then end the process that uses it. So the engine
asks here before it allocates.
"""

from __future__ import annotations

import sys

import psutil

from sslbench.engine.errors import UserError

F64_BYTES = 8
#: vectors of the weights that a training holds at a time: pairs of L-BFGS, points and gradients
WEIGHT_VECTORS = 30
#: arrays [tokens, L, L] of one sentence: scores of each position and derivatives (first order,
#: transition scores that depend on the position); messages of four sentences side by side in both
#: directions (second order)
PAIRS_PER_TOKEN = {1: 3, 2: 8}


def check_memory(needed: int, what: str, hint: str) -> None:
    """UserError if `needed` bytes are more than this process may have; what: takes them."""
    there = most_memory()
    if needed > there:
        sizes = f"{needed / 2**30:,.1f} GiB of memory, {there / 2**30:,.1f} are there"
        raise UserError(f"{what} would take {sizes}", hint=hint)


def most_memory() -> int:
    """Bytes of the machine's memory, or the lowest limit of the process (see `--memory`)."""
    total = int(psutil.virtual_memory().total)
    if sys.platform == "win32":
        return total
    import resource

    limits = [resource.getrlimit(what)[0] for what in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min([total, *(limit for limit in limits if limit != resource.RLIM_INFINITY)])


def check_sentence(tokens: int, n_labels: int, order: int) -> None:
    """UserError if the pairs of labels at each token of a sentence do not fit into memory."""
    needed = PAIRS_PER_TOKEN[order] * tokens * n_labels**2 * F64_BYTES
    hint = "cut the sentence, or use --model crf1" if order == 2 else "cut the sentence"
    check_memory(needed, f"a sentence of {tokens:,} tokens with {n_labels} labels", hint)


def check_weights(size: int, n_labels: int, order: int, *, observed: bool) -> None:
    """UserError if a training of this many weights does not fit into memory.

    observed: have only pairs of attribute and label that were seen weights (`state_support`)?
    """
    # a second-order batch of 4096 tokens sums triples of labels in groups of 512 tokens
    triples = (8 if order == 2 else 0) * n_labels**3
    needed = (WEIGHT_VECTORS * size + triples) * F64_BYTES
    less = "raise min_count" if observed else "set state_support=observed, or raise min_count"
    hint = "use --model crf1, or fewer labels" if order == 2 else less
    check_memory(needed, f"a model of {size:,} weights and {n_labels} labels", hint)
