"""What `sslbench warmup` runs, so that its kernels are those of later commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sslbench.cli import run, warmup
from sslbench.engine.crf.dual.ascent import FEWEST_TOKENS
from sslbench.experiment.planning.task import RunTask, load_dataset
from sslbench.plugins import registry


def test_runs_are_of_short_and_long_texts_with_few_and_many_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[str, str, int, int]] = []

    def collect(tasks: Sequence[RunTask], *_: object, **__: object) -> None:
        for task in tasks:
            assert task.load_error is None
            train = load_dataset(task, task.registry(registry())).splits["train"]
            edges = any("edge" in text for text in task.templates)
            kind = "registered" if not task.templates else "edges" if edges else "plain"
            labels = len(train.column("label").vocabulary)
            seen.append((task.spec.model, kind, labels, train.n_tokens))

    monkeypatch.setattr(run, "run_shown", collect)
    empty: Any = warmup._run(["supervised"], ["supervised"], ["synth"], ["crf1", "crf2"], 1)
    assert empty is None
    long = {(model, kind, labels) for model, kind, labels, n in seen if n >= FEWEST_TOKENS}
    assert {(m, k, n) for m in ("crf1", "crf2") for k, n in (("plain", 36), ("edges", 3))} <= long
    kinds = [(model, kind) for model, kind, *_ in seen]
    assert kinds.count(("crf1", "registered")) == kinds.count(("crf2", "registered")) == 1
    assert kinds.count(("crf1", "plain")) == 2  # synth without transitions by position, and text
