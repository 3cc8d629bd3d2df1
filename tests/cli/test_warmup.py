"""What `sslbench warmup` runs, so that its kernels are those of later commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from sslbench.cli import run, warmup
from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainModel
from sslbench.engine.crf.dual.ascent import FEWEST_TOKENS
from sslbench.engine.crf.encoded_corpus import EncodedCorpus
from sslbench.engine.crf.optim.inverse_hessian import LONG
from sslbench.engine.crf.weights.deduplicate import Deduplication
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.planning.task import RunTask, load_dataset
from sslbench.plugins import registry


def test_runs_are_of_short_and_long_texts_with_few_and_many_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[str, str, int, int]] = []
    sizes: list[int] = []
    bundles: list[tuple[int, int]] = []

    def collect(tasks: Sequence[RunTask], *_: object, **__: object) -> None:
        for task in tasks:
            assert task.load_error is None
            train = load_dataset(task, task.registry(registry())).splits["train"]
            edges = any("edge" in text for text in task.templates)
            kind = "registered" if not task.templates else "edges" if edges else "plain"
            if "word[12]" in task.templates:
                kind = "window"
                sizes.append(trained_on(train, task.templates)[0])
            elif edges and task.spec.model == "crf1":
                _, data = trained_on(train, task.templates)
                bundles.append((data.states.n_bundles, data.edges.n_bundles))
                assert data.suits_fused
            labels = len(train.column("label").vocabulary)
            seen.append((task.spec.model, kind, labels, train.n_tokens))

    monkeypatch.setattr(run, "run_shown", collect)
    empty: Any = warmup._run(["supervised"], ["supervised"], ["synth"], ["crf1", "crf2"], 1)
    assert empty is None
    long = {(model, kind, labels) for model, kind, labels, n in seen if n >= FEWEST_TOKENS}
    assert {(m, k, n) for m in ("crf1", "crf2") for k, n in (("plain", 36), ("edges", 3))} <= long
    kinds = [(model, kind) for model, kind, *_ in seen]
    assert kinds.count(("crf1", "registered")) == kinds.count(("crf2", "registered")) == 1
    assert kinds.count(("crf1", "plain")) == 2  # synth without transitions by position, and text
    assert kinds.count(("crf1", "window")) == 1
    assert len(sizes) == 1
    assert sizes[0] > LONG  # kernels of long vectors
    assert len(bundles) == 1
    assert min(bundles[0]) > 0  # of attributes of labels, and of transitions


def trained_on(train: Corpus, templates: Sequence[str]) -> tuple[int, EncodedCorpus]:
    """The number of weights of a training, in which copies share one, and the text it reads."""
    column = train.column("label")
    featurizer, labels = TemplateFeaturizer(templates), column.vocabulary.strings
    crf = ChainModel().prepare(featurizer, train, column.codes.astype(np.int32), labels)
    data = crf.encode(train)
    merged = Deduplication.build(crf.layout, [data.attributes])
    return merged.reduced.size, data.deduplicated(merged)
