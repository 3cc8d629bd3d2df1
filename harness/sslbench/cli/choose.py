"""``sslbench choose``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sslbench.cli.messages import tell
from sslbench.cli.options import DURATION, PATH, request_options
from sslbench.cli.text import checked_registry, echo, table
from sslbench.experiment.execute.startup import use_threads
from sslbench.experiment.request.request import RunRequest, TrainRequest

if TYPE_CHECKING:
    from sslbench.choosing import Candidate, Choice
    from sslbench.experiment.run.saved import TrainedTagger
    from sslbench.report.held_out import Range

#: how many of the methods that cannot be told apart are named
NAMED = 4


@click.command("choose")
@request_options(
    RunRequest,
    *(
        "data",
        "columns",
        "encoding",
        "separator",
        "comment",
        "scheme",
        "raw",
        "label_names",
        "folds",
        "method",
        "featurizer",
        "store",
        "threads",
    ),
    data={"required": True},
    folds={"default": 5, "type": click.IntRange(2, 100)},
    method={"required": False, "help": "To compare. Default: all that fit."},
    featurizer={"help": "Name or template file. Default: all that fit."},
    threads={"help": "Default: all cores."},
)
@click.option("--budget", type=DURATION, default="10m", show_default=True, help="E.g. 90s or 1h.")
@click.option(
    "--save",
    "target",
    type=PATH,
    metavar="MODEL",
    help="Train the chosen method on all labeled sentences and keep the tagger.",
)
@click.option(
    "--label-next",
    "label_next",
    type=(click.IntRange(min=1), PATH),
    metavar="N FILE",
    help="Write the N unlabeled sentences to label next, with predicted labels to correct.",
)
def command(**given: Any) -> None:
    """Find features and a method for your own data, by cross-validation within a time budget.

    First the features are compared, with the supervised CRF, then the methods that learn from the
    unlabeled file, those of the largest published gain per second first. A method is chosen only if
    it is clearly better than the supervised CRF. Folds keep documents together.
    """
    from sslbench.choosing import choose
    from sslbench.experiment.records.store import Store

    budget, target, label_next = (given.pop(name) for name in ("budget", "target", "label_next"))
    given["threads"] = use_threads(given["threads"])
    checked_registry()
    request = RunRequest(**given)
    if label_next is not None:
        _check_text(request)
    keeps = target is not None or label_next is not None
    choice = choose(request, budget=budget, store=Store(request.store), keeps=keeps, notice=tell)
    _show(choice)
    if keeps:
        tagger = _trained(request, choice.chosen)
    if target is not None:
        tagger.save(target)
        tell(f"{choice.chosen}, trained on all labeled sentences, is saved to {target}")
    if label_next is not None:
        _write_next(tagger, *label_next)


def _show(choice: Choice) -> None:
    metric = choice.tried[choice.chosen].primary_metric
    rows: list[tuple[str, ...]] = [
        ("method", "features", metric, "range", f"to {choice.baseline.method}", "CPU s")
    ]
    rows += [_row(choice, candidate) for candidate in choice.tried]
    rows += [(c.method, c.featurizer, "-", "", why, "") for c, why in choice.left_out.items()]
    echo(table(rows, indent=""))
    echo()
    for line in _answer(choice):
        echo(line)


def _answer(choice: Choice) -> Iterator[str]:
    """What to use, what score to expect, how sure that is, and what more labels would bring."""
    from sslbench.choosing import LEVEL

    chosen, baseline = choice.chosen, choice.baseline
    record, gain = choice.tried[chosen], _difference(choice, chosen)
    sentences = record.data["sentences"]["labeled"]
    if choice.close:
        names = [each.method for each in choice.close]
        if len(names) > NAMED:
            names[NAMED:] = [f"{len(names) - NAMED} more"]
        yield f"{sentences} sentences cannot tell {chosen.method} from {', '.join(names)}"
    yield f"use {chosen}" + (f": {gain} to {baseline.method}" if gain else "")
    if gain and choice.corrected_p > LEVEL:
        tried, p = len(choice.against_baseline), f"{choice.corrected_p:.2f}"
        yield f"of {tried} methods, one may be this much better by chance (p {p})"
    protocol = record.spec.protocol
    by = protocol.fold_by if isinstance(protocol.fold_by, str) else "random sentences"
    held_out = {"blocks": "blocks of adjacent sentences"}.get(by, by)
    yield (
        f"expect {record.primary_metric} {_ends(choice.ranges[chosen])} on new text of this kind"
        f" (95 % interval; {protocol.folds} folds of {held_out})"
    )
    if choice.half is not None:
        yield _more_labels(choice.ranges[baseline], choice.half)


def _more_labels(whole: Range, half: Range) -> str:
    """What the second half of the labels brought, and whether more can be expected."""
    gain, width = 100 * (whole.value - half.value), 100 * math.hypot(whole.half, half.half)
    curve = f"half of the labels give {100 * half.value:.1f}, all {100 * whole.value:.1f}"
    if gain <= width:
        return f"{curve}: too close to say what more labels bring"
    low, high = gain - width, min(gain + width, 100 * (1 - whole.value))
    return f"{curve}: as many again may bring {min(low, high):.1f} to {high:.1f} more"


def _ends(score: Range) -> str:
    return f"{100 * score.low:.1f} to {100 * score.high:.1f}"


def _row(choice: Choice, candidate: Candidate) -> tuple[str, ...]:
    record, difference = choice.tried[candidate], _difference(choice, candidate)
    score = f"{100 * (record.score or 0):.2f}"
    ends, cpu = _ends(choice.ranges[candidate]), f"{record.cpu_s or 0:.0f}"
    return candidate.method, candidate.featurizer, score, ends, difference, cpu


def _difference(choice: Choice, candidate: Candidate) -> str:
    """To the baseline, in points with the interval; "" for features with the baseline."""
    paired = choice.against_baseline.get(candidate)
    if paired is None:
        return ""
    ends = f"{100 * paired.low:+.1f} to {100 * paired.high:+.1f}"
    return f"{100 * paired.difference:+.1f} ({ends})"


def _trained(request: RunRequest, chosen: Candidate) -> TrainedTagger:
    """The chosen method, trained on all labeled sentences."""
    from sslbench.experiment.run.saved import train_tagger

    whole = TrainRequest(
        chosen.method,
        data=request.data,
        columns=request.columns,
        encoding=request.encoding,
        separator=request.separator,
        comment=request.comment,
        scheme=request.scheme,
        raw=request.raw,
        label_names=request.label_names,
        featurizer=chosen.featurizer,
        threads=request.threads,
        guard=False,
    )
    return train_tagger(whole, notice=lambda text: None, quiet=True)


def _check_text(request: RunRequest) -> None:
    """UserError if the data have no unlabeled text."""
    from sslbench.experiment.data.userdata import find_files
    from sslbench.tagging.next_to_label import no_text

    if request.data_path is not None and "unlabeled" not in find_files(request.data_path):
        raise no_text()


def _write_next(tagger: TrainedTagger, n: int, path: Path) -> None:
    from sslbench.engine.files.atomic import write_atomically
    from sslbench.tagging.next_to_label import next_to_label

    numbers, text = next_to_label(tagger, n)
    write_atomically(path, text.encode())
    tell(f"{path}: the {len(numbers)} sentences to label next; correct the last column")
