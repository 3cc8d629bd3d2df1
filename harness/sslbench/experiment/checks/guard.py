"""The guard: is a method better than the baseline on held-out labeled sentences?

The labeled sentences are cut into folds. For each fold, the method and the baseline are trained on
the other sentences, with the same unlabeled text, and tag it. The baseline is used unless the
method scores better on the sentences of all folds together. Nothing but labeled sentences decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import msgspec
import numpy as np

from sslbench.engine.corpus import Corpus
from sslbench.engine.corpus.encodings import Scheme, Task
from sslbench.engine.dev_labels import unseen
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.folding import grouped_folds
from sslbench.experiment.inputs.problem import (
    DecodedTagger,
    Problem,
    Tagger,
    predicted,
    without_labels,
)
from sslbench.experiment.metrics import Scores, pool, score
from sslbench.experiment.records.record import FoldBy, GuardSpec, RunRecord

Fit = Callable[[Problem, RunContext], Tagger]

METRICS = {"tagging": "accuracy", "spans": "f1", "segmentation": "seg_f1", "joint": "joint_f1"}


def is_better(
    problem: Problem, spec: GuardSpec, method: Fit, baseline: Fit, run: RunContext
) -> bool:
    """Whether the method is better on the held-out sentences; the trace gets "guard".

    A sample of one sentence cannot be cut: the method counts as better.
    """
    n, metric = problem.labeled.n_sentences, METRICS[problem.task]
    if n < 2:
        return True
    fold_by = None if spec.fold_by is msgspec.UNSET else spec.fold_by
    with run.phase("guard"):
        parts = held_out_scores(problem, (method, baseline), spec.folds, fold_by, run)
    ours, theirs = (pool([part[i] for part in parts]).metrics[metric] for i in (0, 1))
    run.trace["guard"] = {
        "baseline": spec.method,
        "metric": metric,
        "method_score": ours,
        "baseline_score": theirs,
        "by_fold": [[scores.metrics[metric] for scores in part] for part in parts],
        "kept": "method" if ours > theirs else "baseline",
    }
    return ours > theirs


def held_out_scores(
    problem: Problem, fits: Sequence[Fit], folds: int, fold_by: FoldBy | None, run: RunContext
) -> list[list[Scores]]:
    """Return the scores of each training on the held-out labeled sentences of each fold.

    folds: at most; there are at least two labeled sentences. The text is that of the problem, and
    the development split is not seen.
    """
    n, documents = problem.labeled.n_sentences, problem.labeled.documents
    parts = []
    for train, held_out in grouped_folds(np.arange(n), min(folds, n), documents, fold_by):
        rest = replace(problem, labeled=problem.labeled.select(train), dev=unseen(problem))
        test = problem.labeled.select(held_out)
        parts.append([_scores(fit(rest, run.apart()), test, problem) for fit in fits])
        problem.dev_labels.seen |= rest.dev_labels.seen
    return parts


def _scores(tagger: Tagger, held_out: Corpus, problem: Problem) -> Scores:
    """Score the tags that a tagger predicts, also where a codec maps tags to labels."""
    gold, names = problem.label_codes(held_out), problem.labels
    if problem.tags is not None:
        tagger = decoded = DecodedTagger(tagger, problem.tags)
        gold, names = decoded.table[gold], decoded.labels
    guesses = list(tagger.labels), predicted(tagger, without_labels(held_out))
    task, encoding = cast(Task, problem.task), cast(Scheme | None, problem.encoding)
    return score(task, (names, gold), guesses, held_out.offsets, encoding=encoding)


def guard_warnings(record: RunRecord) -> list[str]:
    """A line if the baseline is used."""
    line = guard_line(record.trace, record.method)
    return [line] if line is not None and record.trace["guard"]["kept"] == "baseline" else []


def guard_line(trace: Mapping[str, Any], method: str) -> str | None:
    """The result of the guard in one line; None without a guard."""
    guard = trace.get("guard")
    if guard is None:
        return None
    ours, theirs = (f"{100 * guard[name]:.1f}" for name in ("method_score", "baseline_score"))
    chosen = method if guard["kept"] == "method" else guard["baseline"]
    return (
        f"guard: {guard['metric']} on held-out labeled sentences is {ours} with {method},"
        f" {theirs} with {guard['baseline']}: the {chosen} tagger is kept"
    )
