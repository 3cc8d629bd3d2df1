"""Each rule for datasets and featurizers has a plugin that breaks it, and its check says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sslbench import DatasetInfo, FeaturizerInfo
from sslbench.testing import (
    DATASET_CHECKS,
    FEATURIZER_CHECKS,
    Check,
    check_dataset,
    check_featurizer,
    dataset_checks,
    featurizer_checks,
)
from support import wrong_datasets
from support.waiting import HANG

DATASET = DatasetInfo(
    name="toy", summary="generated", reference="none", target="support.wrong_datasets:honest",
    licence="none needed", task="spans", metric="f1", featurizer="basic", protocol="generated",
)  # fmt: skip
FEATURIZER = FeaturizerInfo(
    name="toy", summary="words", reference="none", target="support.wrong_featurizers:honest"
)

#: function -> (the checks that must fail; all others must not), what the first of them says
DATASETS = {
    "other_name": ("load", "name is 'another', but the registration says 'toy'"),
    "no_test": ("splits", "there is no split 'test'"),
    "empty_sentence": ("splits", "1 sentences of 'test' have no token"),
    "no_labels": ("columns labels metric", "the split 'test' has no column 'label'"),
    "own_vocabulary": ("columns", "the column 'word' of 'test' has a separate vocabulary"),
    "illegal_label": ("labels metric", "label 'PER' of 'test' does not fit IOB2"),
    "unknown_metric": ("metric load", "have precison None"),
    "random": ("same_again", "loaded again, the split 'train' differs"),
    "reads_another_file": ("files", "other.txt"),
    "uses_the_network": ("offline files", "load() used the network"),
    "accepts_any_option": ("options", "no_such_option"),
    "labeled_external_text": ("external_text", "has a column 'label'"),
    "miscounted_external_text": ("external_text", "it counts 1 sentences"),
    "no_words": ("featurizer", "needs the column 'word'"),
    "lossy_codec": ("codec", "encoded and decoded are not the same"),
    "constraint_on_nothing": ("label_constraint", "no token of train"),
    "constraint_to_nothing": ("label_constraint", "'P' does not occur in train"),
}
FEATURIZERS = {
    "not_a_featurizer": ("load", "list and not a TemplateFeaturizer"),
    "random_templates": ("load", "other templates"),
    "needs_another_column": ("columns", "no column 'pos'"),
    "reads_labels": ("columns", "no column 'label'"),
    "uses_labels_where_there_are_any": ("labels", "with another label column, the dense"),
    "other_width_for_short_text": ("arity", "slots differ between texts"),
    "not_a_number": ("dense", "dense values are not finite"),
    "place_in_the_corpus": ("sentence_order", "in another order of sentences, the dense"),
    "share_of_the_corpus": ("other_sentences", "for a sentence alone, the dense"),
    "code_of_the_word": ("vocabulary_order", "with another numbering of words, the dense"),
    "changes_words": ("inputs_unchanged", "is changed"),
    "never_the_same": ("same_again", "again, the dense"),
    "needs_known_words": ("unseen_words", "AssertionError"),
}


@pytest.fixture(autouse=True)
def _file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other.txt").write_text("text")
    monkeypatch.setenv(wrong_datasets.OTHER_FILE, str(tmp_path / "other.txt"))


def failures(checks: list[Check]) -> dict[str, str]:
    results = [check.result() for check in checks]
    return {result.check: result.message for result in results if result.status == "failed"}


def test_plugins_that_keep_the_rules_pass() -> None:
    skipped = [r.check for r in check_dataset(DATASET, seconds=HANG) if r.status == "skipped"]
    assert skipped == ["codec", "label_constraint"]
    assert {result.status for result in check_featurizer(FEATURIZER, seconds=HANG)} == {"ok"}


@pytest.mark.parametrize("name", DATASETS)
def test_a_wrong_dataset(name: str) -> None:
    checks, message = DATASETS[name]
    found = failures(dataset_checks(replace(DATASET, target=f"support.wrong_datasets:{name}")))
    assert set(found) == set(checks.split()), found
    assert message in found[checks.split()[0]]


@pytest.mark.parametrize("name", FEATURIZERS)
def test_a_wrong_featurizer(name: str) -> None:
    checks, message = FEATURIZERS[name]
    info = replace(FEATURIZER, target=f"support.wrong_featurizers:{name}")
    with np.errstate(all="ignore"):
        found = failures(featurizer_checks(info))
    assert checks in found
    assert message in found[checks]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("licence", " ", "licence of the registration must be one line of text"),
        ("reference", "", "reference of the registration must be one line of text"),
        ("featurizer", "basics", "did you mean basic"),
    ],
)
def test_a_wrong_registration_of_a_dataset(field: str, value: str, message: str) -> None:
    found = failures(dataset_checks(replace(DATASET, **{field: value}), only=["registration"]))
    assert message in found["registration"]


def test_a_wrong_registration_of_a_featurizer() -> None:
    for field, value in (("columns", ()), ("summary", ""), ("target", "support.nowhere:no")):
        info = replace(FEATURIZER, **{field: value})
        assert "registration" in failures(featurizer_checks(info, only=["registration"]))


def test_every_check_is_failed_by_some_plugin() -> None:
    for checks, wrong in ((DATASET_CHECKS, DATASETS), (FEATURIZER_CHECKS, FEATURIZERS)):
        names = {check.__name__.removeprefix("check_") for check in checks}
        named = {name for names, _ in wrong.values() for name in names.split()}
        assert names - named == {"registration"}
