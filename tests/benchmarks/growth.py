"""How time and memory grow with tokens, labels, templates and types of a graph.

    SSLBENCH_DATA=... python tests/benchmarks/growth.py [AXIS [SIZE ...]]

Every measurement is a process of its own, with one thread: CPU seconds without compilation, and the
memory above what the process had before.  Exponents are slopes of least squares on logarithms.
Generated text, but for the graph, whose text is that of `graph_scale` (with its datasets).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
from graph_scale import text_of
from scale import WithPos, with_pos
from traces import peak_mb

from sslbench.engine.compilation.compile_time import compile_seconds
from sslbench.engine.compilation.threads import set_number_of_threads
from sslbench.engine.corpus import Column, CorpusShards, StoredShards, Vocabulary, write_shards
from sslbench.engine.crf import ChainModel
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.graph.contexts import context_vectors
from sslbench.engine.graph.neighbors import nearest
from sslbench.engine.graph.vertices import ngram_vertices
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.data import DataHome
from sslbench.experiment.inputs.problem import Problem
from sslbench.plugins import registry
from sslbench_datasets.synth.load import load
from sslbench_methods.graph_self_training.templates import SUBRAMANYA2010
from sslbench_methods.jess_cm.method import JessCM
from sslbench_methods.supervised import Supervised

Work = Callable[[], object]
SENTENCES, ITERATIONS = 1_000, 10  # of a supervised training


def problem(sentences: int, unlabeled: int = 1) -> tuple[Problem, WithPos]:
    """Labeled sentences of the generated language, and more of it, with `chunk39`."""
    home = DataHome(Path("/nowhere"), Path("/nowhere"), offline=True)
    dataset = load(home, train=sentences, unlabeled=unlabeled, seed=0)
    assert dataset.external is not None
    labeled = with_pos(dataset.splits["train"])
    labels = tuple(labeled.column("label").vocabulary.strings)
    none = CorpusShards(labeled.drop("label").between(0, 0))
    featurizer = registry().featurizer("chunk39").load()()
    result = Problem("tagging", None, labels, labeled, none, None, featurizer, ChainModel())
    return result, WithPos(dataset.external())


def train(own: Problem) -> Work:
    params = Supervised.Params(max_iterations=ITERATIONS, ftol=0)
    return lambda: Supervised().fit(own, params, RunContext())


def tokens(size: int, folder: Path) -> Work:
    """JESS-CM, one round: symbols and counts of so many unlabeled tokens, 400 labeled sentences."""
    own, text = problem(400, size // 10)
    write_shards(folder / "text", text)
    names = own.labeled.columns
    stored = StoredShards(folder / "text", {n: own.labeled.column(n).vocabulary for n in names})
    params = JessCM.Params(rounds=1, max_iterations=ITERATIONS)
    return lambda: JessCM().fit(replace(own, unlabeled=stored), params, RunContext())


def labels(size: int, folder: Path) -> Work:
    """Ten iterations of a supervised training on 1,000 sentences, a random label for each word."""
    own, _ = problem(SENTENCES)
    column, names = own.labeled.column("word"), tuple(f"L{i:02}" for i in range(size))
    codes = np.random.default_rng(0).integers(0, size, len(column.vocabulary))[column.codes]
    labeled = own.labeled.with_column("label", Column(Vocabulary(names), codes))
    return train(replace(own, labels=names, labeled=labeled))


def templates(size: int, folder: Path) -> Work:
    """Ten iterations of a supervised training on 1,000 sentences, templates out of `chunk39`."""
    own, _ = problem(SENTENCES)
    every = own.featurizer.templates
    chosen = [every[i] for i in np.linspace(0, len(every) - 1, size).astype(int)]
    return train(replace(own, featurizer=TemplateFeaturizer(chosen)))


def types(size: int, folder: Path) -> Work:
    """Vectors and five nearest neighbors of about so many trigram types of newswire and biology."""
    text = text_of(size)
    how = SUBRAMANYA2010
    return lambda: nearest(context_vectors(text, ngram_vertices(text), how), 5, threads=1)


AXES: dict[str, tuple[Callable[[int, Path], Work], list[int]]] = {
    "tokens": (tokens, [10**5, 10**6, 10**7]),
    "labels": (labels, [10, 20, 40, 80]),
    "templates": (templates, [5, 10, 20, 38]),
    "types": (types, [10**4, 10**5, 10**6]),
}


def measure(axis: str, size: int) -> dict[str, float]:
    """In this process, after the same with a small size."""
    set_number_of_threads(1)
    make, sizes = AXES[axis]
    with tempfile.TemporaryDirectory() as small, tempfile.TemporaryDirectory() as folder:
        make(min(sizes) if axis != "tokens" else 10**4, Path(small))()
        work = make(size, Path(folder))
        memory = psutil.Process().memory_info().rss / 2**20
        cpu = time.process_time() - compile_seconds().cpu
        work()
        cpu = time.process_time() - compile_seconds().cpu - cpu
        return {"size": size, "cpu": cpu, "mb": peak_mb() - memory, "all": peak_mb()}


def table(axis: str, sizes: list[int]) -> None:
    """Print the rows of an axis as they are known."""
    rows: list[dict[str, float]] = []
    for size in sizes:
        command = [sys.executable, __file__, "--child", axis, str(size)]
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows.append(json.loads(result.stdout))
        numbers = "{cpu:.2f} | {mb:.0f} | {all:.0f}".format(**rows[-1])
        last = size == sizes[-1] and len(rows) > 1
        powers = (f"{exponent(rows, name):.2f}" if last else "" for name in ("cpu", "mb"))
        print(f"| {axis} | {size:,} | {numbers} |", " | ".join(powers), "|", flush=True)


def exponent(rows: list[dict[str, float]], name: str) -> float:
    x, y = (np.log([row[key] for row in rows]) for key in ("size", name))
    return float(np.polyfit(x, y, 1)[0])


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
        return
    print("| | size | CPU s | MB more | MB in all | s grow as | MB more grow as |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for axis in sys.argv[1:2] or AXES:
        table(axis, [int(float(size)) for size in sys.argv[2:]] or AXES[axis][1])


if __name__ == "__main__":
    main()
