"""How the search for neighbors grows with the graph, beside sparse_dot_topn and scipy.

    SSLBENCH_DATA=... python tests/benchmarks/graph_scale.py --out scale.jsonl

The text is newswire, questions and biology (datasets `questions` and `bio`, whose files must be
there), cut to give about the wanted numbers of trigram types; vectors as Subramanya et al. (2010).
Every measurement is a process of its own, so that its peak memory is its own, on one thread; a line
of JSON is written as soon as it is known. CPU seconds count: the machine may be shared. Peers may
run on a sample of rows and are then scaled up (`rows`).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy import sparse

SIZES = (62_500, 125_000, 250_000, 500_000, 1_000_000)
SAMPLE = {"sparse_dot_topn": 20_000, "scipy": 1_000}  # rows of a peer on more vertices than FULL
FULL = 250_000
BATCH = 250  # rows of scipy's product at a time


def text_of(vertices: int):
    """Labeled and unlabeled words with about so many trigram types."""
    from sslbench.engine.corpus import Column, Corpus, Vocabulary
    from sslbench.engine.graph.vertices import ngram_vertices
    from sslbench.experiment.data import DataHome
    from sslbench.plugins import registry

    parts, strings = [], []
    for name in ("questions", "bio"):
        dataset = registry().dataset(name).load()(DataHome())
        shards = [dataset.splits["train"], *dataset.external()] if not parts else dataset.external()
        for shard in shards:
            parts.append(np.diff(shard.offsets))
            strings.append(shard.column("word").strings())
    word = Vocabulary()
    codes = np.concatenate([word.encode(part) for part in strings])
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(parts))])
    text = Corpus({"word": Column(word, codes)}, offsets)
    whole = len(ngram_vertices(text))
    if whole <= vertices:
        return text
    low, high = 1, text.n_sentences
    order = np.random.default_rng(0).permutation(text.n_sentences)
    while high - low > text.n_sentences // 500:
        middle = (low + high) // 2
        if len(ngram_vertices(text.select(np.sort(order[:middle])))) < vertices:
            low = middle
        else:
            high = middle
    return text.select(np.sort(order[:high]))


def make(vertices: int, path: Path) -> None:
    """The vectors of a text, saved."""
    from sslbench.engine.graph.contexts import context_vectors
    from sslbench.engine.graph.vertices import ngram_vertices
    from sslbench_methods.graph_self_training.templates import SUBRAMANYA2010

    text = text_of(vertices)
    X = context_vectors(text, ngram_vertices(text), SUBRAMANYA2010)
    sparse.save_npz(path, sparse.csr_matrix(X), compressed=False)


def ours(X, k: int, rows) -> None:
    from sslbench.engine.graph.neighbors import nearest

    nearest(X, k, threads=1)


def sparse_dot_topn(X, k: int, rows) -> None:
    from sparse_dot_topn import sp_matmul_topn

    sp_matmul_topn(X[rows], X.T.tocsr(), top_n=k + 1, threshold=0.0, sort=True, n_threads=1)


def scipy(X, k: int, rows) -> None:
    other = X.T.tocsr()
    for start in range(0, len(rows), BATCH):
        batch = X[rows[start : start + BATCH]] @ other
        for low, high in pairwise(batch.indptr):
            values = batch.data[low:high]
            if len(values) > k + 1:
                np.argpartition(values, -(k + 1))[-(k + 1) :]


def measure(system: str, path: Path, k: int) -> dict[str, object]:
    """In this process: seconds for all rows, peak memory."""
    X = sparse.load_npz(path)
    n = X.shape[0]
    size = n if n <= FULL * 1.05 and system != "scipy" else min(n, SAMPLE.get(system, n))
    rows = np.sort(np.random.default_rng(1).permutation(n)[:size])
    run = globals()[system]
    run(X[:200], min(k, 5), np.arange(200))  # compile, load
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    run(X, k, rows)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    df = np.bincount(X.indices, minlength=X.shape[1]).astype(float)
    return {
        "system": system,
        "vertices": n,
        "nnz": X.nnz,
        "k": k,
        "rows": size,
        "multiply_adds": float((df[df > 1] ** 2).sum()),
        "wall_s": wall * n / size,
        "cpu_s": cpu * n / size,
        "before_mb": before / 1024,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--k", type=int, nargs="+", default=[5])
    parser.add_argument("--systems", nargs="+", default=["ours", "sparse_dot_topn", "scipy"])
    parser.add_argument("--out", type=Path, default=Path("scale.jsonl"))
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        system, path, k = given.child
        if system == "make":
            make(int(k), Path(path))
        else:
            print(json.dumps(measure(system, Path(path), int(k))))
        return
    with tempfile.TemporaryDirectory() as folder:
        for vertices in given.sizes:
            path = Path(folder) / f"{vertices}.npz"
            child("make", path, vertices)
            for k in given.k:
                for system in given.systems:
                    line = child(system, path, k)
                    with given.out.open("a") as file:
                        file.write(line)
                    print(line, end="", flush=True)
            path.unlink()
    summary(given.out)


def child(system: str, path: Path, k: int) -> str:
    words = [sys.executable, __file__, "--child", system, str(path), str(k)]
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout


def summary(path: Path) -> None:
    """Exponent of growth in the number of vertices: slope of log CPU seconds on log vertices."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for system, k in sorted({(row["system"], row["k"]) for row in rows}):
        own = [row for row in rows if (row["system"], row["k"]) == (system, k)]
        if len(own) > 1:
            x, y = (np.log([row[name] for row in own]) for name in ("vertices", "cpu_s"))
            print(f"{system}, k = {k}: seconds grow as vertices^{np.polyfit(x, y, 1)[0]:.2f}")


if __name__ == "__main__":
    main()
