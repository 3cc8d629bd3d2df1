"""The built-in plugins keep the rules that every plugin has to keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sslbench import Column, Corpus, Vocabulary, registry
from sslbench.experiment.data import DataHome
from sslbench.testing import check_dataset, check_featurizer, check_method
from support.waiting import HANG

METHODS = {
    name: info
    for name, info in registry().methods.items()
    if not info.needs and "masked_words" not in info.needs_model
}
#: fewer rounds and iterations than the defaults, to save time
FAST = {
    "rounds": 2,
    "em_iters": 2,
    "neighbors": 4,
    "max_iterations": 20,
    "joint_iterations": 10,
    "m_iterations": 10,
    "crossed": False,
    "folds": 2,
}
#: numbers of clusters that the few words of the generated text allow
CLUSTERS = {"coarse": 3, "fine": 8, "dimensions": 4}
#: checks that are skipped, as they should be
SKIPPED = {"sentence_order", "transition_mask", "threads"}
#: registered corpora, one of each reader that takes little time
CORPORA = ("ud_el", "zh_gsd", "ocr", "wsj_sample", "wikigold")


def params(name: str) -> dict[str, Any]:
    """Those of the faster parameters that a method has."""
    fields = METHODS[name].load().Params.__struct_fields__
    return {key: value for key, value in {**FAST, **CLUSTERS}.items() if key in fields}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_method(name: str) -> None:
    results = check_method(name, params=params(name), seconds=HANG)
    refuses = {"label_constraint"} if name in ("pipeline_st", "cluster_features") else set()
    skipped = {result.check for result in results if result.status == "skipped"}
    assert refuses <= skipped <= SKIPPED | refuses


@pytest.mark.parametrize("name", ["graph_pr", "pr1", "gp_crf"])
def test_viterbi_decoding_obeys_the_transition_mask(name: str) -> None:
    """By default these label each token on its own."""
    viterbi = {"decoding": "viterbi", **params(name)}
    (result,) = check_method(name, params=viterbi, only=["transition_mask"], seconds=HANG)
    assert result.status == "ok"


def test_synth() -> None:
    results = check_dataset("synth", seconds=HANG)
    skipped = {result.check for result in results if result.status == "skipped"}
    assert skipped == {"codec", "label_constraint"}


@pytest.mark.parametrize("name", registry().datasets)
def test_dataset_without_its_files(name: str) -> None:
    check_dataset(name, only=["registration", "offline"])


@pytest.mark.corpus
@pytest.mark.parametrize("name", CORPORA)
def test_dataset(name: str) -> None:
    home = DataHome()
    for file in registry().dataset(name).files:
        if not home.locate(file).is_file():
            pytest.skip(f"{file.path} is not in the data home")
    check_dataset(name, seconds=HANG)


@pytest.mark.parametrize("name", registry().featurizers)
def test_featurizer(name: str) -> None:
    images = registry().featurizer(name).columns == ("image",)
    results = check_featurizer(name, corpus=letters() if images else None, seconds=HANG)
    assert {result.check for result in results if result.status == "skipped"} <= {"dense"}


def letters() -> Corpus:
    """Words of random images, 32 hexadecimal digits each."""
    rng = np.random.default_rng(0)
    vocabulary = Vocabulary(rng.bytes(16).hex() for _ in range(12))
    codes = rng.integers(0, 12, 60).astype(np.int32)
    return Corpus({"image": Column(vocabulary, codes)}, np.arange(0, 61, 4))
