"""Records that somebody submits to a suite: what goes into a bundle, and its checks.

A check reads the bundle and, if there is one, a store of the suite. It runs no code of the bundle:
the plugins that made the records are those that are installed.
"""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from sslbench.engine.errors import UserError
from sslbench.experiment.records.bundle import Bundle, Manifest, write_bundle
from sslbench.experiment.records.record import RunRecord, spec_key
from sslbench.experiment.records.store import Store
from sslbench.plugins import Registry
from sslbench.suite.cells import Cell, with_records
from sslbench.suite.extension import added_cells, neighbors
from sslbench.suite.file import Suite

_NAMED = 3  # runs that a line names


@dataclass(frozen=True)
class Finding:
    """The result of one check, in words. fails: whether the bundle is refused for it."""

    text: str
    fails: bool = False


def submit(
    suite: Suite,
    methods: Sequence[str],
    datasets: Sequence[str],
    store: Store,
    path: Path,
    plugins: Registry,
) -> tuple[Manifest, list[Cell]]:
    """Write the finished records of what is added to a suite into a bundle.

    Returns
    -------
    manifest: that of the bundle.  cells: all cells that are added, also those without a record.

    Raises
    ------
    UserError: there is no finished run.
    """
    cells = with_records(added_cells(suite, methods, datasets, plugins), store, plugins)
    run_ids = [cell.record.run_id for cell in cells if cell.record and cell.state == "done"]
    if not run_ids:
        hint = f"sslbench suite extend {suite.name} runs them"
        raise UserError("no finished run to submit", file=store.folder, hint=hint)
    manifest = Manifest(
        suite=suite.name,
        methods=list(methods),
        datasets=list(datasets),
        sslbench=version("sslbench"),
        plugins=_distributions(methods, datasets, plugins),
    )
    loaded = (store.load(run_id) for run_id in run_ids)
    return write_bundle(path, manifest, filter(None, loaded)), cells


def _distributions(
    methods: Sequence[str], datasets: Sequence[str], plugins: Registry
) -> dict[str, str]:
    """The version of each distribution that registers one of these."""
    names = [*(("methods", name) for name in methods), *(("datasets", name) for name in datasets)]
    origins = [plugins.origins[name] for name in names]
    return {origin.distribution: origin.version for origin in origins}


def bundle_cells(bundle: Bundle, suite: Suite, plugins: Registry) -> list[Cell]:
    """Return the cells that a bundle adds to a suite.

    Raises
    ------
    UserError: a method or a dataset of the bundle is not installed.
    """
    manifest = bundle.manifest
    try:
        return added_cells(suite, manifest.methods, manifest.datasets, plugins)
    except UserError as error:
        wheels = " ".join(f"{name}=={made}" for name, made in manifest.plugins.items())
        hint = f"the bundle was made with {wheels}: install it to check the bundle"
        raise UserError(error.message, hint=hint) from None


def check_records(
    bundle: Bundle, suite: Suite, cells: Sequence[Cell], mine: Store, plugins: Registry
) -> Iterator[Finding]:
    """Check the records of a bundle.

    cells: see `bundle_cells`.  mine: the store of the bundle.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        records = mine.records()
    yield from (Finding(f"damaged: {warning.message}", fails=True) for warning in caught)
    stated = bundle.manifest.runs
    yield Finding(
        f"{len(records)} runs, each with its digest, and counts that give its scores"
        + (f"; the manifest says {stated}" if stated != len(records) else ""),
        fails=stated != len(records) or not records,
    )
    yield from _versions(bundle.manifest, plugins)
    keys = {(cell.by_text, cell.key) for cell in cells}
    others = [
        record
        for record in records
        if not any((by, spec_key(record.spec, by)) in keys for by in (True, False))
        or record.data.get("path")
    ]
    if others:
        yield Finding(f"not of the suite {suite.name}: {_named(others)}", fails=True)
    done = with_records(cells, mine, plugins)
    states = Counter(cell.state for cell in done)
    yield Finding(
        f"{states['done']} of {len(cells)} cells of the suite {suite.name}"
        + (f", {states['missing']} missing" if states["missing"] else ""),
        fails=not states["done"],
    )
    for state, words in (
        ("stale", "made by other versions of the code than today's"),
        ("other data", "on other data than the newest run of the same column"),
        ("failed", "failed"),
    ):
        wrong = [cell.record for cell in done if cell.state == state and cell.record is not None]
        if wrong:
            yield Finding(f"{words}: {_named(wrong)}", fails=True)


def _versions(manifest: Manifest, plugins: Registry) -> Iterator[Finding]:
    here = _distributions(manifest.methods, manifest.datasets, plugins) | {
        "sslbench": version("sslbench")
    }
    for name, made in {"sslbench": manifest.sslbench, **manifest.plugins}.items():
        there = "the same here" if here.get(name) == made else f"here {here.get(name, 'none')}"
        yield Finding(f"made with {name} {made}; {there}")


def compare_with_store(
    suite: Suite, cells: Sequence[Cell], mine: Store, theirs: Store, plugins: Registry
) -> Iterator[Finding]:
    """Check that a bundle and a store of the suite have runs on the same data."""
    ours = {cell.column: cell.record for cell in with_records(cells, mine, plugins) if cell.record}
    around = with_records(neighbors(suite, cells, plugins), theirs, plugins)
    shared = [cell for cell in around if cell.record is not None and cell.column in ours]
    other = {
        cell.spec.dataset: ours[cell.column]
        for cell in shared
        if cell.record and cell.record.spec.data.table != ours[cell.column].spec.data.table
    }
    if other:
        yield Finding(f"on other data than the store: {', '.join(other)}", fails=True)
    columns = len({cell.column for cell in shared})
    place = f"the runs in {theirs.folder}"
    if columns and not other:
        yield Finding(f"the same data as {place} in {columns} of {len(ours)} columns")
    elif not columns:
        yield Finding(f"{place} are of other columns: the data are not compared")
    again = [
        record
        for record in mine.records()
        if (known := theirs.load(record.run_id)) is not None
        and known.predictions_sha256 != record.predictions_sha256
    ]
    if again:
        yield Finding(f"other predictions than those in the store: {_named(again)}", fails=True)


def sample(bundle: Bundle, records: Sequence[RunRecord], number: int) -> list[RunRecord]:
    """Return records to replay: a hash of all records decides, not the one who submits them."""

    def place(record: RunRecord) -> str:
        return hashlib.sha256(f"{bundle.manifest.sha256} {record.run_id}".encode()).hexdigest()

    return sorted((r for r in records if r.status == "ok"), key=place)[:number]


def _named(records: Sequence[RunRecord]) -> str:
    """The runs in words, the first few by name."""
    names = [
        f"{r.run_id} ({r.spec.title} on {r.dataset}, seed {r.spec.protocol.seed})"
        for r in records[:_NAMED]
    ]
    more = len(records) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
