"""What the checks at construction cost, beside an evaluation of the objective.

SSLBENCH_BENCH_SENTENCES=0 SSLBENCH_BENCH_ROUNDS=5 pytest tests/benchmarks/test_checks.py -s
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np
from ours import prepare
from problem import ROUNDS, Figure, Text

from sslbench.engine.crf import HardLabels, Objective
from sslbench.plugins import registry

CHECKS = ("check_array", "check_borders")


@contextmanager
def timed_checks(spent: list[float]) -> Iterator[None]:
    """Add the seconds of each check to a list, in all modules that have imported one."""

    def timed(check: Callable[..., None]) -> Callable[..., None]:
        def work(*given: object) -> None:
            began = time.perf_counter()
            check(*given)
            spent.append(time.perf_counter() - began)

        return work

    with ExitStack() as stack:
        modules = [each for name, each in sys.modules.items() if name.startswith("sslbench.")]
        for module in modules:
            for name in CHECKS:
                if name in vars(module) and module.__name__ != "sslbench.engine.checked":
                    stack.enter_context(mock.patch.object(module, name, timed(vars(module)[name])))
        yield


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Medians: of the work, and of the checks in it."""
    whole, checks = [], []
    work()
    for _ in range(max(2, ROUNDS)):
        spent: list[float] = []
        with timed_checks(spent):
            began = time.perf_counter()
            work()
            whole.append(time.perf_counter() - began)
        assert spent
        checks.append(sum(spent))
    return float(np.median(whole)), float(np.median(checks))


def test_checks_at_construction(text: Text, figure: Figure) -> None:
    crf, codes = prepare(text.train, registry().featurizer("chunk39").load()())
    data = crf.encode(text.train)
    objective = Objective(crf.layout, [(data, HardLabels(codes))], 10.0)
    gradient = np.empty(crf.layout.size)
    built, at_construction = seconds(lambda: crf.encode(text.train))
    evaluation, within = seconds(lambda: objective.value_and_gradient(crf.weights, gradient))
    figure("checks when text is encoded", "ms", ours=1000 * at_construction)
    figure("checks in an evaluation", "ms", ours=1000 * within)
    print(
        f"{text.train.n_tokens:,} tokens: encoded in {1000 * built:.1f} ms,"
        f" of which checks {1000 * at_construction:.2f} ms;"
        f" an evaluation in {1000 * evaluation:.1f} ms, of which checks {1000 * within:.2f} ms"
    )
    assert within < evaluation
