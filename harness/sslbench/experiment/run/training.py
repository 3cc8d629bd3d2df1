"""From a drawn sample to a trained method: tune, then train on all of the sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem, Tagger
from sslbench.experiment.inputs.protocol import Sample
from sslbench.experiment.planning.task import data_fingerprint, load_dataset
from sslbench.experiment.run.fitting import Fitted, Session, Training
from sslbench.experiment.run.tuning import Tuning, tune, tuning_warnings


@dataclass(frozen=True)
class Trained:
    """Result of `train`.

    problem, fitted: input and result of the final training.
    run: context of the final training, with its trace and timing.
    tuning: the search before it.
    warnings: lines for the user.
    audit: of the user's own data, as in a record.
    cpu_s: CPU seconds of the final training.
    """

    sample: Sample
    problem: Problem
    fitted: Fitted
    run: RunContext
    tuning: Tuning = field(default_factory=Tuning)
    warnings: tuple[str, ...] = ()
    audit: Mapping[str, Any] = field(default_factory=dict)
    cpu_s: float = 0.0

    @property
    def tagger(self) -> Tagger:
        """What predicts tags."""
        return self.fitted.tagger


def train(session: Session, sample: Sample) -> Trained:
    """Tune within the budget of the protocol, then train on the whole labeled sample."""
    spec, clock = sample.spec, session.clock
    with clock.phase("tune"):
        tuning = tune(session, _tuning_sample(session, sample))
    problem = session.problem(sample, sample.drawn.labeled)
    run = session.context(spec.protocol.seed)
    guard = None
    if spec.guard is not msgspec.UNSET:
        guard = msgspec.structs.replace(spec.guard, fold_by=spec.protocol.fold_by)
    training = Training(problem, tuning.best, guard)
    with clock.phase("fit"):
        began = session.cpu_seconds()
        fitted = session.fit(training, run)
        cpu_s = session.cpu_seconds() - began
    warnings = tuning_warnings(spec.protocol, session.method.description, tuning)
    return Trained(sample, problem, fitted, run, tuning, (*warnings, *run.warnings), cpu_s=cpu_s)


def _tuning_sample(session: Session, sample: Sample) -> Sample:
    """The sample on whose draw parameters are tuned: this one, or that of the tuning seed.

    Its trials are those of the run of that seed, so that the store shares them.
    """
    seed = sample.spec.protocol.tune_seed
    if isinstance(seed, msgspec.UnsetType) or seed == sample.spec.protocol.seed:
        return sample
    protocol = msgspec.structs.replace(sample.spec.protocol, seed=seed)
    spec = msgspec.structs.replace(sample.spec, protocol=protocol)
    dataset = sample.dataset
    if spec.data.first_draw:
        task = msgspec.structs.replace(session.task, spec=spec)
        dataset = load_dataset(task, session.plugins)
        fingerprint = data_fingerprint(dataset, task, session.plugins)
        data = msgspec.structs.replace(spec.data, fingerprint=fingerprint)
        spec = msgspec.structs.replace(spec, data=data)
    return Sample.of(spec, dataset)
