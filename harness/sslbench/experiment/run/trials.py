"""Trials of tuning: trainings with candidate parameters, scored on labels held out from them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.engine.types import I64
from sslbench.experiment.inputs.problem import Problem
from sslbench.experiment.inputs.protocol import Sample
from sslbench.experiment.metrics import Alternatives, SentenceCounts, metrics_from_counts
from sslbench.experiment.records.record import content_id
from sslbench.experiment.records.store import Store
from sslbench.experiment.records.trials import PartScore, Trial
from sslbench.experiment.run.fitting import MethodEndedError, Session, Training
from sslbench.experiment.run.scoring import predict, score_labels


@dataclass(frozen=True)
class Part:
    """Sentences to train on, and those on which the tagger is scored.

    sentences: int64[n], sentences of train.
    held_out: sentences with labels.  alternatives: spans accepted in them.
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


@dataclass
class Attempt:
    """A trial and the parts that it was trained on; the last one has an error if it failed."""

    params: Mapping[str, Any]
    done: list[PartScore] = field(default_factory=list)

    @property
    def error(self) -> str | None:
        """Why the last training failed; None = it did not."""
        return self.done[-1].error if self.done else None

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all trainings."""
        return sum(part.cpu_s for part in self.done)


class Trials:
    """Runs trials, or reads their parts from the store if they have been run before.

    A trial trains once where a development split scores it, else once for each fold of the labeled
    sentences; its score is that of the pooled counts.
    """

    def __init__(self, session: Session, sample: Sample) -> None:
        self.session = session
        self.sample = sample
        folder = session.task.store
        self.store = None if folder is None else Store(folder)
        self.parts = tuning_parts(sample)
        self._problems: dict[int, Problem] = {}
        self._default: Mapping[str, Any] | None = None

    @property
    def n_parts(self) -> int:
        return len(self.parts)

    def __call__(self, params: Mapping[str, Any]) -> Trial:
        """Train on all parts with these values of the parameters that are searched, and score."""
        attempt = self.attempt(params)
        self.advance(attempt, self.n_parts)
        return self.trial(attempt)

    def attempt(self, params: Mapping[str, Any]) -> Attempt:
        """Begin a trial."""
        text = " ".join(f"{key}={value}" for key, value in params.items())
        self.session.clock.progress(f"trial: {self.sample.spec.method} {text}")
        if self._default is None:
            self._default = params
        return Attempt(params)

    def advance(self, attempt: Attempt, n_parts: int) -> None:
        """Train until there are so many parts, or an error."""
        while len(attempt.done) < min(n_parts, self.n_parts) and attempt.error is None:
            attempt.done.append(self.part(len(attempt.done), attempt.params))

    def score(self, attempt: Attempt, n_parts: int) -> float:
        """Return the score of the first so many parts, at most; -inf for a failed or no number."""
        if attempt.error is not None:
            return -math.inf
        score = self._pooled(attempt.done[:n_parts])
        return -math.inf if math.isnan(score) else score

    def trial(self, attempt: Attempt) -> Trial:
        """Return what the record says of a trial."""
        done, error = attempt.done, attempt.error
        score = self._pooled(done) if error is None else None
        dropped = error is None and len(done) < self.n_parts
        return Trial(
            params=dict(attempt.params),
            metric=self.sample.dataset.metric,
            score=score,
            seconds=sum(part.seconds for part in done),
            cpu_s=attempt.cpu_s,
            error=error,
            dropped_after=len(done) if dropped else msgspec.UNSET,
        )

    def _pooled(self, parts: Sequence[PartScore]) -> float:
        counts = [SentenceCounts.from_lists(part.counts) for part in parts]
        return metrics_from_counts(SentenceCounts.concatenate(counts))[self.sample.dataset.metric]

    def part(self, number: int, params: Mapping[str, Any]) -> PartScore:
        """Train on all folds but one, or read from the store what came of it."""
        part_id = self._identity(number, params)
        part = self.store.load_trial(part_id) if self.store else None
        if part is None:
            part = self._run(number, params)
            if self.store and part.error is None:  # failures are not stored
                self.store.save_trial(part_id, part)
        else:
            # What the run would have cost without the store.
            timing = self.session.clock.timing
            timing["tune_stored"] = timing.get("tune_stored", 0.0) + part.seconds
        return part

    def _identity(self, number: int, params: Mapping[str, Any]) -> str:
        spec = self.sample.spec
        # No part of a trial depends on the budget, or on whether trials race.
        trial = msgspec.structs.replace(
            spec,
            params={**spec.params, **params},
            protocol=spec.protocol.without_tuning(),
            search="",
            first=msgspec.UNSET,
        )
        part = [number, len(self.parts)]
        return content_id({"trial": trial, "code": self.session.task.code, "part": part})

    def _run(self, number: int, params: Mapping[str, Any]) -> PartScore:
        session = self.session
        began, cpu = time.perf_counter(), session.cpu_seconds()
        counts, error = {}, None
        try:
            counts = self._counts(number, params).to_lists()
        except MethodEndedError:
            raise  # there can be no further trial
        except Exception as failure:  # training may fail at the ends of a space
            if params is self._default and isinstance(failure, UserError):
                raise  # the default is refused: the data, or what the user set, are at fault
            error = f"{type(failure).__name__}: {failure}"
        seconds = time.perf_counter() - began
        return PartScore(counts, seconds, session.cpu_seconds() - cpu, error)

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
