"""The checks of methods in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from sslbench.experiment.data import Dataset

from . import method_edges, method_isolation, method_outputs
from .cases import method_case
from .results import Check, CheckResult, Selection, checks_in, checks_of, run_checks

METHOD_CHECKS = (
    *checks_in(vars(method_outputs)),
    *checks_in(vars(method_isolation)),
    *checks_in(vars(method_edges)),
)


def method_checks(
    method: str | type[Any],
    *,
    datasets: Sequence[str | Dataset] = (),
    params: Mapping[str, Any] | None = None,
    **selection: Unpack[Selection],
) -> list[Check]:
    """Return the checks of a method, to run one by one.

    method: its registered name, or its class.
    datasets: registered names or `Dataset` objects to check it on besides the generated problems.
    params: values that replace defaults, e.g. fewer rounds to save time.
    selection: see `Selection`.

    UserError for an unknown name.
    """
    return checks_of(METHOD_CHECKS, method_case(method, params, datasets), **selection)


def check_method(method: str | type[Any], **options: Any) -> list[CheckResult]:
    """Run all checks of a method; options: see `method_checks`.

    CheckFailure, with a line per failed check, if a check fails.
    """
    return run_checks(method_checks(method, **options), method)
