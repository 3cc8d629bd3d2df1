"""``sslbench check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from sslbench.cli.messages import tell
from sslbench.cli.options import PATH, SECONDS
from sslbench.cli.text import checked_registry, counted, echo
from sslbench.engine.errors import UserError
from sslbench.engine.variables import processors
from sslbench.experiment.execute.startup import use_threads

if TYPE_CHECKING:
    from sslbench.plugins.registrations import DatasetInfo, Registration
    from sslbench.testing import Check, CheckResult


_CHECKED = ("method", "dataset", "featurizer", "model")


@click.command("check")
@click.argument("name")
@click.option("--only", multiple=True, metavar="CHECK", help="Run this check. May repeat.")
@click.option("--skip", multiple=True, metavar="CHECK", help="Leave this check out. May repeat.")
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    metavar="DATASET",
    help="Of a method: check it on this dataset too. Of a featurizer: on its text.",
)
@click.option("--data", type=PATH, help="Folder of a dataset's files, if not there.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Parameter or option. May repeat."
)
@click.option("--seconds", type=SECONDS, help="Limit per check.")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Check that a plugin follows the rules: what is registered as NAME, of any kind.

    A line per check on standard output: ok, failed and why, or skipped and why. Nothing is
    downloaded. Exit status: 0 all passed, 1 a check failed, 2 wrong usage or unknown name.
    """

    use_threads(max(2, processors()))  # results are compared between one thread and two
    plugins = checked_registry()
    results: list[CheckResult] = []
    named = plugins.find(given["name"])
    # text features often have a method of their name, whose checks are theirs
    for info in [info for info in named if info.kind in _CHECKED] or named:
        checks = _checks(info, given)
        echo(f"{info.kind} {info.name}")
        results += [_run(check) for check in checks]
    failed = sum(result.status == "failed" for result in results)
    skipped = sum(result.status == "skipped" for result in results)
    tell(f"{counted(len(results), 'check')}, {failed} failed, {skipped} skipped")
    ctx.exit(1 if failed else 0)


def _run(check: Check) -> CheckResult:
    result = check.result()
    reason = f": {result.message}" if result.message else ""
    echo(f"  {result.status:<7}  {result.check}{reason}")
    return result


def _checks(info: Registration, given: dict[str, Any]) -> list[Check]:
    """The checks of one registration; UserError for a similarity, which has none."""
    from sslbench.experiment.planning.settings import dataset_options, plain_value
    from sslbench.testing import dataset_checks, featurizer_checks, method_checks, model_checks

    common = {"only": given["only"], "skip": given["skip"]}
    if given["seconds"] is not None:
        common["seconds"] = given["seconds"]
    pairs = _pairs(given["settings"])
    if info.kind == "method":
        values = {key: plain_value(text) for key, text in pairs.items()}
        return method_checks(info.name, datasets=given["datasets"], params=values, **common)
    if info.kind == "model":
        values = {key: plain_value(text) for key, text in pairs.items()}
        return model_checks(info.name, params=values, **common)
    if info.kind == "dataset":
        options = dataset_options(cast("DatasetInfo", info), pairs)
        return dataset_checks(info.name, data=given["data"], options=options, **common)
    if info.kind == "featurizer":
        corpus = given["datasets"][0] if given["datasets"] else None
        return featurizer_checks(info.name, corpus=corpus, **common)
    raise UserError(
        f"{info.name} is a {info.kind}, and there are no checks for {info.kind}s",
        hint="there are checks for methods, datasets, featurizers and models",
    )


def _pairs(settings: tuple[str, ...]) -> dict[str, str]:
    """Key and value of each KEY=VALUE, as text."""
    pairs = [text.partition("=") for text in settings]
    for text, (key, equals, _) in zip(settings, pairs, strict=True):
        if not equals or not key:
            raise UserError(f"--set {text!r}", hint="write --set key=value")
    return {key: value for key, _, value in pairs}
