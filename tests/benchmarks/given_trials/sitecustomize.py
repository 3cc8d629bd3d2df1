"""For `trials.py`: tuning tries the settings of the environment; a log gets the CPU of phases."""

from __future__ import annotations

import importlib.abc
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any

#: parameters that older trees lack, at the values that they meant
SINCE = {"graph_self_training": {"eta_scale": "sentence"}}


def _tune(module: Any) -> None:
    settings = json.loads(os.environ["SSLBENCH_GIVEN_TRIALS"])

    def by_axis(axes: Any, budget: int, fixed: dict[str, Any], evaluate: Any) -> Any:
        trials = []
        for values in settings[evaluate.bench.task.spec.method][:budget]:
            axis = module.SearchAxis("sigma2", (values["sigma2"],))
            trials.append(evaluate(axis, values["sigma2"], {**fixed, **values}))
        return dict(max(trials, key=lambda trial: trial.score).params), trials

    def at_once(axes: Any, default: dict[str, Any], budget: Any, seed: int, evaluate: Any) -> Any:
        tuning = module.Tuning(tuple(axes))
        for values in settings[evaluate.sample.spec.method][: budget.trials]:
            since = SINCE.get(evaluate.sample.spec.method, {})
            tuning.trials.append(evaluate({**default, **values, **since}))
        return tuning

    module.search = at_once if hasattr(module, "Tuning") else by_axis


def _context(module: Any) -> None:
    log = os.path.join(os.environ["SSLBENCH_CACHE"], "phases.log")
    plain = module.RunContext.phase

    @contextmanager
    def phase(self: Any, name: str) -> Iterator[None]:
        began = time.process_time()
        try:
            with plain(self, name):
                yield
        finally:
            with suppress(OSError), open(log, "a", encoding="utf-8") as out:
                out.write(json.dumps([name, time.process_time() - began]) + "\n")

    module.RunContext.phase = phase


HOOKS: dict[str, Callable[[Any], None]] = {
    "sslbench.experiment.run.tuning": _tune,
    "sslbench.experiment.context.context": _context,
}


class Finder(importlib.abc.MetaPathFinder):
    """Changes the modules of `HOOKS` after they have been executed."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> Any:
        hook = HOOKS.pop(name, None)
        if hook is None:
            return None
        spec: Any = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            hook(module)

        spec.loader.exec_module = exec_module
        return spec


if "SSLBENCH_GIVEN_TRIALS" in os.environ:
    sys.meta_path.insert(0, Finder())
