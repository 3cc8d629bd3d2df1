"""``sslbench warmup``."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sslbench.cli.messages import tell
from sslbench.cli.options import JOBS, shared
from sslbench.cli.text import checked_registry, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sslbench.experiment.execute.grid import GridResult

LABELED, UNLABELED = 40, 60  # sentences
#: to compile, a training does not have to end
SHORT = {"max_iterations": 20, "m_iterations": 20, "joint_iterations": 20, "rounds": 2}
PLAIN = "word[0]\nword[-1]\nword[-1]|word[0]\n"
#: kinds of templates, with enough that occur together for bundles
EDGES = f"{PLAIN}word[1]\nbag: word[1..2]\nedge: word[0]\nedge: word[-1]\n"
#: many attributes that occur at different tokens
WINDOW = "".join(f"word[{k}]\n" for k in range(-12, 13))


class Kind(NamedTuple):
    """A text that is made.

    words: how many different ones, used in turn. sentences: how many. tokens: of a sentence.
    long: for kernels of long vectors: words at random, and a brief training of one model.
    """

    labels: int
    words: int
    sentences: int
    tokens: int
    templates: str
    long: bool = False


#: more than 32 labels, on enough tokens for a start on the dual; transitions by position, on enough
#: for bundles; and weights whose vectors are long
KINDS = (
    Kind(36, 97, 400, 8, PLAIN),
    Kind(3, 97, 3_500, 8, EDGES),
    Kind(400, 1_300, 120, 40, WINDOW, long=True),
)


@click.command("warmup")
@shared("method", required=False, help="To compile for. Default: all.")
@shared("model", multiple=True, help="To compile for. Default: all that are linear in weights.")
@JOBS
@click.pass_context
def command(
    ctx: click.Context, /, method: tuple[str, ...], model: tuple[str, ...], jobs: int
) -> None:
    """Compile what runs need, so that the first one does not wait: for images and servers.

    Each method is trained briefly on a little text of each dataset that needs no files, and the
    baseline on more text with many labels, also with weights of transitions by position. The cache
    folder (SSLBENCH_CACHE) gets the machine code, which fits this processor and these versions of
    Python, numba and sslbench. Plugins of others keep theirs in folders that only their runs read.
    """
    from sslbench.engine.files.folders import tell_once

    tell_once("compiling what runs need", "compiling")
    plugins = checked_registry()
    datasets = tuple(d.name for d in plugins.datasets.values() if not (d.files or d.own))
    methods = method or ("all",)
    baselines = [
        name
        for name, info in plugins.methods.items()
        if info.baseline and (name in methods or "all" in methods)
    ]
    linear = [name for name, info in plugins.models.items() if "log_linear" in info.provides]
    result = _run(methods, baselines, datasets, model or tuple(linear), jobs)
    for record in result.failed:
        tell(f"{record.method}: {record.error}")
    seconds = sum(record.timing.get("compile", 0.0) for record in result.records)
    failed = f", {len(result.failed)} failed" if result.failed else ""
    runs = counted(len(result.records) - len(result.skipped), "run")
    tell(f"{runs}{failed}; {seconds:.0f} s of compilation")
    ctx.exit(result.exit_status)


def _run(
    methods: Sequence[str],
    baselines: Sequence[str],
    datasets: Sequence[str],
    models: Sequence[str],
    jobs: int,
) -> GridResult:
    from sslbench.cli.run import run_shown
    from sslbench.experiment.planning.plan import plan
    from sslbench.experiment.records.store import Store
    from sslbench.experiment.request.request import RunRequest
    from sslbench.isolation.start import compiling

    with TemporaryDirectory(prefix="sslbench-warmup-") as folder:
        store = Store(Path(folder) / "runs")
        small: dict[str, Any] = {"labeled": LABELED, "unlabeled": UNLABELED, "jobs": jobs}
        small["params"] = _short(methods)
        requests = [RunRequest(methods, datasets, model=model, **small) for model in models]
        for kind in KINDS if baselines else ():
            given: dict[str, Any] = {**_made(Path(folder) / str(kind.labels), kind), "jobs": jobs}
            if kind.long:
                given["params"] = _short(baselines)
            fitting = models[:1] if kind.long else models
            requests += [RunRequest(baselines, model=model, **given) for model in fitting]
        plain = _features(Path(folder), PLAIN)  # one transition matrix for all positions
        requests += [RunRequest(methods, datasets, model=models[0], featurizer=plain, **small)]
        tasks = [task for each in requests for task in plan(each, store=store, notice=_ignore)]
        return run_shown(tasks, store.folder, compiling, jobs=jobs)


def _short(methods: Sequence[str]) -> dict[str, int]:
    """What ends trainings early: values of parameters that one of the methods has."""
    from sslbench.experiment.planning.description import method_description

    plugins = checked_registry()
    names = plugins.methods if "all" in methods else methods
    known = {key for name in names for key in method_description(plugins, name, {}).params}
    return {key: value for key, value in SHORT.items() if key in known}


def _ignore(line: str) -> None:
    """The text is not the user's: what is recognized in it is no news."""


def _made(folder: Path, kind: Kind) -> dict[str, Any]:
    """Write text and templates to the folder; return the options of a request for them."""
    from random import Random

    folder.mkdir()
    text, rng = folder / "text.txt", Random(0)
    numbers = range(kind.sentences * kind.tokens)
    words = [rng.randrange(kind.words) if kind.long else i % kind.words for i in numbers]
    tokens = [f"w{word}\tL{i % kind.labels}\n" for i, word in enumerate(words)]
    cut = (tokens[i : i + kind.tokens] for i in range(0, len(tokens), kind.tokens))
    text.write_text("\n".join(map("".join, cut)))
    features = _features(folder, kind.templates)
    return {"data": text, "columns": ("word", "label"), "featurizer": features}


def _features(folder: Path, templates: str) -> str:
    """Write templates to the folder; return their path."""
    path = folder / "templates.txt"
    path.write_text(templates)
    return str(path)
