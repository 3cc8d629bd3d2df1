"""Behaviors of `support.hostile_methods` that try to find the labels of the test sentences.

They predict with them if they do.
"""

from __future__ import annotations

import ctypes
import gc
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from sslbench import Corpus, Problem
from sslbench.experiment.context.context import RunContext
from support.hostile_methods import Behavior, Constant

CHEATS: dict[str, Behavior] = {}


def cheat(function: Behavior) -> Behavior:
    CHEATS[function.__name__] = function
    return function


def _labels_of(corpus: Corpus) -> list[str]:
    column = corpus.column("label")
    return [column.vocabulary.strings[code] for code in column.codes]


def _with(problem: Problem, found: list[str]) -> Any:
    """A tagger that answers with these labels where the number of tokens fits."""
    labels = sorted(set(found))
    codes = np.array([labels.index(each) for each in found], dtype=np.int32)
    return Constant(
        labels,
        lambda corpus: (
            codes if len(codes) == corpus.n_tokens else np.zeros(corpus.n_tokens, np.int32)
        ),
    )


@cheat
def calls_the_loader(problem: Problem, run: RunContext) -> Any:
    from sslbench import DataHome, registry

    dataset = registry().dataset("synth").load()(DataHome(), test=50)
    return _with(problem, _labels_of(dataset.splits["test"]))


@cheat
def imports_the_generator(problem: Problem, run: RunContext) -> Any:
    from sslbench import DataHome
    from sslbench_datasets.synth.load import load

    return _with(problem, _labels_of(load(DataHome(), test=50).splits["test"]))


@cheat
def starts_python(problem: Problem, run: RunContext) -> Any:
    code = (
        "from sslbench import DataHome, registry\n"
        "data = registry().dataset('synth').load()(DataHome(), test=50)\n"
        "c = data.splits['test'].column('label')\n"
        "print(*[c.vocabulary.strings[i] for i in c.codes])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return _with(problem, done.stdout.split())


def _corpora() -> list[Corpus]:
    return [each for each in gc.get_objects() if isinstance(each, Corpus)]


@cheat
def collects_garbage(problem: Problem, run: RunContext) -> Any:
    own = problem.labeled.n_tokens
    found = [c for c in _corpora() if "label" in c.columns and c.n_tokens != own]
    return _with(problem, _labels_of(found[0]))


@cheat
def looks_into_frames(problem: Problem, run: RunContext) -> Any:
    frame: Any = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            dataset = getattr(value, "dataset", value)
            if "test" in getattr(dataset, "splits", {}):
                return _with(problem, _labels_of(dataset.splits["test"]))
        frame = frame.f_back
    raise LookupError("no frame has a dataset")


@cheat
def replaces_the_scorer(problem: Problem, run: RunContext) -> None:
    import sslbench.experiment.metrics as metrics
    import sslbench.experiment.run.scoring as scoring
    from sslbench.experiment.metrics import SentenceCounts

    def perfect(*args: Any, **more: Any) -> Any:
        found = SentenceCounts(np.full(50, 10), np.full(50, 10))
        return metrics.Scores({"accuracy": 1.0}, found)  # type: ignore[call-arg]

    for module in (metrics, scoring):
        module.score = perfect  # type: ignore[attr-defined]


@cheat
def edits_the_store(problem: Problem, run: RunContext) -> None:
    for path in Path(os.environ["ATTACKED_STORE"]).rglob("*.json"):
        path.write_text(path.read_text().replace("0.", "0.9"))


@cheat
def writes_a_record(problem: Problem, run: RunContext) -> None:
    Path(os.environ["ATTACKED_STORE"], "0123456789abcdef.json").write_text("{}")


@cheat
def reads_the_parents_memory(problem: Problem, run: RunContext) -> None:
    parent = os.getppid()
    for line in Path(f"/proc/{parent}/maps").read_text().splitlines():
        start = int(line.partition("-")[0], 16)
        with open(f"/proc/{parent}/mem", "rb") as memory:
            memory.seek(start)
            memory.read(16)


@cheat
def reads_the_parents_files(problem: Problem, run: RunContext) -> None:
    for each in Path(f"/proc/{os.getppid()}/fd").iterdir():
        each.open("rb").read(10)


@cheat
def downloads(problem: Problem, run: RunContext) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(server.getsockname(), timeout=2).close()


def _read(path: Path, problem: Problem) -> Any:
    rows = [line.split() for line in path.read_text().splitlines() if line.strip()]
    return _with(problem, [row[-1] for row in rows])


@cheat
def reads_the_file(problem: Problem, run: RunContext) -> Any:
    return _read(Path(os.environ["ATTACKED_DATA"], "test.txt"), problem)


@cheat
def reads_a_link(problem: Problem, run: RunContext) -> Any:
    link = Path(os.environ["TMPDIR"], "link")
    link.symlink_to(Path(os.environ["ATTACKED_DATA"], "test.txt"))
    return _read(link, problem)


@cheat
def reads_with_cat(problem: Problem, run: RunContext) -> Any:
    target = Path(os.environ["TMPDIR"], "copy")
    with target.open("wb") as stream:
        path = Path(os.environ["ATTACKED_DATA"], "test.txt")
        subprocess.run(["cat", path], stdout=stream, check=True)
    return _read(target, problem)


@cheat
def reads_with_libc(problem: Problem, run: RunContext) -> Any:
    path = os.fsencode(Path(os.environ["ATTACKED_DATA"], "test.txt"))
    descriptor = ctypes.CDLL(None, use_errno=True).open(path, os.O_RDONLY)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "libc")
    Path(os.environ["TMPDIR"], "copy").write_bytes(os.read(descriptor, 10**7))
    return _read(Path(os.environ["TMPDIR"], "copy"), problem)
