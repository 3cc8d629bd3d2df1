"""Each rule for methods has a method that breaks it, and the check of that rule says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import pytest

from sslbench.engine.errors import UserError
from sslbench.testing import METHOD_CHECKS, CheckFailure, check_method, method_checks
from support import wrong_methods as wrong
from support.waiting import HANG

#: the checks that must fail, and what the first of them says; all others must not
WRONG = {
    wrong.ReadsLabelFile: ("files", "gold.txt"),
    wrong.LoadsDataset: ("files", "loaded the dataset synth"),
    wrong.StartsProcess: ("files", "started a process"),
    wrong.PeeksAtHiddenLabels: ("hidden_labels", "with hidden labels permuted"),
    wrong.DependsOnThreads: ("threads", "with 2 threads instead of 1, the predictions for test"),
    wrong.UsesGlobalRandomState: (
        "global_random_state hidden_labels seed threads",
        "run.trace['draw'] is",
    ),
    wrong.SeedsGlobalRandomState: ("global_random_state", "changes the global state of numpy"),
    wrong.IgnoresSeed: ("seed global_random_state hidden_labels threads", "same seed again"),
    wrong.DependsOnSentenceOrder: ("sentence_order", "in another order"),
    wrong.ForgetsLabelConstraint: (
        "label_constraint",
        "that must be labeled 'P' are not",
    ),
    wrong.ForgetsConstraintWhenRestored: ("label_constraint", "are not after it was restored"),
    wrong.ForgetsTransitionMask: ("transition_mask", "forbidden transitions are predicted in"),
    wrong.CannotBeRestored: ("save_restore", "cannot be restored"),
    wrong.RestoresAnother: ("save_restore", "after it was restored, "),
    wrong.ChangesLabels: ("inputs_unchanged", "problem.labeled.column('label').codes"),
    wrong.ChangesVocabulary: ("inputs_unchanged", "problem.labeled.column('word').vocabulary"),
    wrong.ChangesText: ("inputs_unchanged", "predict() changes test.column('word').codes"),
    wrong.NanWeights: ("finite", "1 of 2 weights are not finite"),
    wrong.NanMarginals: ("finite", "marginals are not finite"),
    wrong.NanTrace: ("record", "run.trace['rounds'][0]['likelihood'] is not finite"),
    wrong.NeedsUnlabeledText: ("no_unlabeled_text all_labeled", "ZeroDivisionError"),
    wrong.NeedsHiddenSentences: ("all_labeled", "AssertionError"),
    wrong.NeedsTwoLabels: ("one_label one_sentence", "IndexError"),
    wrong.NeedsDev: ("no_dev", "AssertionError"),
    wrong.NeedsKnownWords: ("unseen_words save_restore", "AssertionError"),
    wrong.NeedsOneShard: ("shards", "AssertionError"),
    wrong.NeedsTwoSentences: ("one_sentence", "IndexError"),
    wrong.NeedsTwoTokens: ("one_token", "AssertionError"),
    wrong.WrongBound: ("parameter_bounds", "rounds=0: ZeroDivisionError"),
    wrong.AcceptsAnyParameter: ("parameters", "forbid_unknown_fields"),
    wrong.FitsOneTaskOnly: ("tasks transition_mask", "AssertionError"),
}
#: these break so much that many checks fail; the one named must be among them
BROKEN = {
    wrong.NeedsKnownLabels: ("unseen_labels", "ValueError"),
    wrong.WrongShape: ("predictions", "tokens"),
    wrong.WrongType: ("predictions", "float64 and not an array of integers"),
    wrong.WrongRange: ("predictions", "for 4 labels"),
}


@pytest.fixture(autouse=True)
def _labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gold.txt").write_text("N V D P")
    monkeypatch.setenv(wrong.LABEL_FILE, str(tmp_path / "gold.txt"))


def failures(method: type[Any]) -> dict[str, str]:
    results = [check.result() for check in method_checks(method, seconds=HANG)]
    return {result.check: result.message for result in results if result.status == "failed"}


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread only here")
def test_a_method_that_keeps_the_rules_passes() -> None:
    assert {result.status for result in check_method(wrong.WordTable, seconds=HANG)} == {
        "ok",
        "skipped",
    }


@pytest.mark.parametrize("method", WRONG, ids=lambda cls: cls.__name__)
def test_the_check_of_the_broken_rule_fails_alone(method: type[Any]) -> None:
    names, message = WRONG[method]
    found = failures(method)
    assert set(found) == set(names.split()), found
    assert message in found[names.split()[0]]


def test_a_check_that_hangs_fails() -> None:
    (check,) = method_checks(wrong.Hangs, only=["threads"], seconds=2.0)
    assert "not done after 2 s" in check.result().message


@pytest.mark.parametrize("method", BROKEN, ids=lambda cls: cls.__name__)
def test_the_check_of_the_broken_rule_fails_among_others(method: type[Any]) -> None:
    name, message = BROKEN[method]
    assert message in failures(method)[name]


def test_every_check_is_failed_by_some_method() -> None:
    names = {check.__name__.removeprefix("check_") for check in METHOD_CHECKS}
    assert names == {
        name for names, _ in [*WRONG.values(), *BROKEN.values()] for name in names.split()
    }


def test_one_line_per_failed_check() -> None:
    with pytest.raises(CheckFailure) as caught:
        check_method(wrong.NanTrace, only=["record", "predictions"])
    assert str(caught.value).startswith("NanTrace: record: run.trace")
    assert "\n" not in str(caught.value)


def test_checks_are_chosen_by_name() -> None:
    assert [str(check) for check in method_checks(wrong.WordTable, only=["seed"])] == ["seed"]
    assert "seed" not in map(str, method_checks(wrong.WordTable, skip=["seed"]))
    with pytest.raises(UserError, match="no check 'seeds'; did you mean seed"):
        method_checks(wrong.WordTable, only=["seeds"])
    with pytest.raises(UserError, match="no method 'word_tables'"):
        method_checks("word_tables")
