"""What a sequence model is to methods: labels, parameters, and log-potentials of text.

A term of an objective is a function of the log-potentials of a chain, so its derivative with
respect to these is all that a model needs to be trained on it.  A model therefore says how its
parameters give the potentials of a batch, and how derivatives go back from there
(`SequenceModel.open`); decoding, marginals and values of objectives follow from that.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from sslbench.engine.checked import check_array
from sslbench.engine.compilation.threads import in_order
from sslbench.engine.corpus import Corpus, LabelConstraint
from sslbench.engine.crf.data import Batch, batches
from sslbench.engine.crf.first_order.batch import BatchPotentials
from sslbench.engine.crf.first_order.nbest import NBest, n_best
from sslbench.engine.crf.optim.lbfgs import Options, Progress
from sslbench.engine.crf.params import TrainingParams, TrainingResult
from sslbench.engine.crf.persist import SavedModel
from sslbench.engine.crf.second_order.batch import SecondOrderPotentials
from sslbench.engine.crf.terms import PotentialGradient, Term
from sslbench.engine.errors import UserError
from sslbench.engine.types import F64, I32, I64, Bool

R = TypeVar("R")
Pullback: TypeAlias = Callable[[PotentialGradient, F64], None]
"""Adds to a gradient float64[P] the derivatives of a batch by the parameters of the model."""


class EncodedText(Protocol):
    """What a model makes of a corpus once, and reads in every pass over it.

    A model may store in it whatever it needs; these attributes are read by others.
    """

    @property
    def offsets(self) -> I64:
        """int64[S + 1]: the first token of each sentence, and the number of tokens N."""

    @property
    def lengths(self) -> F64:
        """float64[S]: the number of tokens of each sentence."""

    @property
    def batches(self) -> Sequence[Batch]:
        """The whole text in order, in pieces that are worth one pass each."""


@dataclass(frozen=True)
class ModelText:
    """An `EncodedText` for models of plugins: what the model reads, and the batches.

    content: anything, token by token.  offsets: int64[S + 1].  tokens: least number per batch.
    """

    content: Any
    offsets: I64
    tokens: int = 512

    @property
    def lengths(self) -> F64:
        """float64[S]: the number of tokens of each sentence."""
        return np.diff(self.offsets).astype(np.float64)

    @property
    def batches(self) -> list[Batch]:
        """The text in pieces of whole sentences."""
        return list(batches(self.offsets, self.tokens))


Parts: TypeAlias = Sequence[tuple[Any, Term]]
"""Texts as the model encodes them (`EncodedText`), each with a term of an objective."""


@dataclass(frozen=True)
class Expectation:
    """values: float64[S], one per sentence of the parts, in order; counts: float64 per weight."""

    values: F64
    counts: F64


@runtime_checkable
class LogLinear(Protocol):
    """A model whose log-potentials are linear in its parameters.

    Its expected features make the M-step of EM exact, and `train` takes ``expected_counts``.
    Methods use `sslbench.engine.crf.FrozenChain` on other models.
    """

    def expect(self, parts: Parts, parameters: F64 | None = None) -> Expectation:
        """Return values of the terms, and the derivative of their sum by every parameter."""


class SequenceModel(SavedModel):
    """A model that scores the label sequences of a sentence by the log-potentials of a chain.

    Every model keeps the transition mask and the label constraint of its problem: what they forbid
    has the potential -inf.

    Attributes
    ----------
    labels: what the codes of `decode` stand for.
    parameters: float64[P], all that training changes, in an order of the model's own. Methods copy
        and restore it, and it is stored in checkpoints.
    transition_mask: bool[L+1, L], which label may follow which (row L: which may begin a sentence);
        None = all.
    label_constraint: gives the only possible label of some tokens; None: every token may have every
        label.
    steps: of the optimizer, in all trainings of a run together, for a model that is trained by a
        number of steps; None: each training ends by rules of its own.
    course: while such a training goes on: steps taken before it, and `steps`; None: there are none.
    """

    steps: int | None = None
    course: tuple[int, int] | None = None
    labels: tuple[str, ...]
    parameters: F64
    transition_mask: Bool | None
    label_constraint: LabelConstraint | None

    @abstractmethod
    def encode(self, corpus: Corpus) -> Any:
        """Return a corpus as the model reads it, an `EncodedText`."""

    @abstractmethod
    def open(
        self, text: Any, batch: Batch, noise: np.random.Generator | None = None
    ) -> tuple[BatchPotentials, Pullback]:
        """Return the log-potentials of a batch, and the way back from them to the parameters.

        noise: for dropout and the like in training; None: there is none, in prediction.
        The pullback adds ``sum_c omega_c d phi_c / d parameters`` to the gradient that it gets,
        with omega the potential gradient of a term and phi the potentials.
        """

    @abstractmethod
    def train(
        self,
        parts: Parts,
        params: TrainingParams,
        *,
        options: Options | None = None,
        callback: Callable[[int, float, float], None] | None = None,
        progress: Progress | None = None,
    ) -> TrainingResult:
        """Maximize the sum of the terms minus `penalty`, starting at the current parameters.

        options: how much effort; None: that of `params`. A model that is not trained by L-BFGS
            reads `max_iterations`: its steps at most, which may be 0.
        callback: called with (iteration, loss per token, largest gradient) now and then.
        progress: stores states, from which a killed training goes on with the same bits. A model
            may ignore it: the training is repeated then.
        """

    def penalty(self, params: TrainingParams) -> float:
        """Return what training subtracts from the sum of the terms: a Gaussian prior."""
        return float(self.parameters @ self.parameters) / (2 * params.sigma2)

    def with_parameters(self, parameters: F64) -> Self:
        """Return the same model with other parameters, float64[P], which are not copied."""
        other = copy.copy(self)
        other.parameters = parameters
        return other

    def pruned(self, gold: Any, labels: I32, posteriors: Iterable[tuple[Any, F64]]) -> Self:
        """Return the model without implausible parameters; `reencode` makes it read its text.

        It is a matter of speed alone, and few models can do it; others return themselves.

        gold: labeled sentences; labels: int32[N].  posteriors: texts, each with float64[N, L].
        """
        return self

    def reencode(self, text: Any, *, reused: bool = False) -> Any:
        """Return for this model what the model before `pruned` encoded.

        reused: potentials will be computed many times.
        """
        return text

    # -- inference ---------------------------------------------------------------------------
    def scorer(
        self, text: Any, parameters: F64 | None = None
    ) -> Callable[[Batch], BatchPotentials]:
        """Return a function that gives the log-potentials of any batch of a text.

        parameters: in place of those of the model.
        """
        model = self if parameters is None else self.with_parameters(parameters)
        return lambda batch: model.open(text, batch)[0]

    def potentials(
        self, text: Any, parameters: F64 | None = None, *, batch_tokens: int | None = None
    ) -> Iterator[BatchPotentials]:
        """Yield the log-potentials of a text by batch, under mask and forced labels.

        parameters: in place of those of the model.
        batch_tokens: least number of tokens of a batch; None: the batches of training.
        """
        yield from map(self.scorer(text, parameters), _cut(text, batch_tokens))

    def each(
        self,
        function: Callable[[BatchPotentials], R],
        text: Any,
        *,
        batch_tokens: int | None = None,
    ) -> Iterator[R]:
        """Yield function(potentials) for each batch, in order; several threads compute ahead.

        batch_tokens: as in `potentials`.
        """
        of_batch = self.scorer(text)
        return in_order(lambda batch: function(of_batch(batch)), _cut(text, batch_tokens))

    def transition_potentials(
        self, text: Any, *, centered: bool = False
    ) -> Iterator[BatchPotentials]:
        """Yield potentials of transitions alone: those of labels are 0, or -inf where impossible.

        centered: less row and column means.
        """
        for potentials in self.potentials(text):
            node, edge = np.where(np.isneginf(potentials.node), -np.inf, 0.0), potentials.edge
            yield BatchPotentials(potentials.batch, node, _centered(edge) if centered else edge)

    def evaluate(self, parts: Parts, parameters: F64 | None = None) -> F64:
        """Return the values of the terms without prior: float64[S], sentence by sentence.

        parameters: in place of those of the model.
        """
        values = [np.empty(0)]
        for text, term in parts:
            if hasattr(term, "survey"):
                term.survey(self.potentials(text, parameters))
        for text, term in parts:
            values += _by_term(term, self.scorer(text, parameters), text)
        return np.concatenate(values)

    def gradient(
        self, parts: Parts, gradient: F64, noise: np.random.Generator | None = None
    ) -> float:
        """Return the sum of the terms without prior, and overwrite float64[P] with its derivative.

        noise: as in `open`.
        """
        gradient[:] = 0.0
        values: list[float] = []
        for text, term in parts:
            if hasattr(term, "survey"):
                term.survey(self.potentials(text))
        for text, term in parts:
            for batch in text.batches:
                potentials, pull = self.open(text, batch, noise)
                by_potential = term.evaluate(potentials)
                by_potential.check(batch.n_tokens, len(self.labels))
                pull(by_potential, gradient)
                values += by_potential.value.tolist()
        return math.fsum(values)

    def objective(self, parts: Parts, params: TrainingParams) -> float:
        """Return the sum of the terms minus the prior, at the current parameters."""
        return math.fsum(self.evaluate(parts)) - self.penalty(params)

    def decode(self, text: EncodedText) -> I32:
        """Return Viterbi labels, int32[N]. Raises ArithmeticError if a parameter is not finite."""
        self.check_finite()
        paths = self.each(lambda potentials: potentials.viterbi(), text)
        return np.concatenate([np.empty(0, np.int32), *paths])

    def marginals(self, text: EncodedText, extra: F64 | None = None) -> F64:
        """Return node marginals, float64[N, L]; extra: float64[N, L], added to the node scores.

        Raises ArithmeticError if a parameter is not finite, ValueError for `extra` of another
        shape.
        """
        self.check_finite()
        if extra is not None:
            shape = int(text.offsets[-1]), len(self.labels)
            check_array(np.ascontiguousarray(extra), "extra scores", np.float64, shape)
            if np.isnan(extra).any():
                raise ValueError("an extra score is no number")

        def node(potentials: BatchPotentials) -> F64:
            if extra is not None:
                potentials.node[:] += extra[potentials.batch.tokens]
            return potentials.posterior(counted=False).node

        parts = self.each(node, text)
        return np.concatenate([np.empty((0, len(self.labels))), *parts])

    def check_finite(self) -> None:
        """Raise ArithmeticError if a parameter is not finite."""
        values = self.parameters
        # one number that is not finite makes the sum not finite
        if not np.isfinite(values.sum()) and not np.isfinite(values).all():
            raise ArithmeticError("the model has weights that are not finite")

    def n_best(self, text: Any, number: int) -> list[NBest]:
        """Return the best label sequences of each sentence.

        Raises UserError for second-order chains.
        """
        self.check_finite()
        best: list[NBest] = []
        for potentials in self.potentials(text):
            if isinstance(potentials, SecondOrderPotentials):
                hint = "--model crf1"
                raise UserError("several best sequences need a first-order chain", hint=hint)
            best += n_best(potentials, number)
        return best

    def predict(self, corpus: Corpus) -> I32:
        """Return the Viterbi labels of a corpus, int32[N] codes into `labels`."""
        return self.decode(self.encode(corpus))

    def predict_marginals(self, corpus: Corpus) -> F64:
        """Return the probability of each label for each token of a corpus, float64[N, L]."""
        return self.marginals(self.encode(corpus))

    def predict_n_best(self, corpus: Corpus, number: int) -> list[NBest]:
        """Return the best label sequences of each sentence of a corpus, as `n_best`."""
        return self.n_best(self.encode(corpus), number)


def _cut(text: EncodedText, batch_tokens: int | None) -> Iterable[Batch]:
    return text.batches if batch_tokens is None else batches(text.offsets, batch_tokens)


def _by_term(
    term: Term, of_batch: Callable[[Batch], BatchPotentials], text: EncodedText
) -> Iterator[F64]:
    """Yield the values of a term, float64[s] for each batch."""
    each = in_order if getattr(term, "stateless", False) else map
    return iter(each(lambda batch: term.evaluate(of_batch(batch)).value, text.batches))


def _centered(edge: F64) -> F64:
    """Return float64[K, L, L] less row and column means of what is possible."""
    possible = np.isfinite(edge)
    scores = np.where(possible, edge, 0.0)
    rows, columns = scores.mean(axis=2, keepdims=True), scores.mean(axis=1, keepdims=True)
    whole = scores.mean(axis=(1, 2), keepdims=True)
    return np.where(possible, scores - rows - columns + whole, -np.inf)
