"""What features learned from text, and expectations of labels, cost. Markdown tables.

    PYTHONPATH=tests python -m benchmarks.clusters brown [NUMBER ...]    clusters of the newswire
    PYTHONPATH=tests python -m benchmarks.clusters peer    beside the package brown-clustering
    PYTHONPATH=tests python -m benchmarks.clusters aso [WORDS:TOKENS ...]    auxiliary problems
    PYTHONPATH=tests python -m benchmarks.clusters ge    expectations beside the likelihood

CPU seconds of one thread without compilation; memory of a process that does nothing else.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from itertools import groupby, pairwise
from multiprocessing import get_context
from typing import Any

from sslbench import Problem, RunContext, TrainingParams
from sslbench.engine.corpus import Corpus, CorpusShards, HeadTokens
from sslbench.engine.crf import ChainModel, HardLabels
from sslbench.experiment.data import DataHome
from sslbench.plugins import registry
from sslbench_datasets.reuters.load import tokenized_text
from sslbench_methods.aso_semi.method import AsoSemi
from sslbench_methods.brown_clusters.method import brown_paths
from sslbench_methods.generalized_expectation.method import Expectations, ExpectationTerm
from sslbench_methods.generalized_expectation.targets import counted
from sslbench_methods.text_words import TextWords


def seconds(call: Callable[[], Any], least: int = 1) -> float:
    """CPU seconds of a call, the least of several."""
    times = []
    for _ in range(least):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return min(times)


def problem(tokens: int | None = None, labeled: int = 100) -> Problem:
    """Sentences of CoNLL-2000, and the newswire, or so much of it, as unlabeled text."""
    home = DataHome(offline=True, dataset="conll00")
    train = registry().dataset("conll00").load()(home).splits["train"].between(0, labeled)
    text = tokenized_text(home, {"word": train.column("word").vocabulary})
    shards = list(text if tokens is None else HeadTokens(text, tokens))
    labels = tuple(sorted(set(train.column("label").strings())))
    featurizer = registry().featurizer("basic").load()()
    unlabeled = CorpusShards(Corpus.concatenate(shards))
    return Problem("spans", "IOB2", labels, train, unlabeled, None, featurizer, ChainModel())


def brown(number: int) -> list[str]:
    """A row, and ten clusters."""
    text = TextWords.of(problem(), "word", 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    brown_paths(TextWords(text.words[:50], text.counts[:50], text.number % 50, text.sentence), 5)
    paths: list[str] = []
    spent = seconds(lambda: paths.extend(brown_paths(text, number)))
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    sizes = f"{number} | {len(text.words):,} | {len(text.number):,}"
    row = f"| {sizes} | {spent:.1f} | {more / 1024:.0f} |"
    order = sorted(range(len(paths)), key=lambda i: (paths[i], i))
    clusters = [(path, list(own)) for path, own in groupby(order, key=paths.__getitem__)]
    shown = clusters[:: max(1, len(clusters) // 10)][:10]
    return [row, *(f"{path}: {' '.join(text.words[i] for i in own[:8])}" for path, own in shown)]


def in_process(call: Callable[..., Any], *args: Any) -> Any:
    """The result of a call in a process of its own."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(call, args)


def show_brown(numbers: list[int]) -> None:
    print("| clusters | words | tokens | CPU s | more MB |\n|---|---|---|---|---|")
    outputs = [in_process(brown, number) for number in numbers]
    print("\n".join(lines[0] for lines in outputs))
    print("\n" + "\n".join(outputs[0][1:]))


def show_peer() -> None:
    from brown_clustering import BigramCorpus, BrownClustering

    whole = problem(200_000)
    print("| words | clusters | CPU s | brown-clustering, CPU s | ratio |\n|---|---|---|---|---|")
    for rarest, clusters in ((100, 30), (40, 50), (20, 100)):
        text = TextWords.of(whole, "word", rarest)
        part = next(iter(whole.unlabeled)).column("word").strings()
        offsets = next(iter(whole.unlabeled)).offsets.tolist()
        sentences = [part[a:b] for a, b in pairwise(offsets)]

        def peer(sentences: Any = sentences, rarest: int = rarest, m: int = clusters) -> None:
            BrownClustering(BigramCorpus(sentences, alpha=0.5, min_count=rarest), m).train()

        def own(text: Any = text, m: int = clusters) -> None:
            brown_paths(text, m)

        if rarest == 100:  # compiles both
            own(), peer()
        a, b = seconds(own), seconds(peer)
        print(f"| {len(text.words):,} | {clusters} | {a:.2f} | {b:.2f} | {b / a:.0f} |", flush=True)


def show_aso(sizes: list[str]) -> None:
    print("| words | problems | tokens | CPU s |\n|---|---|---|---|")
    for words, tokens in (map(int, size.split(":")) for size in sizes):
        given = problem(tokens)
        params = AsoSemi.Params(aso_words=words, aso_tokens=tokens)
        spent = seconds(lambda g=given, p=params: AsoSemi().learn(g, p, RunContext()))  # type: ignore[misc]
        print(f"| {words} | {3 * words} | {tokens:,} | {spent:.1f} |", flush=True)


def show_ge() -> None:
    print("| sentences | likelihood, CPU s | expectations, CPU s | ratio |\n|---|---|---|---|")
    for number in (500, 2_000):
        given = problem(1_000, number)
        crf = given.crf(TrainingParams())
        text = given.encode(crf)
        data, gold = text.labeled
        targets = counted(text, crf, 100, 1.0)
        expectations = Expectations.of(targets, crf, [data])
        term = ExpectationTerm(expectations, expectations.rows[0], 0, 10.0)
        likelihood = [(data, HardLabels(gold.labels))]
        for parts in (likelihood, [(data, term)]):
            crf.expect(parts)
        a = seconds(lambda c=crf, p=likelihood: c.expect(p), 5)  # type: ignore[misc]
        b = seconds(lambda c=crf, p=[(data, term)]: c.expect(p), 5)  # type: ignore[misc]
        print(f"| {number:,} | {a:.3f} | {b:.3f} | {b / a:.1f} |", flush=True)


if __name__ == "__main__":
    what, *sizes = sys.argv[1:]
    if what == "brown":
        show_brown([int(size) for size in sizes] or [100, 320, 1000])
    elif what == "aso":
        show_aso(sizes or ["50:50000", "50:100000", "200:50000", "200:100000"])
    else:
        {"peer": show_peer, "ge": show_ge}[what]()
