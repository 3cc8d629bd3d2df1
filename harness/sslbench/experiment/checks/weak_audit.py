"""What weak sources say of the text, and what they are worth on the labeled sentences."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from sslbench.engine.corpus import Column, Vocabulary
from sslbench.engine.corpus.encodings import Scheme, Task
from sslbench.engine.types import Bool
from sslbench.experiment.checks.guard import METRICS
from sslbench.experiment.inputs.problem import Problem
from sslbench.experiment.inputs.weak import WeakSource, with_weak_labels
from sslbench.experiment.metrics import score


def audit_weak(problem: Problem) -> dict[str, dict[str, Any]]:
    """Return figures of the weak sources of a problem by name.

    "sentences": how many of the labeled and unlabeled text it has read.
    "coverage": the share of their tokens that it labels.
    "conflicts": the share of these labels where another source gives another one.
    "accuracy", "f1", "seg_f1" or "joint_f1" by the task: on the labeled sentences that it has read,
        where a token without label counts as O; None if it has read none.
    "labels": how many labels it gives.  "unseen_labels": those that no labeled sentence has.
    """
    problem = with_weak_labels(problem)
    sources, labels = problem.weak, problem.labels
    seen = {labels[code] for code in np.unique(problem.label_codes(problem.labeled)).tolist()}
    lengths = np.concatenate([part.lengths for part in (problem.labeled, *problem.unlabeled)])
    starts = np.cumsum(lengths) - lengths
    figures: dict[str, dict[str, Any]] = {}
    for source in sources:
        labeled = source.codes >= 0
        given = {labels[code] for code in np.unique(source.codes[labeled]).tolist()}
        figures[source.name] = {
            "sentences": int(source.read[starts].sum()),
            "coverage": float(labeled.sum() / max(1, source.read.sum())),
            "conflicts": float(_contradicted(source, sources).sum() / max(1, labeled.sum())),
            METRICS[problem.task]: _score(problem, source),
            "labels": len(given),
            "unseen_labels": sorted(given - seen),
        }
    return figures


def _contradicted(source: WeakSource, sources: tuple[WeakSource, ...]) -> Bool:
    """Return bool[N]: whether another source gives another label."""
    wrong = np.zeros(len(source.codes), np.bool_)
    for other in sources:
        wrong |= (source.codes >= 0) & (other.codes >= 0) & (other.codes != source.codes)
    return wrong


def _score(problem: Problem, source: WeakSource) -> float | None:
    """Score the weak labels of the labeled sentences that the source has read."""
    labeled, names = problem.labeled, Vocabulary(problem.labels)
    sentences = np.flatnonzero(source.read[labeled.offsets[:-1]])
    if not len(sentences):
        return None
    silent = names.add("O" if problem.encoding else "")
    codes = source.codes[: labeled.n_tokens]
    guesses = Column(names, np.where(codes < 0, silent, codes))
    part = labeled.with_column("guess", guesses).select(sentences)
    scores = score(
        cast(Task, problem.task),
        (problem.labels, problem.label_codes(part)),
        (names.strings, part.column("guess").codes),
        part.offsets,
        encoding=cast(Scheme | None, problem.encoding),
    )
    return float(scores.metrics[METRICS[problem.task]])
