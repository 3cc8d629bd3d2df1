"""Suite files: TOML that names datasets, methods, sizes, draws and the tuning budget."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from sslbench.engine.corpus.files import read_text
from sslbench.engine.errors import UserError
from sslbench.experiment.planning.published import published_folder
from sslbench.experiment.planning.settings import combinations, number_of_combinations
from sslbench.experiment.request.parameters import inherited, parameter, parameters
from sslbench.experiment.request.request import Call, Draws, Options, RunRequest
from sslbench.experiment.request.words import first_field, in_words
from sslbench.plugins import Registry
from sslbench.plugins.hooks import suggestion

#: where a suite is looked for that is given by its name, before those of the package
FOLDER = Path("leaderboards/suites")
#: folders of the records and of the report of a suite of the package
PACKAGED_STORE, PACKAGED_OUT = Path("runs"), Path("runs/leaderboard")
#: the same, from the folder of the file, of a suite that names none
STORE, OUT = "../runs", ".."
_AT = re.compile(r" \(at line (\d+), column \d+\)$")
_CELLS = re.compile(r"\s*\[\[\s*cells\s*\]\]")
MAX_BYTES = 2**20  # of a file
MOST_TABLES = 1000
MOST_ITEMS = 1000  # of a list in a table
#: what takes longer than anybody expects of a file that is only read
_ABSURD = {
    re.compile(r"\d{1000}"): "a number of more than 1000 digits",
    re.compile(r"\.(?:[\w\"'-]{1,99}\.){99}"): "a key of more than 100 parts",
}


@dataclass(frozen=True, kw_only=True)
class Block(Draws, Options):
    """A table ``[[cells]]``: every combination of datasets, sizes, methods and seeds.

    Its other keys are spelled as the options of ``sslbench run``.

    Attributes
    ----------
    datasets: names or patterns such as ``ud_*``.
    methods: names; "all" = every registered one.  without: of these, those that are left out.
    variant: distinguishes these rows from others of the same methods, in words.
    labeled, unlabeled: sizes as for ``sslbench run``; unlabeled "all" = no cap.
    seeds: number of draws, 0 and up.
    params: texts ``key=value``; ``key=value,value`` = a row for each.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...] = ("all",)
    without: tuple[str, ...] = ()
    variant: str = ""
    labeled: tuple[int | str, ...] = ("all",)
    unlabeled: tuple[int | str, ...] = ("all",)
    seeds: int = parameter(1, "Number of draws.", least=1, most=10_000)
    params: tuple[str, ...] = inherited(Call, "params", default=())
    tune: int | None = inherited(Options, "tune", default=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("datasets", "methods", "labeled", "unlabeled"):
            if not getattr(self, name):
                raise UserError(f"{name} is empty", hint="give at least one")
        for name in ("datasets", "methods", "without", "labeled", "unlabeled", "params"):
            if len(getattr(self, name)) > MOST_ITEMS:
                raise UserError(f"{name} has more than {MOST_ITEMS} entries")
        for sizes in (self.labeled, self.unlabeled):
            if any(isinstance(size, int) and size < 1 for size in sizes):
                name = "labeled" if sizes is self.labeled else "unlabeled"
                raise UserError(f"{name} {list(sizes)}", hint="give sizes from 1")

    def size(self, plugins: Registry) -> tuple[int, int]:
        """Return the number of requests and that of their runs, misfits among them.

        UserError for a name that there is not.
        """
        requests = len(self.labeled) * len(self.unlabeled) * number_of_combinations(self.params)
        rows = len(_methods(self, plugins)) * len(_datasets(self.datasets, plugins))
        return requests, requests * rows * self.seeds

    def requests(self, plugins: Registry) -> list[RunRequest]:
        """A request per size and combination of settings.

        UserError for a name or a size that there is not.
        """
        shared = {*parameters(Block)} & {*parameters(RunRequest)} - {"params", "seeds"}
        common = {name: getattr(self, name) for name in shared}
        return [
            RunRequest(
                _methods(self, plugins),
                _datasets(self.datasets, plugins),
                seeds=range(self.seeds),
                params=settings,
                labeled=size,
                unlabeled=None if cap == "all" else cap,
                **common,
            )
            for size in self.labeled
            for cap in self.unlabeled
            for settings in combinations(self.params)
        ]


#: field of `Block` by key of a table
KEYS = {
    each.option.removeprefix("--").replace("-", "_"): name
    for name, each in parameters(Block).items()
} | {each.name: each.name for each in fields(Block) if "parameter" not in each.metadata}


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    title: str
    about: str = ""
    store: str = STORE
    out: str = OUT
    ledger: str = ""
    paper: str = ""
    include: tuple[str, ...] = ()
    timeout: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    format: Literal[1] = 1
    cells: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=MOST_TABLES)]


class Suite(msgspec.Struct, frozen=True):
    """A suite file.

    Attributes
    ----------
    path: path of the file.  name: name of the files of its report.
    title, about: text of the page.
    store, out: folders of the records and of the report.
    ledger: file of printed numbers, for the page; None = there is none.
    paper: the paper whose numbers the page has; "" = all.
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

    def elsewhere(self, paths: Iterable[Path]) -> list[Path]:
        """Return the paths that a stranger's file should not choose.

        They are neither in the current folder nor in that of the file, nor those of a file that
        names none. Symbolic links are not followed: they are the user's.
        """
        folder = self.path.parent
        usual = {os.path.abspath(folder / name) for name in (STORE, OUT)}
        near = [os.getcwd(), os.path.abspath(folder)]
        absolute = {path: os.path.abspath(path) for path in paths}
        return [
            path
            for path, there in absolute.items()
            if there not in usual and not any(Path(there).is_relative_to(each) for each in near)
        ]


def read_suite(given: str) -> Suite:
    """Read a suite file.

    given: its path, or the name of one in ``leaderboards/suites`` or of the package. One of the
    package has records and report in the current folder.

    UserError, with file and line, for what is no TOML, an unknown key, a wrong value, and absurdly
    large ones.
    """
    path, packaged = _located_file(given)
    if not path.exists():
        raise UserError("no such suite", file=path, hint="give a file, or its name")
    text = read_text(path, hint="a suite is a TOML file", max_bytes=MAX_BYTES)
    file = _parse(text, path)
    stem = path.parent.name if path.stem == "suite" else path.stem
    return Suite(
        path=path,
        name=stem,
        title=file.title,
        about=file.about,
        store=PACKAGED_STORE if packaged else path.parent / file.store,
        out=PACKAGED_OUT if packaged else path.parent / file.out,
        ledger=path.parent / file.ledger if file.ledger and not packaged else None,
        paper=file.paper,
        include=() if packaged else tuple(path.parent / name for name in file.include),
        timeout=file.timeout,
        blocks=[_block(i, cells, text, path) for i, cells in enumerate(file.cells)],
        lines=_lines_of_tables(text, len(file.cells)),
    )


def suite_files() -> list[str]:
    """The names of all suites in ``leaderboards/suites``; elsewhere, of those of the package."""
    here, packaged = FOLDER.glob("*.toml"), (published_folder() / "suites").glob("*.toml")
    return sorted(path.stem for path in here) or sorted(path.stem for path in packaged)


def _located_file(given: str) -> tuple[Path, bool]:
    """The path of a suite, and whether it is one that comes with the package."""
    path = Path(given)
    if path.suffix or path.exists():
        return path, False
    here, published = FOLDER / f"{given}.toml", published_folder() / "suites" / f"{given}.toml"
    packaged = not here.exists() and len(path.parts) == 1 and published.is_file()
    return (published if packaged else here), packaged


def _block(number: int, table: dict[str, Any], text: str, path: Path) -> Block:
    """A table; the path of a template file, if it names one in the folder of the suite."""

    def wrong(key: str | None, what: str, hint: str | None) -> UserError:
        return UserError(what, file=path, line=_line(text, number, key), hint=hint)

    for key in table:
        if key not in KEYS:
            raise wrong(key, f"unknown key `{key}`", suggestion(key, KEYS))
    names, fields = (
        {field: key for key, field in KEYS.items()},
        {KEYS[key]: value for key, value in table.items()},
    )
    try:
        block = msgspec.convert(fields, Block)
    except msgspec.ValidationError as error:
        what = in_words(error, fields, Block, names)
        named = names.get(first_field(error) or "")
        raise wrong(named, what, "see docs/suites.md") from None
    except UserError as error:
        raise wrong(error.message.split()[0], error.message, error.hint) from None
    templates = path.parent / (block.featurizer or "")
    return replace(block, featurizer=str(templates)) if templates.is_file() else block


def _parse(text: str, path: Path) -> _File:
    for pattern, what in _ABSURD.items():
        if absurd := pattern.search(text):
            raise UserError(what, file=path, line=text.count("\n", 0, absurd.start()) + 1)
    try:
        tree: dict[str, Any] = tomllib.loads(text)
    except RecursionError:
        raise UserError("not TOML: hundreds of brackets in each other", file=path) from None
    except tomllib.TOMLDecodeError as error:
        at = _AT.search(str(error))
        line = int(at[1]) if at else text.count("\n") + 1
        raise UserError(f"not TOML: {_AT.sub('', str(error))}", file=path, line=line) from None
    defaults, cells = tree.pop("defaults", {}), tree.get("cells", [])
    if not isinstance(defaults, dict) or not isinstance(cells, list):
        raise UserError("defaults is a table, cells a list of tables ([[cells]])", file=path)
    tree["cells"] = [{**defaults, **each} if isinstance(each, dict) else each for each in cells]
    try:
        file = msgspec.convert(tree, _File)
    except msgspec.ValidationError as error:
        line, hint = _line(text, None, first_field(error)), "see docs/suites.md"
        raise UserError(in_words(error, tree, _File), file=path, line=line, hint=hint) from None
    if any("\0" in name for name in (file.store, file.out, file.ledger, *file.include)):
        raise UserError("a path with a NUL character", file=path)
    return file


def _lines_of_tables(text: str, number: int) -> list[int]:
    """Where each of the tables ``[[cells]]`` begins; 1 if they are written in another way."""
    lines = [n for n, line in enumerate(text.splitlines(), 1) if _CELLS.match(line)]
    return [*lines, *[1] * number][:number]


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
    for name in dict.fromkeys(block.methods):
        named += plugins.methods if name == "all" else [plugins.method(name).name]
    for name in block.without:
        plugins.method(name)
    return tuple(name for name in dict.fromkeys(named) if name not in block.without)


def _datasets(patterns: Sequence[str], plugins: Registry) -> tuple[str, ...]:
    names: list[str] = []
    for pattern in dict.fromkeys(patterns):
        matching = [name for name in plugins.datasets if fnmatchcase(name, pattern)]
        names += matching or [plugins.dataset(pattern).name]  # which raises
    return tuple(dict.fromkeys(names))
