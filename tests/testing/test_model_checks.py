"""Checks of models: right ones pass, and each rule has a model that breaks it alone."""

from __future__ import annotations

import pytest

from sslbench import ModelInfo
from sslbench.testing import MODEL_CHECKS, CheckFailure, check_model, model_checks
from sslbench.testing.models import ModelCase

TOY = "support.toy_model.sslbench_toy:ToyModel"
WRONG = {
    "NoMaskModel": "transition_mask",
    "NoConstraintModel": "label_constraint",
    "HalfPullbackModel": "pullback",
    "InPlaceModel": "parameters",
    "RandomModel": "seed",
    "ShiftedModel": "marginals",
    "NoDense": "features",
    "NoRestore": "save_restore",
}


def info(target: str, *provides: str) -> ModelInfo:
    return ModelInfo(name="toy", summary="s", reference="r", target=target, provides=provides)


def statuses(target: str, *provides: str) -> dict[str, str]:
    results = [check.result() for check in model_checks(info(target, *provides))]
    return {result.check: result.status for result in results}


@pytest.mark.parametrize("model", ["crf1", "crf2", info(TOY, "first_order")], ids=str)
def test_right_models_pass(model: str | ModelInfo) -> None:
    results = {result.check: result.status for result in check_model(model)}
    assert len(results) == len(MODEL_CHECKS)
    wanted = "ok" if isinstance(model, str) else "skipped"
    assert results.pop("features") == wanted
    assert set(results.values()) == {"ok"}


def test_a_model_of_labels_alone_passes() -> None:
    lexicon = ModelInfo(
        name="lexicon",
        summary="s",
        reference="r",
        target="support.lexicon_model:LexiconModel",
        labels_only=True,
    )
    results = {result.check: result.status for result in check_model(lexicon)}
    assert [name for name, status in results.items() if status == "skipped"] == [
        "pullback",
        "features",
    ]
    assert set(results.values()) == {"ok", "skipped"}


@pytest.mark.parametrize(("name", "check"), WRONG.items())
def test_a_broken_rule_is_found(name: str, check: str) -> None:
    found = statuses(
        f"support.wrong_models:{name}", "features" if name == "NoDense" else "first_order"
    )
    failed = {name for name, status in found.items() if status == "failed"}
    assert check in failed
    # parameters that are drawn anew differ between numbers of threads, too
    assert failed <= {check, *(("threads",) if check == "seed" else ())}


def test_the_failed_checks_are_named() -> None:
    with pytest.raises(CheckFailure, match="toy: pullback: a derivative is"):
        check_model(info("support.wrong_models:HalfPullbackModel"), only=["pullback"])


def test_the_problem_of_the_checks_forbids_something() -> None:
    mask = ModelCase(info(TOY)).mask
    assert not mask[:-1].all()
    assert not mask[-1].all()
