"""The similarity graph of the text of a run, and its statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

import numpy as np

from sslbench.engine.corpus import Corpus
from sslbench.engine.graph.build import Graph, build_graph
from sslbench.engine.graph.diagnostics import Figures, diagnostics, label_accuracy, purity
from sslbench.engine.graph.options import GraphOptions
from sslbench.engine.graph.propagation.quadratic import propagate_optimum
from sslbench.engine.graph.tokens import empirical
from sslbench.engine.types import I32
from sslbench.experiment.data import DataHome
from sslbench.experiment.inputs.problem_graph import registered_similarity
from sslbench.experiment.inputs.protocol import draw, resolve_text, rest_of_train, unlabeled_text
from sslbench.experiment.planning.settings import dataset_options
from sslbench.experiment.planning.task import load_registered
from sslbench.experiment.records.record import ProtocolSpec
from sslbench.experiment.request.request import parse_labeled, parse_unlabeled
from sslbench.plugins import Registry

#: propagation weights of edges and of the uniform distribution (Subramanya et al. 2010)
MU, NU = 0.5, 0.01


class GraphText(NamedTuple):
    """The words of all text, the labeled sentences first; int32[N] gold codes (-1 = unknown)."""

    words: Corpus
    gold: I32
    n_labeled: int
    labels: list[str]


def graph_text(
    plugins: Registry,
    dataset: str,
    options: dict[str, str],
    labeled: str,
    unlabeled: str | None,
    text: Literal["rest", "external", "all"] | None,
    seed: int,
) -> GraphText:
    """Load the text of a run, with the gold labels that its dataset has.

    options: of the dataset, as text.  labeled, unlabeled, text, seed: as of `sslbench run`.
    """
    info = plugins.dataset(dataset)
    loaded = load_registered(info, DataHome(), dataset_options(info, options), seed)
    size, cap = parse_labeled(labeled), None if unlabeled is None else parse_unlabeled(unlabeled)
    source = resolve_text(loaded, size, cap, text)
    protocol = ProtocolSpec(labeled=size, unlabeled=cap, text=source, seed=seed)
    train = loaded.splits["train"]
    sample = train.select(draw(loaded, protocol).labeled)
    parts = [sample, *unlabeled_text(loaded, protocol)]
    words = Corpus.concatenate(
        [Corpus({"word": part.column("word")}, part.offsets) for part in parts]
    )
    gold = np.full(words.n_tokens, -1, dtype=np.int32)
    gold[: sample.n_tokens] = sample.column("label").codes
    rest = train.select(rest_of_train(loaded, protocol)).column("label").codes
    gold[sample.n_tokens : sample.n_tokens + len(rest)] = rest  # external text has no gold labels
    return GraphText(words, gold, sample.n_tokens, train.column("label").vocabulary.strings)


def graph_of(
    text: GraphText,
    similarity: str,
    suffixes: Iterable[str] | None,
    options: GraphOptions,
    threads: int,
    progress: Callable[[str], None],
) -> Graph:
    """Build the graph of a text, or read it from the cache. suffixes: see docs/plugins.md."""
    chosen = registered_similarity(similarity, suffixes)
    cache = DataHome().cache
    return build_graph(text.words, chosen, options, cache=cache, threads=threads, progress=progress)


def graph_figures(graph: Graph, text: GraphText) -> Figures:
    """Return size, hubs, distances, purity, and accuracy of labels propagated to the optimum."""
    gold, n_labeled = text.gold, text.n_labeled
    vertex_of, V, K = graph.vertices.vertex_of, graph.W.shape[0], int(gold.max(initial=0)) + 1
    r, labeled = empirical(vertex_of[:n_labeled], gold[:n_labeled], V, K)
    q = propagate_optimum(graph.W, r, labeled, MU, NU)
    return {
        **diagnostics(graph.W, labeled),
        **purity(graph.W, *empirical(vertex_of, gold, V, K)),
        **label_accuracy(q, labeled, vertex_of[n_labeled:], gold[n_labeled:]),
    }
