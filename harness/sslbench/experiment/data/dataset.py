"""A dataset in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sslbench.engine.corpus import Corpus, LabelCodec, LabelConstraint, Shards
    from sslbench.engine.types import I64
    from sslbench.experiment.metrics import Alternatives


Metadata = Mapping[str, float | int | str]


@dataclass(frozen=True)
class Dataset:
    """A corpus with its splits, as a dataset plugin's ``load`` returns it.

    Attributes
    ----------
    name: name of the registration.
    task: "tagging", "spans", "segmentation" or "joint".
    metric: name of the primary metric, which ranks, e.g. "f1".
    encoding: the encoding of the labels ("IOB2", "BMES", ...); None for plain tags.
    splits: "train", "test" and optionally "dev"; each Corpus has a column "label", and columns of
        the same name share one Vocabulary. Any other split is scored like test and hidden from
        methods ("transductive": the external text with its labels).
    external: makes the external unlabeled text; called only when a protocol needs it.
    metadata: repeated in the run record (key "facts"); values are JSON-able.
    adaptation: domain adaptation: dev, test and `external` are of another domain than train.
        The unlabeled text is then `external` by default, otherwise only when all of train is
        labeled.
    joined: the unlabeled text is by default the rest of train followed by `external`.
    transductive: the test sentences are part of the unlabeled text. While parameters are tuned,
        the held-out labeled sentences are therefore part of it too.
    codec: given the tags of the labeled sample, returns the mapping to the labels that models are
        trained on. Predictions are mapped back and scored as tags. None: tags are the labels.
    label_constraint: gives the only possible label of some tokens, for all methods, in training
        and in tagging. It overrides labels of the labeled sample, never those that are scored.
    sentence_ids: by split, int64[S]: if the dataset has draws, the numbers of its sentences in the
        corpus that is drawn from. Tests pair the sentences of several seeds by them.
    alternatives: spans by split that are accepted besides the gold chunks; adds the metrics
        alt_precision, alt_recall and alt_f1. Needed for every split if one of these is `metric`.
    """

    name: str
    task: str
    metric: str
    encoding: str | None
    splits: Mapping[str, Corpus]
    external: Callable[[], Shards] | None = None
    metadata: Metadata = field(default_factory=dict)
    adaptation: bool = False
    joined: bool = False
    transductive: bool = False
    codec: Callable[[Sequence[str]], LabelCodec] | None = None
    label_constraint: LabelConstraint | None = None
    sentence_ids: Mapping[str, I64] = field(default_factory=dict)
    alternatives: Mapping[str, Alternatives] = field(default_factory=dict)
