"""Self-training through types: posteriors per type, mixed back into tokens, decoded, trained on.

Subramanya et al. (2010), algorithm 1.  A type is an n-gram, a vertex of the graph; what happens to
the posteriors of the types between averaging and mixing (`smooth`) is the caller's: propagation on
a graph, or nothing for the paper's self-trained CRF.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from sslbench.crf import ChainCRF, EncodedCorpus, HardLabels, TrainingResult
from sslbench.crf.first_order.batch import BatchPotentials
from sslbench.crf.objective import batch_potentials
from sslbench.crf.prune import prune
from sslbench.crf.weights.layout import Layout, Tables
from sslbench.errors import UserError
from sslbench.experiment.context import RunContext
from sslbench.graph.tokens import type_means
from sslbench.types import F64, I32, I64
from sslbench_methods.graph_text import FeaturePruning, Keep, with_dev
from sslbench_methods.supervised import TrainingParams

#: mixed posteriors below this are raised to it before the logarithm of the Viterbi step
FLOOR = 1e-12


class TypeParams(TrainingParams, frozen=True, kw_only=True):
    """What self-training through types lets the user set; the paper's gamma is 1 / (2 sigma2)."""

    sigma2: Annotated[
        float, msgspec.Meta(gt=0, description="variance of the Gaussian prior (gamma = 0.01)")
    ] = 50.0
    alpha: Annotated[
        float, msgspec.Meta(ge=0, le=1, description="share of the CRF in the mixed posteriors")
    ] = 0.6
    eta: Annotated[
        float, msgspec.Meta(ge=0, description="weight of a self-labeled sentence (labeled: 1)")
    ] = 0.001
    rounds: Annotated[int, msgspec.Meta(ge=1, description="most rounds of relabeling")] = 10
    retraining: Annotated[
        int, msgspec.Meta(ge=1, description="most iterations of L-BFGS in one round")
    ] = 50
    tolerance: Annotated[
        float,
        msgspec.Meta(ge=0, lt=1, description="stop when a smaller share of the labels changes"),
    ] = 1e-3
    omega: Annotated[
        float, msgspec.Meta(ge=0, description="weight of the CRF's transitions in decoding")
    ] = 1.0
    transitions: Annotated[
        Literal["raw", "centered"],
        msgspec.Meta(description="in decoding: as trained, or less row and column means"),
    ] = "raw"
    column: Annotated[str, msgspec.Meta(description="column whose n-grams are the types")] = "word"
    feature_pruning: FeaturePruning = "posterior"
    keep: Keep = "last"


def mix(marginals: F64, types: F64, vertex_of: I32, alpha: float) -> F64:
    """Subramanya et al. (2010), equation 4: alpha p + (1 - alpha) q[vertex], float64[N, L].

    Tokens outside the graph keep p.
    """
    inside = (vertex_of >= 0)[:, None]
    return np.where(inside, alpha * marginals + (1 - alpha) * types[vertex_of], marginals)


def decode(
    crf: ChainCRF, data: EncodedCorpus, mixed: F64, omega: float = 1.0, *, centered: bool = False
) -> I32:
    """argmax of sum_t log mixed_t(y_t) + omega (transition scores of the CRF): int32[N].

    mixed: float64[N, L].  As printed the step depends on how the CRF's scores are shared out
    between labels and transitions (docs/specs/graph_self_training.md, erratum 10); `centered`
    does not.
    """
    tables = Tables.unpack(crf.layout, _transition_weights(crf.layout, crf.weights, centered))
    paths = [np.empty(0, np.int32)]
    for batch in data.batches:
        arcs = batch_potentials(tables, data, batch, crf.transition_mask)
        node, edge = _times(omega, arcs.node), _times(omega, arcs.edge)
        node += np.log(np.maximum(mixed[batch.tokens], FLOOR))
        paths.append(BatchPotentials(batch, node, edge).viterbi())
    return np.concatenate(paths)


def _times(omega: float, scores: F64) -> F64:
    """omega * scores; what is impossible stays so at omega = 0."""
    return np.multiply(omega, scores, out=scores.copy(), where=np.isfinite(scores))


def _transition_weights(layout: Layout, weights: F64, centered: bool) -> F64:
    """Copy of the flat weights without those of attributes; transitions centered if asked.

    Start and stop scores are label scores of the first and last token in other clothes: centering
    leaves nothing of them.
    """
    kept = weights.copy()
    kept[: layout.bounds[2]] = 0.0
    if centered:
        inner = layout.part(kept, 2)[: layout.n_labels**2].reshape(-1, layout.n_labels)
        center = inner - inner.mean(axis=1, keepdims=True) - inner.mean(axis=0) + inner.mean()
        kept[layout.bounds[2] : layout.bounds[4]] = 0.0
        inner[:] = center
    return kept


@dataclass
class TypeTrainer:
    """Algorithm 1 over encoded text.

    labels: int32[N_l] of gold; vertex_of: int32[N_l + N_u], the labeled tokens first, then those
    of each unlabeled part; smooth: float64[V, L] -> float64[V, L], type posteriors to the ones
    that are mixed in.
    """

    crf: ChainCRF
    gold: EncodedCorpus
    labels: I32
    unlabeled: list[EncodedCorpus]
    vertex_of: I32
    n_vertices: int
    smooth: Callable[[F64], F64]
    params: TypeParams
    run: RunContext
    guesses: list[I32] = field(default_factory=list)
    #: int32[N] development labels, to be scored after every round
    dev: tuple[EncodedCorpus, I32] | None = None

    def train(self, name: str) -> None:
        """The supervised CRF, then rounds until the labels settle; the record goes to `name`."""
        if self.crf.layout.order != 1:
            raise UserError(
                "self-training over types knows first-order chains", hint="--model crf1"
            )
        rounds: list[dict[str, Any]] = []
        trace: dict[str, Any] = {"rounds": rounds, "stopped": "rounds"}
        self.run.trace[name] = trace
        trace["first"] = self._with_dev(self._fit().record())
        if not self.unlabeled:
            trace["stopped"] = "no unlabeled text"
            return
        if self.params.feature_pruning == "posterior":
            self.prune()
            trace["first"]["plausible_weights"] = self.crf.layout.size
        models = [(trace["first"].get("dev_accuracy", 0.0), self.crf.weights)]
        for number in range(1, self.params.rounds + 1):
            changed = self.relabel()
            rounds.append(self._with_dev(self._round(changed)))
            models.append((rounds[-1].get("dev_accuracy", 0.0), self.crf.weights))
            self.run.progress(
                f"round {number}: {changed:.2%} of the labels changed, {rounds[-1]['status']}"
            )
            if changed < self.params.tolerance:
                trace["stopped"] = "labels settled"
                break
        if self.params.keep == "best" and self.dev is not None:
            trace["kept_round"] = max(range(len(models)), key=lambda i: models[i][0])
            self.crf.weights = models[trace["kept_round"]][1]

    def _round(self, changed: float) -> dict[str, Any]:
        result = self._fit()
        counts = np.bincount(np.concatenate(self.guesses), minlength=len(self.crf.labels))
        return {"changed": changed, "labels": counts.tolist(), **result.record()}

    def prune(self) -> None:
        """Keep the weights of plausible (attribute, label) pairs alone, see `crf.support`."""
        p = self.marginals()
        parts = [self.gold, *self.unlabeled]
        spans = [slice(*self.borders[i : i + 2]) for i in range(len(parts))]
        self.crf = prune(
            self.crf,
            self.gold,
            self.labels,
            [(data, p[span]) for data, span in zip(parts, spans, strict=True)],
        )
        self.gold, *self.unlabeled = [self.crf.reencode(data) for data in parts]
        if self.dev is not None:
            self.dev = self.crf.reencode(self.dev[0]), self.dev[1]

    def relabel(self) -> float:
        """Lines 4 to 9: new labels of the unlabeled text; share that changed (1 at first)."""
        p = self.marginals()
        with self.run.phase("types"):
            means, _ = type_means(self.vertex_of, p, self.n_vertices)
            q = self.smooth(means)
        old, self.guesses = self.guesses, []
        centered = self.params.transitions == "centered"
        with self.run.phase("decode"):
            for i, data in enumerate(self.unlabeled):
                span = slice(*self.borders[i + 1 : i + 3])
                mixed = mix(p[span], q, self.vertex_of[span], self.params.alpha)
                self.guesses.append(
                    decode(self.crf, data, mixed, self.params.omega, centered=centered)
                )
        if not old:
            return 1.0
        pairs = zip(old, self.guesses, strict=True)
        return sum(int(np.count_nonzero(a != b)) for a, b in pairs) / sum(map(len, old))

    def marginals(self) -> F64:
        """Node marginals of labeled and unlabeled tokens under the CRF, float64[N, L]."""
        p = np.empty((len(self.vertex_of), len(self.crf.labels)))
        with self.run.phase("marginals"):
            for i, data in enumerate([self.gold, *self.unlabeled]):
                p[slice(*self.borders[i : i + 2])] = self.crf.marginals(data)
        return p

    @property
    def borders(self) -> I64:
        """Token borders of the parts, labeled first: int64[parts + 1]."""
        sizes = [int(data.offsets[-1]) for data in (self.gold, *self.unlabeled)]
        return np.cumsum([0, *sizes])

    def _fit(self) -> TrainingResult:
        """Subramanya et al. (2010), equation 5 (equation 1 in the first training), warm start."""
        parts = [(self.gold, HardLabels(self.labels))]
        for data, guess in zip(self.unlabeled, self.guesses, strict=False):
            parts.append((data, HardLabels(guess, np.full(len(data.lengths), self.params.eta))))
        options = self.params.options()
        if self.guesses:  # warm, and the next round has other labels: it need not be solved
            most = min(options.max_iterations, self.params.retraining)
            options = replace(options, max_iterations=most)
        with self.run.phase("train"):
            return self.crf.train(parts, self.params.sigma2, options=options)

    def _with_dev(self, entry: dict[str, Any]) -> dict[str, Any]:
        return with_dev(entry, self.crf, self.dev)
