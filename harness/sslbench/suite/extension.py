"""What a method or a dataset of somebody else adds to a suite: more rows, more columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import msgspec

from sslbench.engine.errors import UserError
from sslbench.experiment.planning.settings import parse_settings
from sslbench.plugins import Registry
from sslbench.suite.cells import Cell, suite_cells
from sslbench.suite.file import Block, Suite


def added_cells(
    suite: Suite, methods: Sequence[str], datasets: Sequence[str], plugins: Registry
) -> list[Cell]:
    """Return the cells that methods (rows) and datasets (columns) add to a suite, each run once.

    A method is run wherever the suite compares methods: in the tables of the file that name "all"
    or a method that is no baseline. A dataset is run with all methods of every table. Settings of
    the suite's methods are not those of another method, nor its options those of another dataset.

    Raises
    ------
    UserError: an unknown name, no name, or a method that fits none of the tasks.
    """
    if not methods and not datasets:
        raise UserError("nothing to add", hint="give --method NAME or --dataset NAME")
    methods = [plugins.method(name).name for name in methods]
    datasets = [plugins.dataset(name).name for name in datasets]
    blocks, lines = [], []
    for block, line in zip(suite.blocks, suite.lines, strict=True):
        for each in _added(block, methods, datasets, plugins):
            blocks.append(each)
            lines.append(line)
    cells = suite_cells(msgspec.structs.replace(suite, blocks=blocks, lines=lines), plugins)
    if not cells:
        names = ", ".join([*methods, *datasets])
        raise UserError(f"{names} fits no table of the suite", file=suite.path)
    return cells


def _added(
    block: Block, methods: Sequence[str], datasets: Sequence[str], plugins: Registry
) -> list[Block]:
    """The table of the file, with other methods or datasets; none if it is not to be extended."""
    if not methods:
        owners = [*plugins.methods, *plugins.models, *plugins.text_features, ""]
        return [replace(block, datasets=tuple(datasets), params=_owned_by(block, owners))]
    if not _compares(block, plugins):
        return []
    return [
        replace(
            block,
            methods=tuple(methods),
            without=(),
            datasets=tuple(dict.fromkeys([*block.datasets, *datasets])),
            params=_owned_by(block, [*plugins.datasets, *plugins.models, *plugins.text_features]),
        )
    ]


def _compares(block: Block, plugins: Registry) -> bool:
    """Whether a table compares methods; else it is a curve of the baseline."""
    return any(name == "all" or not plugins.method(name).baseline for name in block.methods)


def _owned_by(block: Block, owners: Collection[str]) -> tuple[str, ...]:
    settings = zip(block.params, parse_settings(block.params), strict=True)
    return tuple(text for text, setting in settings if setting.owner in owners)


def neighbors(suite: Suite, cells: Sequence[Cell], plugins: Registry) -> list[Cell]:
    """Return one draw of each line of the suite in the columns of these cells, without these."""
    blocks = [replace(block, seeds=1) for block in suite.blocks]
    columns, ours = {cell.column for cell in cells}, {(cell.line, cell.column) for cell in cells}
    whole = suite_cells(msgspec.structs.replace(suite, blocks=blocks), plugins)
    return [
        cell for cell in whole if cell.column in columns and (cell.line, cell.column) not in ours
    ]
