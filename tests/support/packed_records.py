"""Made-up records of every kind, for stores and archives."""

from __future__ import annotations

import msgspec
import numpy as np

from sslbench.experiment.metrics import SentenceCounts, metrics_from_counts
from sslbench.experiment.records.predictions import Predictions, pack_numbers, predictions_sha256
from sslbench.experiment.records.record import GuardSpec, RunRecord, RunSpec, encode
from support.board_records import broken, record

LABELS = ("B-NP", "I-NP", "O")


def predicted(method: str, seed: int, *, text: str = "t", dev: bool = False) -> RunRecord:
    """A good run on text `text`, with predictions that differ a little from run to run."""
    made = record(method, seed)
    common, own = np.random.default_rng(7), np.random.default_rng([seed, *map(ord, method)])
    for split in ("test", "dev") if dev else ("test",):
        gold = common.integers(0, 3, 600)
        codes = np.where(own.random(600) < 0.2, own.integers(0, 3, 600), gold).astype(np.int32)
        right = (codes == gold).reshape(60, 10).sum(axis=1)
        counts = SentenceCounts(np.full(60, 10), right, gold_chunks=right, predicted_chunks=right)
        made.counts[split] = counts.to_lists()
        made.metrics[split] = dict(metrics_from_counts(counts))
        made.predictions[split] = Predictions.pack(LABELS, codes)
        if split == "test":
            made.predictions_sha256 = predictions_sha256(LABELS, codes)
    made.data["test_sha256"] = text
    return made


def every_kind() -> list[RunRecord]:
    """Failed, with several splits, draws, folds, learned features, a guard, odd texts."""
    found = [broken("worse", seed) for seed in range(3)]
    for each in found:
        each.created = "2024-01-02"
    found += [predicted(m, s) for m in ("supervised", "better", "worse") for s in range(4, 9)]
    found += [predicted("better", seed, text="u", dev=True) for seed in range(10, 14)]
    found += [record("supervised", seed) for seed in (20, 21)]  # without predictions
    drawn, odd, folds, learned, guarded = (predicted("better", 30 + i) for i in range(5))
    drawn.sentence_ids = {"test": pack_numbers(np.arange(3, 63))}
    odd.warnings = ["\u202e <b>", 'a "quoted" \\ line\n'] * 2
    odd.trace = {"rounds": [{"log": -1e300, "n": 2**53}], "gamma": [0.1, 1e-17]}
    odd.counts["test"]["oov_words"] = [0] * 60
    _change(folds, protocol=msgspec.structs.replace(folds.spec.protocol, folds=5))
    _change(learned, text_features={"brown_clusters": {"classes": 50}})
    learned.featurizer = learned.spec.features
    _change(guarded, guard=GuardSpec("supervised"))
    return [*found, drawn, odd, folds, learned, guarded]


def _change(made: RunRecord, **changes: object) -> None:
    made.spec = msgspec.convert(
        msgspec.to_builtins(msgspec.structs.replace(made.spec, **changes)), RunSpec
    )
    made.run_id = made.spec.run_id
    made.protocol = msgspec.to_builtins(made.spec.protocol)


def texts(records: list[RunRecord]) -> dict[str, bytes]:
    """The files of records by run id: whole, digest included."""
    return {each.run_id: encode(each) for each in records}
