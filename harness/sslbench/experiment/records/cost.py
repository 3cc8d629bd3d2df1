"""What a record says on the cost of a run."""

from __future__ import annotations

import msgspec

from sslbench.experiment.records.record import TUNING_FOLDS, RunRecord, RunSpec, content_id

#: trainings that a trial is worth where it trains on all folds of the labeled sample but one each
_TRIAL_ON_FOLDS = TUNING_FOLDS - 1.0


def cost_keys(spec: RunSpec) -> tuple[str, str, str]:
    """Runs that share a key cost about as much, those with the first one most nearly so."""
    p = spec.protocol
    system = (spec.method, spec.dataset, spec.featurizer, spec.model, tuple(spec.learned))
    return keys_of(system, (p.labeled, p.unlabeled, p.text))


def keys_of(
    system: tuple[str, str, str, str, tuple[str, ...]], sample: tuple[object, ...]
) -> tuple[str, str, str]:
    """`cost_keys` of method, dataset, featurizer, model and learned features, and of a sample."""
    method, _, _, model, learned = system
    first, second, third = map(content_id, ((system, sample), system, (method, learned, model)))
    return first, second, third


def trainings(spec: RunSpec, n_trials: float, has_dev: bool) -> float:
    """Number of trainings that a run is worth.

    has_dev: whether trials are scored on a development split, else each trains on folds.
    """
    per_trial = 1.0 if has_dev else _TRIAL_ON_FOLDS
    guard = 0 if spec.guard is msgspec.UNSET else spec.guard.folds
    return (1 + n_trials * per_trial + guard) * max(1, spec.protocol.folds)


def has_dev(record: RunRecord) -> bool:
    """Whether the dataset of the run has a development split of its own."""
    return record.protocol.get("dev") == "own"


def training_cpu_s(record: RunRecord) -> float | None:
    """CPU seconds of one training of a successful run; None if they were not measured."""
    if record.status != "ok" or not record.cpu_s:
        return None
    n_trials = record.tuned.trials * _made(record)
    return record.cpu_s / trainings(record.spec, n_trials, has_dev(record))


def _made(record: RunRecord) -> float:
    """The share of the tuning of a run that it did itself: the rest was in the store."""
    stored, seconds = record.timing.get("tune_stored", 0.0), record.tuned.seconds
    return max(0.0, 1 - stored / seconds) if seconds else 0.0


def made_cpu_s(record: RunRecord) -> float:
    """CPU seconds of the tuning trials that the run did itself."""
    return record.tuned.cpu_s * _made(record)
