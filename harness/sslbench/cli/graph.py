"""``sslbench graph``: statistics of similarity graphs, and neighbors of a vertex."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sslbench.cli.options import format_option, request_options
from sslbench.cli.text import echo, table, warn_of_problems
from sslbench.engine.errors import UserError
from sslbench.experiment.request.request import TrainRequest

if TYPE_CHECKING:
    from sslbench.engine.corpus import Corpus
    from sslbench.engine.graph.build import Graph
    from sslbench.engine.graph.diagnostics import Figures
    from sslbench.engine.types import I32
    from sslbench.experiment.data import Dataset
    from sslbench.experiment.inputs.protocol import Draw
    from sslbench.experiment.records.record import ProtocolSpec


#: propagation weights of edges and of the uniform distribution (Subramanya et al. 2010)
MU, NU = 0.5, 0.01


_OPTIONS = (
    request_options(
        TrainRequest,
        *("dataset", "labeled", "unlabeled", "text", "params", "seed", "threads"),
        dataset={"multiple": False, "required": True},
        params={"help": "DATASET.KEY: an option of the dataset; suffixes=@FILE: the suffixes."},
        threads={"help": "Default: all cores."},
    ),
    click.option(
        "--similarity",
        default="subramanya2010",
        show_default=True,
        help="Of vertices, see sslbench list similarities.",
    ),
    click.option(
        "--k", type=click.IntRange(min=1), default=5, show_default=True, help="Neighbors."
    ),
    click.option(
        "--symmetry", type=click.Choice(["union", "mutual"]), default="union", show_default=True
    ),
    click.option(
        "--max-df", type=click.IntRange(min=2), help="Features of more vertices are ignored."
    ),
    format_option(["table", "json"]),
)


def _with_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.group("graph")
def command() -> None:
    """Show statistics of the similarity graph of a dataset, or what lies near one vertex."""


@command.command("stats")
@_with_options
def stats(**given: Any) -> None:
    """Show size, hubs, distance to labeled vertices, purity of neighborhoods and accuracy.

    The vertices are the trigrams of the labeled sample and the unlabeled text of a run. Shares are
    in [0, 1]; "none" is a mean of no values. Gold labels of unlabeled text are used if the dataset
    has them: these statistics are for evaluation only, methods do not get them. The label
    distributions of labeled vertices are propagated to the optimum.
    """
    text = _load(given)
    figures = _figures(_graph(given, text.words), text)
    if given["form"] == "json":
        echo(json.dumps(figures, indent=1))
    else:
        echo(table([(name, _number(x)) for name, x in figures.items()], indent=""))


@command.command("neighbors")
@_with_options
@click.argument("ngram")
def neighbors(ngram: str, **given: Any) -> None:
    """Show the neighbors of NGRAM, such as "the book of", with weights and labels.

    Words are separated by spaces; <s> and </s> are the ends of a sentence. The first line is the
    vertex itself. Tokens are counted in all text, labels in the labeled sentences.
    """
    from sslbench.engine.graph.neighborhood import neighborhood

    text = _load(given)
    gold = text.gold[: text.n_labeled]
    found = neighborhood(_graph(given, text.words), ngram.split(), gold, text.labels)
    if given["form"] == "json":
        echo(json.dumps([asdict(each) for each in found], indent=1, ensure_ascii=False))
        return
    rows = [("weight", "n-gram", "tokens", "labels")]
    for each in found:
        labels = ", ".join(f"{label} {count}" for label, count in each.labels.items())
        rows.append((f"{each.weight:.4f}", " ".join(each.words), f"{each.tokens:,}", labels))
    echo(table(rows, indent=""))


class _Text(NamedTuple):
    """The words of all text, the labeled sentences first; int32[N] gold codes (-1 = unknown)."""

    words: Corpus
    gold: I32
    n_labeled: int
    labels: list[str]


def _load(given: dict[str, Any]) -> _Text:
    """The text of a run, with what is known of its labels."""
    from sslbench.cli.messages import tell
    from sslbench.experiment.data import DataHome
    from sslbench.experiment.execute.startup import use_threads
    from sslbench.experiment.inputs.protocol import (
        draw,
        resolve_text,
    )
    from sslbench.experiment.planning.settings import dataset_options, parse_settings, plain_value
    from sslbench.experiment.planning.task import load_registered
    from sslbench.experiment.records.record import ProtocolSpec
    from sslbench.experiment.request.request import parse_labeled, parse_unlabeled
    from sslbench.plugins import registry

    given["threads"] = use_threads(given["threads"])
    plugins = registry()
    warn_of_problems(plugins)
    info = plugins.dataset(given["dataset"])
    settings = list(parse_settings(given["params"]))
    own = {s.key: s.value for s in settings if s.owner == info.name}
    for owner, key, value in (s for s in settings if s.owner != info.name):
        if owner or key != "suffixes":
            raise UserError(f"--set {key}: not of this graph", hint=f"{info.name}.KEY, or suffixes")
        given["suffixes"] = plain_value(value)
    options = dataset_options(info, own)
    dataset = load_registered(info, DataHome(), options, given["seed"])
    labeled = parse_labeled(given["labeled"])
    cap = None if given["unlabeled"] is None else parse_unlabeled(given["unlabeled"])
    protocol = ProtocolSpec(
        labeled=labeled,
        unlabeled=cap,
        text=resolve_text(dataset, labeled, cap, given["text"]),
        seed=given["seed"],
    )
    text = _text(dataset, protocol, draw(dataset, protocol))
    tell(f"graph of {text.words.n_sentences:,} sentences, {text.words.n_tokens:,} tokens")
    return text


def _text(dataset: Dataset, protocol: ProtocolSpec, drawn: Draw) -> _Text:
    import numpy as np

    from sslbench.engine.corpus import Corpus
    from sslbench.experiment.inputs.protocol import rest_of_train, unlabeled_text

    train = dataset.splits["train"]
    labeled = train.select(drawn.labeled)
    shards = list(unlabeled_text(dataset, protocol))
    words = [Corpus({"word": part.column("word")}, part.offsets) for part in (labeled, *shards)]
    text = Corpus.concatenate(words)
    gold = np.full(text.n_tokens, -1, dtype=np.int32)
    gold[: labeled.n_tokens] = labeled.column("label").codes
    rest = train.select(rest_of_train(dataset, protocol)).column("label").codes
    gold[labeled.n_tokens : labeled.n_tokens + len(rest)] = rest  # external text has no gold labels
    return _Text(text, gold, labeled.n_tokens, train.column("label").vocabulary.strings)


def _graph(given: dict[str, Any], text: Corpus) -> Graph:
    """The graph that the options describe."""
    from sslbench.cli.messages import tell
    from sslbench.engine.graph.build import build_graph
    from sslbench.engine.graph.options import GraphOptions
    from sslbench.experiment.data import DataHome
    from sslbench.experiment.inputs.problem_graph import registered_similarity

    return build_graph(
        text,
        registered_similarity(given["similarity"], given.get("suffixes")),
        GraphOptions(**{name: given[name] for name in ("k", "symmetry", "max_df")}),
        cache=DataHome().cache,
        threads=given["threads"],
        progress=tell,
    )


def _figures(graph: Graph, text: _Text) -> Figures:
    """Statistics of the graph."""
    from sslbench.engine.graph.diagnostics import diagnostics, label_accuracy, purity
    from sslbench.engine.graph.propagation.quadratic import propagate_optimum
    from sslbench.engine.graph.tokens import empirical

    gold, n_labeled = text.gold, text.n_labeled
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
