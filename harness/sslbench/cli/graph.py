"""``sslbench graph``: statistics of similarity graphs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from sslbench.cli.options import SEED
from sslbench.cli.text import echo, table, warn_of_problems

if TYPE_CHECKING:
    from sslbench.corpus import Corpus
    from sslbench.experiment.data import DataHome, Dataset
    from sslbench.experiment.protocol import Draw
    from sslbench.experiment.record import ProtocolSpec
    from sslbench.graph.diagnostics import Figures
    from sslbench.types import I32


#: propagation weights of edges and of the uniform distribution (Subramanya et al. 2010)
MU, NU = 0.5, 0.01


@click.group("graph")
def command() -> None:
    """Show statistics of the similarity graph of a dataset."""


@command.command("stats")
@click.option("--dataset", required=True, help="Name of a dataset.")
@click.option(
    "--labeled", default="all", metavar="N|P%|all", help="Number or share of labeled sentences."
)
@click.option(
    "--unlabeled", metavar="N|Nt", help="Cap on the unlabeled text: N sentences, or Nt = N tokens."
)
@click.option(
    "--text", type=click.Choice(["rest", "external", "all"]), help="Origin of the unlabeled text."
)
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option(
    "--similarity",
    default="subramanya2010",
    show_default=True,
    help="Of vertices, see sslbench list similarities.",
)
@click.option("--k", type=click.IntRange(min=1), default=5, show_default=True, help="Neighbors.")
@click.option(
    "--symmetry", type=click.Choice(["union", "mutual"]), default="union", show_default=True
)
@click.option("--max-df", type=click.IntRange(min=2), help="Features of more vertices are ignored.")
@click.option("--threads", type=click.IntRange(min=1), help="Default: all cores.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
def stats(**given: Any) -> None:
    """Show size, hubs, distance to labeled vertices, purity of neighborhoods and accuracy.

    The vertices are the trigrams of the labeled sample and the unlabeled text of a run. Shares are
    in [0, 1]; "none" is a mean of no values. Gold labels of unlabeled text are used if the dataset
    has them: these statistics are for evaluation only, methods do not get them. The label
    distributions of labeled vertices are propagated to the optimum.
    """
    from sslbench.cli.messages import tell
    from sslbench.experiment.data import DataHome
    from sslbench.experiment.execute.threads import use_threads
    from sslbench.experiment.protocol import draw, parse_labeled, parse_unlabeled, resolve_text
    from sslbench.experiment.record import ProtocolSpec
    from sslbench.experiment.training import load_registered
    from sslbench.plugins import registry

    given["threads"] = use_threads(given["threads"])
    plugins, home = registry(), DataHome()
    warn_of_problems(plugins)
    dataset = load_registered(plugins.dataset(given["dataset"]), home, {}, given["seed"])
    labeled, cap = parse_labeled(given["labeled"]), given["unlabeled"]
    protocol = ProtocolSpec(
        labeled=labeled,
        unlabeled=None if cap is None else parse_unlabeled(cap),
        text=resolve_text(dataset, labeled, given["text"]),
        seed=given["seed"],
    )
    text, gold, n_labeled = _text(dataset, protocol, draw(dataset, protocol))
    tell(f"graph of {text.n_sentences:,} sentences, {text.n_tokens:,} tokens")
    figures = _figures(home, given, text, gold, n_labeled)
    if given["form"] == "json":
        echo(json.dumps(figures, indent=1))
    else:
        echo(table([(name, _number(x)) for name, x in figures.items()], indent=""))


def _text(dataset: Dataset, protocol: ProtocolSpec, drawn: Draw) -> tuple[Corpus, I32, int]:
    """Labeled and unlabeled words, int32[N] gold codes (-1 = unknown), number of labeled tokens."""
    import numpy as np

    from sslbench.corpus import Corpus
    from sslbench.experiment.protocol import rest_of_train, unlabeled_text

    train = dataset.splits["train"]
    labeled = train.select(drawn.labeled)
    shards = list(unlabeled_text(dataset, protocol))
    words = [Corpus({"word": part.column("word")}, part.offsets) for part in (labeled, *shards)]
    text = Corpus.concatenate(words)
    gold = np.full(text.n_tokens, -1, dtype=np.int32)
    gold[: labeled.n_tokens] = labeled.column("label").codes
    rest = train.select(rest_of_train(dataset, protocol)).column("label").codes
    gold[labeled.n_tokens : labeled.n_tokens + len(rest)] = rest  # external text has no gold labels
    return text, gold, labeled.n_tokens


def _figures(
    home: DataHome, given: dict[str, Any], text: Corpus, gold: I32, n_labeled: int
) -> Figures:
    """Build the graph and compute its statistics."""
    from sslbench.cli.messages import tell
    from sslbench.graph.build import build_graph
    from sslbench.graph.diagnostics import diagnostics, label_accuracy, purity
    from sslbench.graph.options import GraphOptions
    from sslbench.graph.propagation.quadratic import propagate_optimum
    from sslbench.graph.similarity import registered_similarity
    from sslbench.graph.tokens import empirical

    options = GraphOptions(**{name: given[name] for name in ("k", "symmetry", "max_df")})
    graph = build_graph(
        text,
        registered_similarity(given["similarity"]),
        options,
        cache=home.cache,
        threads=given["threads"],
        progress=tell,
    )
    vertex_of, V, K = graph.vertices.vertex_of, graph.W.shape[0], int(gold.max(initial=0)) + 1
    r, labeled = empirical(vertex_of[:n_labeled], gold[:n_labeled], V, K)
    q = propagate_optimum(graph.W, r, labeled, MU, NU)
    return {
        **diagnostics(graph.W, labeled),
        **purity(graph.W, *empirical(vertex_of, gold, V, K)),
        **label_accuracy(q, labeled, vertex_of[n_labeled:], gold[n_labeled:]),
    }


def _number(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"
