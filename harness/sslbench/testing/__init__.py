"""Checks that a plugin follows the rules of the harness: from a test, or by ``sslbench check``.

``check_method("name")`` runs all checks of a registered method and raises `CheckFailure` with a
line for each one that fails. In pytest, each check can be a separate test::

    @pytest.mark.parametrize("check", method_checks("name"), ids=str)
    def test_check(check: Check) -> None:
        check()

Datasets, featurizers and models have the same two functions. docs/plugins.md says what each check
means.
"""

from .datasets import DATASET_CHECKS, check_dataset, dataset_checks
from .featurizers import FEATURIZER_CHECKS, check_featurizer, featurizer_checks
from .methods import METHOD_CHECKS, check_method, method_checks
from .models import MODEL_CHECKS, check_model, model_checks
from .results import Check, CheckFailure, CheckResult, CheckSkipped
from .toys import corpus_of, toy_constraint, toy_dataset, toy_featurizer

__all__ = [
    "DATASET_CHECKS",
    "FEATURIZER_CHECKS",
    "METHOD_CHECKS",
    "MODEL_CHECKS",
    "Check",
    "CheckFailure",
    "CheckResult",
    "CheckSkipped",
    "check_dataset",
    "check_featurizer",
    "check_method",
    "check_model",
    "corpus_of",
    "dataset_checks",
    "featurizer_checks",
    "method_checks",
    "model_checks",
    "toy_constraint",
    "toy_dataset",
    "toy_featurizer",
]
