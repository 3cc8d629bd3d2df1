"""Suite files: TOML that names datasets, methods, sizes, draws and the tuning budget."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from sslbench.engine.errors import UserError
from sslbench.experiment.inputs.protocol import parse_labeled, parse_unlabeled
from sslbench.experiment.planning.plan import Request
from sslbench.experiment.planning.published import published_folder
from sslbench.experiment.planning.settings import combinations
from sslbench.experiment.records.record import TextSource
from sslbench.plugins import Registry

#: where a suite is looked for that is given by its name, before those of the package
FOLDER = Path("leaderboards/suites")
#: folders of the records and of the report of a suite of the package
OWN_STORE, OWN_OUT = Path("runs"), Path("runs/leaderboard")
_SIZE = Annotated[int, Meta(ge=1, le=10**15)]
_SEED = Annotated[int, Meta(ge=0, le=2**62)]
_AT = re.compile(r" \(at line (\d+), column \d+\)$")
_PATH = re.compile(r" - at `\$(?:\.cells\[(\d+)\])?(?:\.([a-z_]+))?.*`$")


class Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table ``[[cells]]``: every combination of datasets, sizes, methods and seeds.

    Attributes
    ----------
    datasets: names or patterns such as ``ud_*``.
    methods: names; "all" = every registered one. without: of these, those that are left out.
    variant: what tells these rows from others of the same methods, in words.
    labeled, unlabeled: sizes as for ``sslbench run``; unlabeled "all" = no cap.
    seeds: number of draws, 0 and up.
    set: ``key=value``; ``key=value,value`` = a row for each.
    The others are the options of ``sslbench run``.
    """

    datasets: Annotated[tuple[str, ...], Meta(min_length=1)]
    methods: Annotated[tuple[str, ...], Meta(min_length=1)] = ("all",)
    without: tuple[str, ...] = ()
    variant: str = ""
    labeled: Annotated[tuple[_SIZE | str, ...], Meta(min_length=1)] = ("all",)
    unlabeled: Annotated[tuple[_SIZE | str, ...], Meta(min_length=1)] = ("all",)
    text: TextSource | None = None
    seeds: Annotated[int, Meta(ge=1, le=10_000)] = 1
    folds: Annotated[int, Meta(ge=0)] = 0
    tune: Annotated[int, Meta(ge=0, le=100_000)] = 0
    tune_cpu: Annotated[float, Meta(gt=0)] | None = None
    tune_seed: _SEED | None = None
    set: tuple[str, ...] = ()
    text_features: tuple[str, ...] = msgspec.field(name="with", default=())
    guard: bool = False
    preset: str | None = None
    featurizer: str | None = None
    model: str | None = None

    def requests(self, plugins: Registry) -> list[Request]:
        """A request per size and combination of settings.

        UserError for a name or a size that there is not.
        """
        common: dict[str, Any] = {
            "methods": _methods(self, plugins),
            "datasets": _datasets(self.datasets, plugins),
            "seeds": tuple(range(self.seeds)),
            "text": self.text,
            "folds": self.folds,
            "text_features": self.text_features,
            "guard": self.guard,
            "preset": self.preset,
            "featurizer": self.featurizer,
            "model": self.model,
            "tune": self.tune,
            "tune_cpu": self.tune_cpu,
            "tune_seed": self.tune_seed,
        }
        return [
            Request(
                **common,
                settings=settings,
                labeled=parse_labeled(str(size)),
                unlabeled=None if cap == "all" else parse_unlabeled(str(cap)),
            )
            for size in self.labeled
            for cap in self.unlabeled
            for settings in combinations(self.set)
        ]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    title: str
    about: str = ""
    store: str = "../runs"
    out: str = ".."
    ledger: str = ""
    paper: str = ""
    include: tuple[str, ...] = ()
    timeout: Annotated[float, Meta(gt=0)] | None = None
    format: Literal[1] = 1
    cells: Annotated[list[Block], Meta(min_length=1)]


class Suite(msgspec.Struct, frozen=True):
    """A suite file.

    Attributes
    ----------
    path: of the file.  name: of the files of its report.
    title, about: for the page.
    store, out: folders of the records and of the report.
    ledger: of printed numbers, for the page; None = there is none.  paper: whose; "" = all.
    include: files with a block that the report writes, see `sslbench.report.blocks`.
    timeout: seconds per run; None = no limit.
    blocks: what the suite consists of.  lines: where each begins in the file, from 1.
    """

    path: Path
    name: str
    title: str
    about: str
    store: Path
    out: Path
    ledger: Path | None
    paper: str
    include: tuple[Path, ...]
    timeout: float | None
    blocks: list[Block]
    lines: list[int]


def read_suite(given: str) -> Suite:
    """Read a suite file.

    given: its path, or the name of one in ``leaderboards/suites`` or of the package. One of the
    package has records and report in the current folder.

    UserError, with file and line, for what is no TOML, an unknown key, or a wrong value.
    """
    path, own = _located_file(given)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError("no such suite", file=path, hint="give a file, or its name") from None
    except UnicodeDecodeError as error:
        raise UserError(f"not UTF-8: {error.reason}", file=path) from None
    found = _parse(text, path)
    stem = path.parent.name if path.stem == "suite" else path.stem
    return Suite(
        path=path,
        name=stem,
        title=found.title,
        about=found.about,
        store=OWN_STORE if own else path.parent / found.store,
        out=OWN_OUT if own else path.parent / found.out,
        ledger=path.parent / found.ledger if found.ledger and not own else None,
        paper=found.paper,
        include=() if own else tuple(path.parent / name for name in found.include),
        timeout=found.timeout,
        blocks=[_beside(block, path.parent) for block in found.cells],
        lines=[_line(text, i, None) for i in range(len(found.cells))],
    )


def _located_file(given: str) -> tuple[Path, bool]:
    """The path of a suite, and whether it is one that comes with the package."""
    path = Path(given)
    if path.suffix or path.exists():
        return path, False
    here, published = FOLDER / f"{given}.toml", published_folder() / "suites" / f"{given}.toml"
    own = not here.exists() and len(path.parts) == 1 and published.is_file()
    return (published if own else here), own


def _beside(block: Block, folder: Path) -> Block:
    """The table; the path of a template file, if it names one in the folder of the suite."""
    templates = folder / (block.featurizer or "")
    if not templates.is_file():
        return block
    return msgspec.structs.replace(block, featurizer=str(templates))


def _parse(text: str, path: Path) -> _File:
    try:
        tree: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT.search(str(error))
        line = int(at[1]) if at else text.count("\n") + 1
        raise UserError(f"not TOML: {_AT.sub('', str(error))}", file=path, line=line) from None
    defaults, cells = tree.pop("defaults", {}), tree.get("cells", [])
    if not isinstance(defaults, dict) or not isinstance(cells, list):
        raise UserError("defaults is a table, cells a list of tables ([[cells]])", file=path)
    tree["cells"] = [{**defaults, **each} if isinstance(each, dict) else each for each in cells]
    try:
        return msgspec.convert(tree, _File)
    except msgspec.ValidationError as error:
        raise _located(str(error), text, path) from None


def _located(message: str, text: str, path: Path) -> UserError:
    """The error of a wrong value, at the line of its key or of the beginning of its table."""
    at = _PATH.search(message)
    unknown = re.search(r"unknown field `(\w+)`", message)
    block = int(at[1]) if at and at[1] else None
    key = unknown[1] if unknown else at[2] if at else None
    what = _PATH.sub("", message) + (f" (key {key})" if key and not unknown else "")
    return UserError(what, file=path, line=_line(text, block, key), hint="see docs/suites.md")


def _line(text: str, block: int | None, key: str | None) -> int:
    """The line of a key in table `block` of ``[[cells]]``, in the defaults, or at the top."""
    number, table, begin, inherited = -1, "", 1, None
    for line, content in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([\w.]+)\s*\]+", content)
        if header:
            table = header[1]
            number += table == "cells"
            if table == "cells" and number == block:
                begin = line
        elif key and re.match(rf"\s*{re.escape(key)}\s*=", content):
            if (table == "cells" and number == block) or (not table and block is None):
                return line
            if table == "defaults":
                inherited = line
    return inherited or begin


def _methods(block: Block, plugins: Registry) -> tuple[str, ...]:
    """The named methods in their order; "all" stands for those that are registered."""
    named: list[str] = []
    for name in block.methods:
        named += plugins.methods if name == "all" else [plugins.method(name).name]
    for name in block.without:
        plugins.method(name)
    return tuple(name for name in dict.fromkeys(named) if name not in block.without)


def _datasets(patterns: Sequence[str], plugins: Registry) -> tuple[str, ...]:
    found: list[str] = []
    for pattern in patterns:
        names = [name for name in plugins.datasets if fnmatchcase(name, pattern)]
        found += names or [plugins.dataset(pattern).name]  # which raises
    return tuple(dict.fromkeys(found))
