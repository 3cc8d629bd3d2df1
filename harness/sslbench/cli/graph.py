"""``sslbench graph``: statistics of similarity graphs, and neighbors of a vertex."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from sslbench.cli.messages import tell
from sslbench.cli.options import format_option, request_options
from sslbench.cli.text import checked_registry, echo, table
from sslbench.engine.errors import UserError
from sslbench.experiment.execute.startup import use_threads
from sslbench.experiment.request.request import TrainRequest

if TYPE_CHECKING:
    from sslbench.engine.graph.build import Graph
    from sslbench.report.graph_figures import GraphText

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
    from sslbench.report.graph_figures import graph_figures

    figures = graph_figures(*_graph(given))
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

    graph, text = _graph(given)
    near = neighborhood(graph, ngram.split(), text.gold[: text.n_labeled], text.labels)
    if given["form"] == "json":
        echo(json.dumps([asdict(each) for each in near], indent=1, ensure_ascii=False))
        return
    rows = [("weight", "n-gram", "tokens", "labels")]
    for each in near:
        labels = ", ".join(f"{label} {count}" for label, count in each.labels.items())
        rows.append((f"{each.weight:.4f}", " ".join(each.words), f"{each.tokens:,}", labels))
    echo(table(rows, indent=""))


def _graph(given: dict[str, Any]) -> tuple[Graph, GraphText]:
    """The graph that the options describe, and its text."""
    from sslbench.engine.graph.options import GraphOptions
    from sslbench.experiment.planning.settings import parse_settings, plain_value
    from sslbench.report.graph_figures import graph_of, graph_text

    threads, plugins = use_threads(given["threads"]), checked_registry()
    name = plugins.dataset(given["dataset"]).name
    options, suffixes = {}, None
    for owner, key, value in parse_settings(given["params"]):
        if owner == name:
            options[key] = value
        elif owner or key != "suffixes":
            raise UserError(f"--set {key}: not of this graph", hint=f"{name}.KEY, or suffixes")
        else:
            suffixes = plain_value(value)
    run = (given[key] for key in ("labeled", "unlabeled", "text", "seed"))
    text = graph_text(plugins, name, options, *run)
    tell(f"graph of {text.words.n_sentences:,} sentences, {text.words.n_tokens:,} tokens")
    shape = GraphOptions(**{key: given[key] for key in ("k", "symmetry", "max_df")})
    return graph_of(text, given["similarity"], suffixes, shape, threads, tell), text


def _number(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"
