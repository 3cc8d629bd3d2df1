"""Do the methods help with their defaults? Candidates for defaults, chosen on development parts.

    PYTHONPATH=tests python -m benchmarks.defaults run STORE [METHOD ...]    makes missing records
    PYTHONPATH=tests python -m benchmarks.defaults show STORE    prints tables of docs/defaults.md

Each corpus is cut: train without its development part, which is the test here. The test splits of
the corpora are not in the data that runs see. 100 labeled sentences, 500 others without labels.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from sslbench.corpus import Column, Corpus, Vocabulary
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.plan import Request, plan
from sslbench.experiment.runner import execute
from sslbench.experiment.store import Store
from sslbench.experiment.training import RunTask
from sslbench.plugins import Origin, Registry, registry
from sslbench.registrations import DatasetInfo

KINDS = {
    "tags": "ud_da ud_el ud_en ud_pt wsj_sample questions",
    "spans": "conll00 conll02 conll03 bc2gm genetag",
    "segmentation": "zh_gsd zh_zx sxu",
}
KIND_OF = {corpus: kind for kind, names in KINDS.items() for corpus in names.split()}
SEEDS, LABELED, UNLABELED, LARGEST_TEST = (0, 1), 100, 500, 1000
#: by method the candidates, the paper's values (or what was the default) last
CANDIDATES: dict[str, tuple[str, ...]] = {
    "supervised": ("sigma2=10",),
    "graph_lift": ("beta=1", "beta=0.5", "beta=1 eta=0.03", "beta=1 steps=0"),
    "entropy_regularization": ("gamma=0.003", "gamma=0.01", "gamma=0.1"),
    "self_training": ("weight=0.1", "weight=0.3", "weight=1"),
    "graph_self_training": (
        "omega=0 sigma2=10",
        "omega=0 sigma2=50",
        "omega=1 sigma2=50",
    ),
    "type_self_training": ("omega=0 sigma2=10", "omega=1 sigma2=50"),
    "jess_cm": ("eta=0.01", "eta=0.1"),
    "virtual_evidence": ("omega=1", "omega=0.3"),
    "graph_pr": tuple(
        f"lam={lam} sigma2={sigma2} em_iters=3 decoding={decoding}"
        for lam, sigma2, decoding in (
            (0.1, 10, "viterbi"),
            (0.1, 10, "posterior"),
            (0.1, 10000, "viterbi"),
            (1, 10000, "posterior"),
        )
    ),
}


class Loaders:
    """A loader of each corpus, as an attribute: the target of a registration names it."""

    def __getattr__(self, corpus: str) -> Any:
        return partial(load, corpus)


loaders = Loaders()


def load(corpus: str, home: DataHome) -> Dataset:
    """The corpus with a development part as its test."""
    info = registry().dataset(corpus)
    whole: Dataset = info.load()(DataHome(None, dataset=corpus))
    train, dev = whole.splits["train"], whole.splits.get("dev")
    if dev is None:  # the last fifth of train
        first = train.n_sentences - train.n_sentences // 5
        train, dev = (
            train.select(np.arange(first)),
            train.select(np.arange(first, train.n_sentences)),
        )
    dev = dev.select(np.arange(min(dev.n_sentences, LARGEST_TEST)))
    splits = {"train": train, "test": dev}
    same: dict[str, Any] = {"splits": splits, "codec": None, "alternatives": {}, "metadata": {}}
    if KIND_OF[corpus] == "segmentation":
        same["splits"] = {name: without_types(part) for name, part in splits.items()}
        return replace(whole, task="segmentation", metric="seg_f1", **same)
    return replace(whole, metric=whole.metric.removeprefix("alt_"), **same)


def without_types(corpus: Corpus) -> Corpus:
    """Labels such as B-NN as B."""
    tags = Vocabulary("BMES")
    label = corpus.column("label")
    table = np.array([tags.lookup(text[0]) for text in label.vocabulary.strings], dtype=np.int32)
    return corpus.with_column("label", Column(tags, table[label.codes]))


def plugins() -> Registry:
    """The registry, with the cut corpora."""
    found = registry()
    for corpus, kind in KIND_OF.items():
        info = found.dataset(corpus)
        metric = "seg_f1" if kind == "segmentation" else info.metric.removeprefix("alt_")
        task = "segmentation" if kind == "segmentation" else info.task
        cut = DatasetInfo(
            name=f"dev_{corpus}",
            summary=f"development part of {corpus}",
            reference=info.reference,
            target=f"benchmarks.defaults:loaders.{corpus}",
            licence=info.licence,
            task=task,
            metric=metric,
            featurizer="zh_char" if kind == "segmentation" else "basic",
            protocol="train without a development part, which is the test",
            files=info.files,
        )
        if ("datasets", cut.name) not in found.origins:
            found.add("datasets", cut, Origin("study", "sslbench", ""))
    return found


def tasks(methods: list[str]) -> Iterator[RunTask]:
    """The runs, first candidates first."""
    for row in zip_longest(*(CANDIDATES[name] for name in methods or CANDIDATES)):
        for method, candidate in zip(methods or CANDIDATES, row, strict=True):
            for corpus in KIND_OF if candidate else ():
                request = Request(
                    methods=(method,),
                    datasets=(f"dev_{corpus}",),
                    seeds=SEEDS,
                    labeled=LABELED,
                    unlabeled=UNLABELED,
                    settings=candidate.split(),
                    threads=1,
                )
                yield from plan(request, store=None, plugins=plugins(), notice=lambda text: None)


def run(store: Store, methods: list[str]) -> None:
    """Make the missing records, in this process."""
    for task in tasks(methods):
        if store.load(task.spec.run_id) is None:
            record = execute(task, plugins())
            score = record.error if record.score is None else f"{100 * record.score:.2f}"
            print(record.cpu_s, task.spec.method, task.spec.dataset, score, flush=True)
            store.save(record)


if __name__ == "__main__":
    command, folder, *names = sys.argv[1:]
    if command == "run":
        run(Store(folder), names)
