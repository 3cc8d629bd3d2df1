"""The input of a method: labeled sentences and unlabeled text, without hidden labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from sslbench.engine.corpus import (
    Column,
    Corpus,
    HeadShards,
    LabelCodec,
    LabelConstraint,
    Shards,
    Vocabulary,
)
from sslbench.engine.dev_labels import DevLabels, HoldsDev, unseen
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.spread import is_shared
from sslbench.engine.types import F64, I32, Bool
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.data.weak import without_weak

if TYPE_CHECKING:
    from sslbench.engine.crf import (
        ChainCRF,
        EncodedProblem,
        NBest,
        SequenceModel,
        TrainingParams,
    )
    from sslbench.experiment.inputs.problem_graph import HasGraphParams, ProblemGraph
    from sslbench.experiment.inputs.weak import WeakSource


FeaturesFrom = Literal["labeled", "labeled+unlabeled"]


class Model(Protocol):
    """A registered sequence model: it makes the untrained model of a problem."""

    def prepare(
        self,
        featurizer: TemplateFeaturizer,
        corpus: Corpus,
        label_codes: I32,
        labels: Sequence[str],
        *,
        min_count: int,
        state_support: Literal["all", "observed"],
        n_factors: int,
        transition_mask: Bool | None,
        label_constraint: LabelConstraint | None,
        text: Iterable[Corpus],
    ) -> SequenceModel:
        """Return a model that has not been trained.

        featurizer: of the problem.  corpus: the labeled sentences.  label_codes: int32[N], gold
        labels as numbers into `labels`.
        min_count, state_support: of `TrainingParams`; n_factors: weights of factor features. A
        model without such weights leaves them alone.
        transition_mask, label_constraint: of `Problem`; the model must keep both.
        text: unlabeled sentences that may be read too, for a vocabulary; can be iterated over
        again.
        """


@dataclass(frozen=True)
class Problem(HoldsDev):
    """A semi-supervised learning problem.

    Test sentences and hidden labels are not in the object: the unlabeled text has no label column,
    and the label vocabulary of the labeled sample is made from that sample alone.

    Attributes
    ----------
    task: "tagging", "spans", "segmentation" or "joint".
    encoding: the encoding of the labels, e.g. "IOB2"; None for plain tags. It is that of the tags
        under a label codec.
    labels: the labels that occur in the labeled sample, sorted; or those of a label codec.
    labeled: sentences with a column "label".
    unlabeled: text without a column "label".
    dev: development sentences with labels when the dataset has its own; a label that does not
        occur in the labeled sample has code -1 in `label_codes`. Reading it counts as tuning.
    featurizer: makes attributes from templates.
    model: the sequence model to train.
    transition_mask: bool[L + 1, L], which label may follow which (row L: which may begin a
        sentence), for training and decoding; None = all.
    label_constraint: fixes the label of some tokens, for training and decoding; `labeled` obeys
        it. None: no token's label is fixed.
    tags: the tag that each of a codec's `labels` stands for; None = labels are tags.
    backoff: attributes have weights of tags beside those of labels (`LabelCodec.backoff`).
    dev_labels: notes whether `dev` has been read.
    """

    task: str
    encoding: str | None
    labels: tuple[str, ...]
    labeled: Corpus
    unlabeled: Shards
    dev: Corpus | None
    featurizer: TemplateFeaturizer
    model: Model
    transition_mask: Bool | None = None
    label_constraint: LabelConstraint | None = None
    tags: tuple[str, ...] | None = None
    backoff: bool = False
    dev_labels: DevLabels = field(default_factory=DevLabels, init=False, repr=False, compare=False)

    def coded(self, codec: LabelCodec) -> Problem:
        """The same problem over the labels of a codec.

        ValueError with a label constraint: constraints are on tags, codecs change the labels.
        """
        if self.label_constraint is not None:
            raise ValueError("a label constraint on tags cannot be combined with a label codec")
        dev: Corpus | None = unseen(self)
        if dev is not None:
            dev = relabeled(codec.encode(dev), codec.labels)
        labeled = relabeled(codec.encode(self.labeled), codec.labels)
        return replace(
            self,
            labels=codec.labels,
            labeled=labeled,
            dev=dev,
            transition_mask=codec.transition_mask,
            tags=codec.tags,
            backoff=getattr(codec, "backoff", False),
        )

    def label_codes(self, corpus: Corpus) -> I32:
        """int32[N]: labels of a corpus as numbers into `labels`; -1 for labels not among them."""
        column = corpus.column("label")
        codes = {label: code for code, label in enumerate(self.labels)}
        table = np.array(
            [codes.get(label, -1) for label in column.vocabulary.strings], dtype=np.int32
        )
        return table[column.codes] if len(table) else np.empty(0, dtype=np.int32)

    def crf(
        self,
        params: TrainingParams,
        *,
        features_from: FeaturesFrom = "labeled",
        n_factors: int = 0,
    ) -> SequenceModel:
        """An untrained model with the transition mask and label constraint of the problem.

        features_from: text whose attributes get weights; n_factors: weights of factor features
        (`sslbench.engine.crf.FactorFeatures`).
        """
        from sslbench.engine.crf import ChainCRF

        crf = self.model.prepare(
            self.featurizer,
            self.labeled,
            self.label_codes(self.labeled),
            self.labels,
            min_count=params.min_count,
            state_support=params.state_support,
            n_factors=n_factors,
            transition_mask=self.transition_mask,
            label_constraint=self.label_constraint,
            text=self.unlabeled if features_from == "labeled+unlabeled" else (),
        )
        if self.backoff and isinstance(crf, ChainCRF):
            return replace(crf, backoff_tags=self.tags)
        return crf

    def chain_crf(self, params: TrainingParams, **options: Any) -> ChainCRF:
        """As `crf`, for a method that reads the weights of a `ChainCRF`.

        UserError for another model: the method should declare ``needs_model``.
        """
        from sslbench.engine.crf import ChainCRF

        crf = self.crf(params, **options)
        if not isinstance(crf, ChainCRF):
            raise UserError("the method needs the weights of a CRF", hint="--model crf1")
        return crf

    def encode(self, crf: SequenceModel) -> EncodedProblem:
        """All text of the problem, encoded for a model: labeled, unlabeled and development."""
        from sslbench.engine.crf import EncodedProblem

        gold = self.labeled, self.label_codes(self.labeled)
        dev: Corpus | None = unseen(self)
        coded = None if dev is None else (dev, self.label_codes(dev))
        return EncodedProblem.build(crf, gold, self.unlabeled, coded, self.dev_labels)

    def graph(
        self,
        params: HasGraphParams,
        run: RunContext,
        *,
        min_count: int = 1,
        counting_text: Corpus | None = None,
    ) -> ProblemGraph:
        """The similarity graph over all text of the problem, built or read from the run's cache.

        min_count: n-grams with fewer occurrences are no vertices.
        counting_text: more text, with the column of the graph, for the statistics of features only.
        """
        from sslbench.experiment.inputs.problem_graph import problem_graph

        return problem_graph(
            self.text(params.column),
            self.label_codes(self.labeled),
            len(self.labels),
            params,
            run,
            min_count=min_count,
            counting_text=counting_text,
        )

    def split_text(self, n_sentences: int, column: str) -> tuple[Problem, Corpus]:
        """The problem with its first unlabeled sentences, and one column of the others."""
        head = replace(self, unlabeled=HeadShards(self.unlabeled, n_sentences))
        text = self.text(column)
        first = self.labeled.n_sentences + head.unlabeled.n_sentences
        return head, text.between(first, text.n_sentences)

    @property
    def weak(self) -> tuple[WeakSource, ...]:
        """The weak sources, with their labels of the labeled and then of the unlabeled text."""
        from sslbench.experiment.inputs.weak import weak_sources

        return weak_sources(self)

    def text(self, column: str) -> Corpus:
        """One column of the labeled sentences, then of the unlabeled ones, end to end."""
        parts = [self.labeled, *self.unlabeled]
        return Corpus.concatenate(
            [Corpus({column: part.column(column)}, part.offsets) for part in parts]
        )


class Tagger(Protocol):
    """What training returns.

    Optional: ``variants``, other fits of the same training by name (its first round, say), whose
    primary metric the record tells as well, as ``accuracy_NAME``; and ``decodes_sequences = False``
    for a tagger that labels each token on its own, so that the labels of neighboring tokens may
    form a forbidden transition; ``predict_marginals(corpus)``, the probability of each label for
    each token, float64[N, L]; and ``predict_n_best(corpus, number)``, a list with the best label
    sequences of each sentence (`sslbench.engine.crf.NBest`).
    """

    @property
    def labels(self) -> Sequence[str]:
        """The labels that the codes of `predict` stand for."""

    def predict(self, corpus: Corpus) -> I32:
        """int32[N]: a label code per token of a corpus without labels."""


@dataclass(frozen=True)
class DecodedTagger:
    """A tagger over the labels of a codec, as one over tags. tags: that of each label."""

    tagger: Tagger
    tags: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.tags)))

    def predict(self, corpus: Corpus) -> I32:
        """int32[N]: codes into `labels`."""
        return self.table[predicted(self.tagger, corpus)]

    @property
    def table(self) -> I32:
        """int32: the tag of each label of `tagger`, a code into `labels`."""
        number = {tag: code for code, tag in enumerate(self.labels)}
        return np.array([number[tag] for tag in self.tags], dtype=np.int32)

    def predict_marginals(self, corpus: Corpus) -> F64:
        """float64[N, L]: the probability of each of `labels`."""
        marginals = predicted_marginals(self.tagger, corpus)
        total = np.zeros((len(marginals), len(self.labels)))
        for column, tag in zip(marginals.T, self.table, strict=True):
            total[:, tag] += column
        return total


def predicted(tagger: Tagger, corpus: Corpus) -> I32:
    """int32[N]: what a tagger predicts for a corpus without labels; RuntimeError when it is no code
    of its labels per token, or its labels are no distinct texts.
    """
    labels = tuple(tagger.labels)
    if not all(isinstance(label, str) for label in labels) or len(set(labels)) != len(labels):
        raise RuntimeError("the labels of the tagger are no distinct texts")
    codes = _spread_labels(tagger, corpus)
    if not isinstance(codes, np.ndarray):
        raise RuntimeError(f"predict() gave a {type(codes).__name__}, expected an array")
    if codes.shape != (corpus.n_tokens,) or codes.dtype.kind not in "iu":
        raise RuntimeError(
            f"predict() gave {codes.dtype}{list(codes.shape)}, expected int32[{corpus.n_tokens}]"
        )
    if codes.size and not 0 <= codes.min() <= codes.max() < len(labels):
        raise RuntimeError(f"predict() gave codes outside 0..{len(labels) - 1}")
    return codes.astype(np.int32)


def _spread_labels(tagger: Tagger, corpus: Corpus) -> I32:
    """What the tagger predicts, by the workers that share out passes if there are any."""
    codes = None
    if is_shared():
        from sslbench.engine.crf.labeling import spread_labels

        codes = spread_labels(tagger, corpus)
    return tagger.predict(corpus) if codes is None else codes


def predicted_marginals(tagger: Tagger, corpus: Corpus) -> F64:
    """float64[N, L]: the probability of each label for each token of a corpus without labels.

    UserError if the tagger has no ``predict_marginals``, RuntimeError when it gives something else.
    """
    function = getattr(tagger, "predict_marginals", None)
    if function is None:
        raise UserError("this tagger gives labels without probabilities")
    rows, shape = np.asarray(function(corpus)), (corpus.n_tokens, len(tagger.labels))
    if rows.shape != shape or rows.dtype != np.float64 or not np.isfinite(rows).all():
        raise RuntimeError(f"predict_marginals() gave no finite float64{list(shape)}")
    return rows


def predicted_n_best(tagger: Tagger, corpus: Corpus, number: int) -> list[NBest]:
    """The best label sequences of each sentence; UserError if the tagger cannot give them."""
    inner = tagger.tagger if isinstance(tagger, DecodedTagger) else tagger
    function = getattr(inner, "predict_n_best", None)
    if function is None:
        raise UserError("this tagger gives one label sequence only")
    sequences: list[NBest] = function(corpus, number)
    if isinstance(tagger, DecodedTagger):
        return [best._replace(labels=tagger.table[best.labels]) for best in sequences]
    return sequences


class Method(Protocol):
    """A method plugin: a class without constructor arguments, with a `Params` struct.

    Optional: ``Params.search``, a class attribute with a tuple of `SearchAxis` to tune besides the
    parameters that methods share; and ``uses_unlabeled = False`` on the class of a method that
    never looks at unlabeled text, which spares it the making of that text (its `Problem.unlabeled`
    is then empty).
    """

    Params: type[Any]

    def fit(self, problem: Problem, params: Any, run: RunContext) -> Tagger:
        """Train."""


def relabeled(corpus: Corpus, first: Sequence[str] = ()) -> Corpus:
    """Copy a corpus so that its label vocabulary has `first`, and then the other labels in it.

    The other labels are sorted. The vocabulary of the dataset would tell a method which labels
    occur in test.
    """
    old = corpus.column("label")
    used = np.unique(old.codes)
    labels = {old.vocabulary.strings[code] for code in used}
    vocabulary = Vocabulary([*first, *sorted(labels - set(first))])
    table = np.full(len(old.vocabulary), -1, dtype=np.int32)
    table[used] = [vocabulary.lookup(old.vocabulary.strings[code]) for code in used]
    return corpus.with_column("label", Column(vocabulary, table[old.codes]))


def without_labels(corpus: Corpus) -> Corpus:
    """Copy a corpus without its labels, gold and weak: what `predict` gets."""
    return without_weak(corpus).drop("label").select(np.arange(corpus.n_sentences))
