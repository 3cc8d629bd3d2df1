"""How fast corpora are read: every data set whose files are in the data home, and its features.

Only `sslbench bench` measures these; in a plain run of the tests they are skipped, for the tests
of each reader do more.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import pytest
from problem import OUT, Figure

from sslbench.experiment.data import DataHome, Dataset
from sslbench.plugins import registry

NER_TEMPLATES = "ner79"

pytestmark = pytest.mark.skipif(not OUT, reason="measures only: sslbench bench")


def names() -> list[str]:
    """Those that need nothing of the user's own."""
    known = [registry().dataset(name) for name in registry().of_kind("datasets")]
    return [info.name for info in known if info.files and not info.own]


def load(name: str) -> tuple[Dataset, float]:
    """A data set and the seconds it took; skips when a file is missing."""
    info, home = registry().dataset(name), DataHome(offline=True)
    missing = [file.path for file in info.files if not file.extra and home.state(file) != "ok"]
    if missing:
        pytest.skip(f"not in the data home {home.root}: {missing[0]}")
    began = perf_counter()
    dataset: Dataset = info.load()(home)
    return dataset, perf_counter() - began


@pytest.mark.parametrize("name", names())
def test_reading(name: str, benchmark: Any, figure: Figure) -> None:
    dataset, _ = load(name)  # once for the file system's cache
    _, seconds = benchmark.pedantic(load, args=(name,), rounds=1)
    tokens = sum(corpus.n_tokens for corpus in dataset.splits.values())
    figure(f"reading {name}", "tokens/s", ours=tokens / seconds)


def test_conll2003_with_all_templates(benchmark: Any, figure: Figure) -> None:
    templates = registry().featurizer(NER_TEMPLATES).load()()
    templates.index(load("conll03")[0].splits["dev"])  # compiles the kernels

    def work() -> None:
        train = load("conll03")[0].splits["train"]
        templates.index(train).encode(train)

    benchmark.pedantic(work, rounds=1)
    figure(
        f"CoNLL-2003: all splits read, train with {NER_TEMPLATES}",
        "s",
        ours=benchmark.stats.stats.median,
    )
