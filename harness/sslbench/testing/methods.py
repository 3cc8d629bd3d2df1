"""The checks of methods in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sslbench.experiment.data import Dataset

from . import method_edges, method_isolation, method_outputs
from .cases import MethodCase, method_case
from .results import SECONDS, Check, CheckResult, run_checks, select

METHOD_CHECKS: tuple[Callable[[MethodCase], None], ...] = (
    method_edges.check_parameters,
    method_outputs.check_tasks,
    method_outputs.check_predictions,
    method_outputs.check_finite,
    method_outputs.check_record,
    method_isolation.check_hidden_labels,
    method_isolation.check_files,
    method_isolation.check_inputs_unchanged,
    method_isolation.check_seed,
    method_isolation.check_global_random_state,
    method_isolation.check_threads,
    method_isolation.check_sentence_order,
    method_outputs.check_label_constraint,
    method_outputs.check_transition_mask,
    method_outputs.check_save_restore,
    method_edges.check_one_label,
    method_edges.check_one_token,
    method_edges.check_one_sentence,
    method_edges.check_no_unlabeled_text,
    method_edges.check_all_labeled,
    method_edges.check_no_dev,
    method_edges.check_unseen_labels,
    method_edges.check_unseen_words,
    method_edges.check_shards,
    method_edges.check_parameter_bounds,
)


def method_checks(
    method: str | type[Any],
    *,
    datasets: Sequence[str | Dataset] = (),
    params: Mapping[str, Any] | None = None,
    only: Iterable[str] = (),
    skip: Iterable[str] = (),
    seconds: float = SECONDS,
) -> list[Check]:
    """The checks of a method, to run one by one.

    Parameters
    ----------
    method: its registered name, or its class.
    datasets: registered names or `Dataset` objects to check it on besides the generated problems.
    params: values that replace defaults, e.g. fewer rounds to save time.
    only, skip: names of checks.
    seconds: time limit of each check.

    UserError for an unknown name.
    """
    case = method_case(method, params, datasets)
    return select(checks_of(METHOD_CHECKS, case, seconds), only, skip)


def check_method(method: str | type[Any], **options: Any) -> list[CheckResult]:
    """Run all checks of a method; options: see `method_checks`.

    CheckFailure, with a line per failed check, if a check fails.
    """
    what = method if isinstance(method, str) else method.__name__
    return run_checks(method_checks(method, **options), what)


def checks_of(functions: Iterable[Callable[[Any], None]], case: Any, seconds: float) -> list[Check]:
    """One `Check` per function; its name and meaning are those of the function."""
    return [
        Check(
            name=function.__name__.removeprefix("check_"),
            meaning=(function.__doc__ or "").partition("\n")[0],
            seconds=seconds,
            function=partial(function, case),
        )
        for function in functions
    ]
