"""The forecast of harm: does what a method teaches agree with labels that it has not seen?

Before its rounds, a method has evidence on the labels of unlabeled text: a graph, a generative
model, the posterior of its own start. The labeled sentences are cut into folds. For each, a
supervised CRF is trained on the other sentences, the held-out ones are put in front of the
unlabeled text, and the method tells what its first round would teach for them. With p_t the
posterior of the CRF, r_t what is taught, and e(y) all probability on a label y, the forecast is

    agreement = sum_t <e(y_t) - p_t, r_t - p_t> / sqrt(sum_t |e(y_t) - p_t|^2 sum_t |r_t - p_t|^2),

the cosine of what the held-out labels would correct and what the method would change. For a
calibrated CRF, any r that it could have found itself has an expectation of zero: above zero, the
evidence knows something that the model does not; below, it is wrong, or the CRF surer than right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from sslbench.engine.checked import check_array
from sslbench.engine.corpus import ChainedShards, Corpus, CorpusShards, HeadShards
from sslbench.engine.errors import described
from sslbench.engine.types import F64, I32, I64
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.folding import folds
from sslbench.experiment.inputs.problem import Problem, without_labels

if TYPE_CHECKING:
    from sslbench.engine.crf import SequenceModel
    from sslbench.experiment.inputs.problem_graph import HasGraphParams, ProblemGraph

FOLDS = 5
#: held-out sentences that are enough: no further fold is tried then
ENOUGH = 50
#: most sentences of the unlabeled text that the folds see; graphs are over all of it
MOST_TEXT = 5000
#: of the optimizer in a fold: labels settle long before weights do
ITERATIONS = 15


@dataclass(frozen=True)
class Fold:
    """What a method may use to say what its first round would teach.

    problem: its first unlabeled shard was labeled elsewhere.
    crf: trained on the labeled sentences of the problem.
    held_out: the first unlabeled shard, encoded for it.
    """

    problem: Problem
    crf: SequenceModel
    held_out: Any


class HasEvidence(Protocol):
    """A method that can be asked for a forecast."""

    def evidence(self, fold: Fold, params: Any, run: RunContext) -> F64 | None:
        """Return the distributions of labels that the first round teaches, float64[N, L].

        A row for each token of `fold.held_out`; None = no forecast with these parameters.
        """


@dataclass(frozen=True)
class FoldProblem(Problem):
    """A problem whose first unlabeled shard was labeled in another one.

    whole: the other problem.
    graphs: graphs of the other problem by their parameters; its text has the same n-grams.
    tokens: int64[N], where the tokens of this one stand in the text of the other.
    """

    whole: Problem = field(kw_only=True)
    graphs: dict[str, ProblemGraph] = field(kw_only=True)
    tokens: I64 = field(kw_only=True)

    def graph(
        self,
        params: HasGraphParams,
        run: RunContext,
        *,
        min_count: int = 1,
        counting_text: Corpus | None = None,
    ) -> ProblemGraph:
        """The graph of the other problem, with the labeled sentences of this one."""
        if counting_text is not None:
            raise ValueError("the graph of a fold counts no further text")
        key = repr((params, min_count))
        if key not in self.graphs:
            self.graphs[key] = self.whole.graph(params, run, min_count=min_count)
        graph, codes = self.graphs[key], self.label_codes(self.labeled)
        return replace(graph, text=graph.text.reordered(self.tokens, codes, len(self.labels)))


class HeldOut(NamedTuple):
    """Held-out tokens: gold labels int32[N], the distributions float64[N, L] of the supervised CRF,
    and those that the method teaches.
    """

    gold: I32
    model: F64
    taught: F64


def foresee(method: Any, problem: Problem, params: Any, run: RunContext) -> None:
    """The trace gets "forecast", if the method has evidence and there is text to learn from.

    No run fails for lack of a forecast: an error is a warning.
    """
    ask: HasEvidence | None = method if hasattr(method, "evidence") else None
    if ask is None or problem.labeled.n_sentences < 2 or not problem.unlabeled.n_sentences:
        return
    apart = run.apart()
    try:
        with run.phase("forecast"):
            _, forecast = run.once(lambda: ({}, summary(held_out(ask, problem, params, apart))))
    except Exception as error:
        run.warn(f"no forecast: {described(error)}")
        return
    # graphs of the folds are those of the run, which finds them in its cache
    if graph := apart.timing.get("graph", 0.0):
        run.timing["forecast"] -= graph
        run.timing["graph"] = run.timing.get("graph", 0.0) + graph
    if forecast:
        run.trace["forecast"] = forecast
        run.progress(f"forecast: agreement {forecast['agreement']:+.2f} with held-out labels")


def summary(parts: Iterable[HeldOut]) -> dict[str, Any]:
    """The agreement, its standard error over tokens, and shares of right labels.

    {} without parts.
    """
    total, folds_done = np.zeros(7), 0
    for gold, model, taught in parts:
        if not np.isfinite(taught).all():
            raise ValueError("evidence is not finite")
        wanted = np.eye(model.shape[1])[gold] - model
        change = taught - model
        products = (wanted * change).sum(axis=1)
        sums = products.sum(), (products**2).sum(), (wanted**2).sum(), (change**2).sum()
        right = [np.count_nonzero(rows.argmax(axis=1) == gold) for rows in (model, taught)]
        total += [*sums, *right, len(gold)]
        folds_done += 1
    if not total[-1]:
        return {}
    product, squares, wanted2, change2, model_right, taught_right, tokens = total.tolist()
    scale = math.sqrt(wanted2 * change2)
    return {
        "agreement": product / scale if scale else 0.0,
        "error": math.sqrt(squares) / scale if scale else 0.0,
        "model_right": model_right / tokens,
        "taught_right": taught_right / tokens,
        "tokens": int(tokens),
        "folds": folds_done,
    }


def held_out(
    method: HasEvidence, problem: Problem, params: Any, run: RunContext
) -> Iterator[HeldOut]:
    """Fold by fold, until enough sentences were held out."""
    from sslbench.engine.crf import HardLabels, TrainingParams

    training = params if isinstance(params, TrainingParams) else TrainingParams()
    few = training.options(max_iterations=min(ITERATIONS, training.max_iterations))
    n, graphs, done = problem.labeled.n_sentences, dict[str, Any](), 0
    for train, test in folds(n, min(FOLDS, n)):
        part = fold_problem(problem, train, test, graphs)
        crf = part.crf(training)
        labeled = crf.encode(part.labeled), HardLabels(part.label_codes(part.labeled))
        crf.train([labeled], training, options=few)
        hidden = crf.encode(next(iter(part.unlabeled)))
        taught = method.evidence(Fold(part, crf, hidden), params, run)
        if taught is None:
            return
        gold = problem.label_codes(problem.labeled.select(test))
        shape = len(gold), len(problem.labels)
        check_array(taught, "evidence", np.float64, shape)
        yield HeldOut(gold, crf.marginals(hidden), taught)
        done += len(test)
        if done >= ENOUGH:
            return


def fold_problem(
    problem: Problem, train: I64, test: I64, graphs: dict[str, ProblemGraph]
) -> FoldProblem:
    """The problem with labels for the sentences `train` of the labeled ones, int64, alone."""
    labeled = problem.labeled
    hidden = without_labels(labeled.select(test))
    shards = CorpusShards(hidden, max(1, hidden.n_tokens)), HeadShards(problem.unlabeled, MOST_TEXT)
    text = ChainedShards(shards)
    rest = labeled.n_tokens + np.arange(shards[1].n_tokens)
    tokens = np.concatenate([_tokens(labeled, train), _tokens(labeled, test), rest])
    values = {each.name: vars(problem)[each.name] for each in fields(Problem) if each.init}
    values |= {"labeled": labeled.select(train), "unlabeled": text, "dev": None}
    return FoldProblem(**values, whole=problem, graphs=graphs, tokens=tokens)


def _tokens(corpus: Corpus, sentences: I64) -> I64:
    """int64: the places of the tokens of some sentences."""
    spans = zip(corpus.offsets[sentences], corpus.offsets[sentences + 1], strict=True)
    return np.concatenate([np.empty(0, np.int64), *(np.arange(a, b) for a, b in spans)])


class RecordedForecast(NamedTuple):
    """The forecast in a record as one number.

    The agreement describes a small step: a method whose labels are wrong in many places may still
    move the model in the right direction. So where the labels of the method are less often right
    than those of the model, the forecast is the relative growth of the errors, if that is the lower
    number.

    Attributes
    ----------
    value: in [-1, 1]; above zero a gain is expected.
    error: standard error of the agreement.
    taught_right, model_right: share of held-out tokens that the method, and the model, label right.
    """

    value: float
    error: float
    taught_right: float
    model_right: float


def recorded_forecast(trace: Mapping[str, Any]) -> RecordedForecast | None:
    """Return the forecast in the trace of a run; None without one."""
    entry = trace.get("forecast")
    names = ("agreement", "error", "taught_right", "model_right")
    if not isinstance(entry, dict) or not all(isinstance(entry.get(n), float) for n in names):
        return None
    agreement, error, method, model = (entry[name] for name in names)
    growth = (model - method) / max(1 - model, 1e-9) if method < model else 0.0
    value = max(-1.0, min(agreement, -growth)) if growth else agreement
    return RecordedForecast(value, error, method, model)
