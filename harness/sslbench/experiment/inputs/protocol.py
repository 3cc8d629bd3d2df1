"""The draw of a protocol, and the problem of a method that it gives."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import msgspec
import numpy as np

from sslbench.engine.corpus import (
    ChainedShards,
    Corpus,
    CorpusShards,
    HeadShards,
    HeadTokens,
    Shards,
)
from sslbench.engine.errors import UserError
from sslbench.engine.types import I32, I64
from sslbench.experiment.data import Dataset
from sslbench.experiment.data.weak import without_weak
from sslbench.experiment.inputs.folding import Fold, grouped_folds
from sslbench.experiment.inputs.problem import Problem, relabeled
from sslbench.experiment.records.record import FoldBy, ProtocolSpec, RunSpec
from sslbench.experiment.records.trials import TUNING_FOLDS
from sslbench.experiment.request.request import LabeledBy, TextSource

# Makes the sample's random numbers independent of the others of a seed. It is part of the protocol:
# changing it changes every labeled sample.
SAMPLE_STREAM = 0x6C61626C

DevSource = Literal["own", "folds", "none"]


@dataclass(frozen=True)
class Draw:
    """One draw of a protocol. Sentences are indices into train, ascending.

    Attributes
    ----------
    labeled: int64[n], the labeled sample.
    hidden: int64[m], the sentences that lose their labels.
    dev_source: where development data come from: the split of the dataset ("own"), "folds" of the
        labeled sample, or "none". A method sees the split only if it is the source.
    folds: parts of the labeled sample, for tuning; () = they are not needed.
    """

    labeled: I64
    hidden: I64
    dev_source: DevSource
    folds: tuple[Fold, ...] = ()


def resolve_text(
    dataset: Dataset, labeled: int | str, unlabeled: int | str | None, asked: TextSource | None
) -> TextSource:
    """Where the unlabeled text of a protocol comes from.

    labeled, unlabeled: see `ProtocolSpec`.
    asked: what the user asks for; None = the external text if all of train is labeled or of
        another domain, both texts if the dataset joins them, else the rest of train. Without
        unlabeled sentences it is the rest of train, so that no external text has to be made.
    UserError if external text is asked for and the dataset has none.
    """
    if dataset.external is None:
        if asked in ("external", "all"):
            hint = "leave out --text, or give rest"
            raise UserError(f"dataset {dataset.name} has no external text", hint=hint)
        return "rest"
    if asked is not None:
        return asked
    if unlabeled == 0:
        return "rest"
    if dataset.joined:
        return "all"
    return "external" if dataset.adaptation or labeled == "all" else "rest"


def labeled_size(labeled: int | str, n_train: int) -> int:
    """Number of labeled sentences for a size as in `ProtocolSpec` and `n_train` sentences."""
    if labeled == "all":
        return n_train
    if isinstance(labeled, str):
        return max(1, round(n_train * float(labeled.rstrip("%")) / 100))
    if labeled > n_train:
        raise UserError(
            f"{labeled} labeled sentences requested, but train has {n_train}",
            hint="give a smaller --labeled, or leave it out to use all",
        )
    return labeled


def draw_order(n_train: int, seed: int) -> I64:
    """int64[n_train]: the sentences of train in the order in which a seed draws them.

    The samples of one seed are nested: a sample has the first entries.
    """
    return np.random.default_rng([seed, SAMPLE_STREAM]).permutation(n_train)


def tuning_folds(
    drawn: I64, documents: I32 | None = None, fold_by: FoldBy | None = None
) -> tuple[Fold, ...]:
    """Folds of a labeled sample, in `TUNING_FOLDS` parts or as many as there are sentences.

    drawn: int64[n], the sample in the order of the draw.
    documents, fold_by: see `grouped_folds`.
    """
    if len(drawn) < 2:
        raise UserError(
            "tuning needs at least 2 labeled sentences",
            hint="some are held out to score a trial; give --tune 0 or more --labeled",
        )
    cut = grouped_folds(drawn, min(TUNING_FOLDS, len(drawn)), documents, fold_by)
    return tuple((np.sort(drawn[train]), np.sort(drawn[held])) for train, held in cut)


def draw(dataset: Dataset, protocol: ProtocolSpec) -> Draw:
    """Draw the labeled sample, and folds of it if trials are scored on them."""
    return _with_dev(dataset, protocol, *_in_order(dataset, protocol))


def fold_draws(dataset: Dataset, protocol: ProtocolSpec) -> list[tuple[Draw, I64]]:
    """The draw of each fold of cross-validation: labeled are the sentences outside of the fold.

    Returns pairs of a draw and the held-out sentences, int64 and ascending. UserError if the
    labeled sample has fewer sentences than folds.
    """
    drawn, hidden = _in_order(dataset, protocol)
    return [
        (_with_dev(dataset, protocol, drawn[train], hidden), np.sort(drawn[held]))
        for train, held in grouped_folds(drawn, protocol.folds, *_together(dataset, protocol))
    ]


def folds_in_order(dataset: Dataset, protocol: ProtocolSpec) -> I64:
    """int64[n]: the sentences of train that cross-validation tests on, fold by fold."""
    return np.concatenate([held_out for _, held_out in fold_draws(dataset, protocol)])


def _in_order(dataset: Dataset, protocol: ProtocolSpec) -> tuple[I64, I64]:
    """int64: the labeled sentences of train and the others, in the order of the draw."""
    n_train = dataset.splits["train"].n_sentences
    order = draw_order(n_train, protocol.seed)
    n_labeled = labeled_size(protocol.labeled, n_train)
    if protocol.labeled_by is not msgspec.UNSET:
        train = dataset.splits["train"]
        order = _chosen(train, protocol.seed, n_labeled, protocol.labeled_by)
    return order[:n_labeled], order[n_labeled:]


@lru_cache(maxsize=1)  # a run asks several times
def _chosen(train: Corpus, seed: int, n: int, by: LabeledBy) -> I64:
    """int64[S]: the sentences in the order of the draw, the labeled ones first."""
    from sslbench.experiment.inputs.labeled_by import chosen_order  # imports numba

    order = chosen_order(train, draw_order(train.n_sentences, seed), n, by)
    return np.concatenate([order[:n][draw_order(n, seed)], order[n:]])  # folds have both kinds


def _with_dev(dataset: Dataset, protocol: ProtocolSpec, drawn: I64, hidden: I64) -> Draw:
    """drawn, hidden: int64, in the order of the draw."""
    own = "dev" in dataset.splits and not protocol.cross_validated
    source: DevSource = "own" if own else "folds" if protocol.tuned else "none"
    cut = tuning_folds(drawn, *_together(dataset, protocol)) if source == "folds" else ()
    return Draw(np.sort(drawn), np.sort(hidden), source, cut)


def _together(dataset: Dataset, protocol: ProtocolSpec) -> tuple[I32 | None, FoldBy | None]:
    """The documents of train, and what folds keep together."""
    fold_by = None if protocol.fold_by is msgspec.UNSET else protocol.fold_by
    return dataset.splits["train"].documents, fold_by


def rest_of_train(dataset: Dataset, protocol: ProtocolSpec) -> I64:
    """int64: the sentences of train in the unlabeled text, ascending.

    A cap takes the first ones in the order of the draw: they are random, the same for every method,
    and those of a smaller cap are among those of a larger one.
    """
    _, rest = _in_order(dataset, protocol)
    if protocol.text == "external":
        return rest[:0]
    cap = protocol.unlabeled
    if isinstance(cap, str):
        lengths = dataset.splits["train"].lengths[rest]
        cap = int(np.searchsorted(np.cumsum(lengths), _n_tokens(cap), side="right"))
    return np.sort(rest[:cap])


def unlabeled_text(dataset: Dataset, protocol: ProtocolSpec, held_out: I64 | None = None) -> Shards:
    """The unlabeled text: the rest of train, the external text, or the one and then the other.

    A cap takes random sentences from the rest of train (see `rest_of_train`) and the first ones of
    the external text, which is read no further. The text contains no labels: their column is
    dropped before sentences are copied, and external text with such a column is an error.

    held_out: int64, labeled sentences of train on which trials or the models of other folds are
        scored. Transductive datasets append them, whatever the cap on the other text: a
        transductive method predicts nothing for text outside its own.
    """
    train = dataset.splits["train"].drop("label")
    rest = CorpusShards(train.select(rest_of_train(dataset, protocol)))
    parts: list[Shards] = [] if protocol.text == "external" else [rest]
    if protocol.text != "rest":
        parts += _external_part(dataset, protocol, rest)
    if dataset.transductive and held_out is not None and len(held_out):
        parts.append(CorpusShards(train.select(held_out)))
    return parts[0] if len(parts) == 1 else ChainedShards(parts)


def _external_part(dataset: Dataset, protocol: ProtocolSpec, rest: Shards) -> list[Shards]:
    """The external text up to the cap, after the rest of train; [] if the cap is reached there."""
    if dataset.external is None:
        raise UserError(f"dataset {dataset.name} has no external text")
    external, cap = dataset.external(), protocol.unlabeled
    first = next(iter(external), None)
    if first is not None and "label" in first.columns:
        raise RuntimeError(f"the external text of dataset {dataset.name} has labels")
    if cap is None:
        return [external]
    hidden = rest_of_train(dataset, msgspec.structs.replace(protocol, unlabeled=None))
    if rest.n_sentences < len(hidden):
        return []
    if isinstance(cap, str):
        return [HeadTokens(external, _n_tokens(cap) - rest.n_tokens)]
    return [HeadShards(external, cap - rest.n_sentences)]


def _n_tokens(cap: str) -> int:
    return int(cap.removesuffix("t"))


def no_text(dataset: Dataset) -> Shards:
    """Empty unlabeled text, for methods that never read it."""
    return CorpusShards(dataset.splits["train"].drop("label").select(np.empty(0, dtype=np.int64)))


@dataclass(frozen=True)
class Sample:
    """A dataset, and the sentences of train that a run draws.

    spec: the identity of the run, with the protocol of the draw.
    held_out: int64, the sentences of train that a fold is tested on; else none.
    """

    spec: RunSpec
    dataset: Dataset
    drawn: Draw
    held_out: I64 = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @staticmethod
    def of(spec: RunSpec, dataset: Dataset) -> Sample:
        """The draw of a run from its dataset."""
        return Sample(spec, dataset, draw(dataset, spec.protocol))

    def folds(self) -> list[Sample]:
        """The samples of cross-validation: each has the sentences of its fold as split "test"."""
        return [
            replace(self, dataset=self._tested_on(held_out), drawn=drawn, held_out=held_out)
            for drawn, held_out in fold_draws(self.dataset, self.spec.protocol)
        ]

    def _tested_on(self, held_out: I64) -> Dataset:
        """The dataset with sentences of train as its test, and without further splits."""
        train, stay = self.dataset.splits["train"], ("train", "dev")
        splits = {name: part for name, part in self.dataset.splits.items() if name in stay}
        alternatives = dict(self.dataset.alternatives)
        if "train" in alternatives:
            alternatives["test"] = alternatives["train"].select(train.offsets, held_out)
        splits["test"] = without_weak(train.select(held_out))
        return replace(self.dataset, splits=splits, alternatives=alternatives, sentence_ids={})

    def text(self, sentences: I64) -> Shards:
        """The unlabeled text of a training on these sentences of train, int64[n]."""
        tested = np.union1d(self.drawn.labeled, self.held_out)
        return unlabeled_text(self.dataset, self.spec.protocol, np.setdiff1d(tested, sentences))

    def problem(self, sentences: I64, text: Shards, featurizer: Any, model: Any) -> Problem:
        """The input of a method.

        sentences: int64[n], the labeled sentences of train; all others lose their labels.
        """
        dataset = self.dataset
        labeled = relabeled(dataset.splits["train"].select(sentences))
        if dataset.label_constraint is not None:
            labeled = relabeled(dataset.label_constraint.impose(labeled))
        labels = tuple(labeled.column("label").vocabulary.strings)
        dev = dataset.splits["dev"] if self.drawn.dev_source == "own" else None
        problem = Problem(
            task=dataset.task,
            encoding=dataset.encoding,
            labels=labels,
            labeled=labeled,
            unlabeled=text,
            dev=None if dev is None else relabeled(dev.select(np.arange(dev.n_sentences)), labels),
            featurizer=featurizer,
            model=model,
            label_constraint=dataset.label_constraint,
        )
        if dataset.codec is None or self.spec.weak_sources:  # weak labels are tags
            return problem
        return problem.coded(dataset.codec(labels))
