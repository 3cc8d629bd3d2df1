"""The trials of a run's tuning: trained, scored on development data, kept in the store."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.engine.types import I64
from sslbench.experiment.inputs.problem import Problem
from sslbench.experiment.inputs.sample import Sample
from sslbench.experiment.metrics import Alternatives, SentenceCounts, metrics_from_counts
from sslbench.experiment.planning.description import MethodDescription
from sslbench.experiment.planning.space import edge_warning
from sslbench.experiment.records.record import ProtocolSpec, Trial, content_id
from sslbench.experiment.records.store import Store
from sslbench.experiment.run.fitting import MethodEndedError, Training
from sslbench.experiment.run.scoring import predict, score_labels
from sslbench.experiment.run.session import Session
from sslbench.experiment.run.tune import Budget, Tuning, search

UNTUNED = "untuned: the method has nothing to search"


def tune(session: Session, sample: Sample) -> Tuning:
    """Tune the parameters that the user has not set; no trials without a budget or a space."""
    protocol = sample.spec.protocol
    if not protocol.tuned or not session.method.description.axes:
        return Tuning()
    method, budget = session.method.description, Budget(protocol.tune or None, protocol.tune_cpu)
    trials = Trials(session, sample)
    return search(method.axes, method.defaults, budget, protocol.seed, trials)


def tuning_warnings(
    protocol: ProtocolSpec, method: MethodDescription, tuning: Tuning
) -> tuple[str, ...]:
    """Lines on a method that was not tuned, and on choices at an edge of the space."""
    if protocol.tuned and not tuning.trials:
        return (UNTUNED,)
    if not tuning.axes:
        return ()
    best, ends = tuning.best, method.ends
    lines = [edge_warning(axis, best[axis.param], ends[axis.param]) for axis in tuning.axes]
    return tuple(line for line in lines if line is not None)


@dataclass(frozen=True)
class Part:
    """Sentences to train on, and those on which the tagger is scored.

    sentences: int64[n] of train.  held_out: with labels.  alternatives: spans accepted in it.
    """

    sentences: I64
    held_out: Corpus
    alternatives: Alternatives | None


def tuning_parts(sample: Sample) -> list[Part]:
    """All labeled sentences and the development split, or the folds of the labeled sentences."""
    dataset, drawn = sample.dataset, sample.drawn
    if drawn.dev_source == "own":
        return [Part(drawn.labeled, dataset.splits["dev"], dataset.alternatives.get("dev"))]
    train, spans = dataset.splits["train"], dataset.alternatives.get("train")
    return [
        Part(
            sentences,
            train.select(held_out),
            None if spans is None else spans.select(train.offsets, held_out),
        )
        for sentences, held_out in drawn.folds
    ]


def pooled(counts: list[SentenceCounts]) -> SentenceCounts:
    """The counts of the sentences of all parts."""
    lists = [part.to_lists() for part in counts]
    return SentenceCounts.from_lists(
        {name: np.concatenate([part[name] for part in lists]).tolist() for name in lists[0]}
    )


class Trials:
    """Runs trials, or reads them from the store if they have been run before.

    A trial trains once where the dataset has development sentences, else once for each fold of the
    labeled ones; its score is that of the pooled counts.
    """

    def __init__(self, session: Session, sample: Sample) -> None:
        self.session = session
        self.sample = sample
        folder = session.task.store
        self.store = None if folder is None else Store(folder)
        self.parts = tuning_parts(sample)
        self.code = session.task.code
        self._problems: dict[int, Problem] = {}
        self._first = True

    def __call__(self, params: Mapping[str, Any]) -> Trial:
        """Train with these values of the parameters that are searched, and score."""
        trial_id = self._identity(params)
        trial = self.store.load_trial(trial_id) if self.store else None
        if trial is None:
            trial = self._run(dict(params))
            if self.store and trial.error is None:  # failures are not stored
                self.store.save_trial(trial_id, trial)
        else:
            # What the run would have cost without the store.
            timing = self.session.clock.timing
            timing["tune_stored"] = timing.get("tune_stored", 0.0) + trial.seconds
        return trial

    def _identity(self, params: Mapping[str, Any]) -> str:
        spec = self.sample.spec
        # No trial depends on the budget.
        own = msgspec.structs.replace(
            spec,
            params={**spec.params, **params},
            protocol=spec.protocol.without_tuning(),
            search="",
        )
        return content_id({"trial": own, "code": self.code, "folds": len(self.parts)})

    def _run(self, params: dict[str, Any]) -> Trial:
        session, metric = self.session, self.sample.dataset.metric
        began, cpu = time.perf_counter(), session.cpu_seconds()
        text = " ".join(f"{key}={value}" for key, value in params.items())
        session.clock.progress(f"trial: {self.sample.spec.method} {text}")
        result, error = None, None
        try:
            counts = [self._counts(number, params) for number in range(len(self.parts))]
            result = metrics_from_counts(pooled(counts))[metric]
        except MethodEndedError:
            raise  # there can be no further trial
        except Exception as failure:  # training may fail at the ends of a space
            if self._first and isinstance(failure, UserError):
                raise  # the default is refused: the data, or what the user set, are at fault
            error = f"{type(failure).__name__}: {failure}"
        self._first = False
        return Trial(
            params=params,
            metric=metric,
            score=result,
            seconds=time.perf_counter() - began,
            cpu_s=session.cpu_seconds() - cpu,
            error=error,
        )

    def _counts(self, number: int, params: Mapping[str, Any]) -> SentenceCounts:
        session, part = self.session, self.parts[number]
        if number not in self._problems:
            self._problems[number] = session.problem(self.sample, part.sentences)
        training = Training(self._problems[number], params)
        tagger = session.fit(training, session.context(self.sample.spec.protocol.seed)).tagger
        codes, data = predict(tagger, part.held_out), self.sample.dataset
        return score_labels(
            data.task,
            data.encoding,
            part.held_out,
            tagger,
            codes,
            alternatives=part.alternatives,
        ).counts
