"""``ctb7``: joint word segmentation and tagging of the Chinese Treebank 7.0, by characters.

Source: N. Xue et al., Chinese Treebank 7.0, LDC2010T07, 2010, for licence holders. Its folder
data/utf-8 holds the same text twice: postagged/chtb_0001.nw.pos, a sentence a line of word_TAG, and
bracketed/chtb_0001.nw, trees. Either will do, the tagged files come first. By genre a file has
sentences in <S ID=1> or <seg id="1"> elements, after <su id=1A>, or bare; markup has its own lines.

Split: Y. Wang et al., Improving Chinese word segmentation and POS tagging with semi-supervised
methods using large auto-analyzed data, IJCNLP 2011, by numbers of files. Zeng et al. (2013) have
sizes of their own and name no files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from sslbench.corpus import RawBytes, read_bytes
from sslbench.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.checks import chosen
from sslbench_datasets.chinese.load import Cell, Words, as_characters, cells, text_lines
from sslbench_datasets.ctb.info import DEV, FILES, SENTENCES, TEST
from sslbench_datasets.treebank.trees import read_trees

_LAYOUTS = ("data/utf-8", "utf-8", ".")  # below the folder given
_HINT = (
    "give the folder of LDC2010T07, which holds data/utf-8/postagged with files chtb_NNNN.*.pos,"
    " with --data FOLDER or --set ctb7.path=FOLDER"
)


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of ``ctb7``."""

    path: Annotated[
        str, Meta(description="the licence holder's own folder; empty: the one of --data")
    ] = ""
    check: Annotated[
        bool, Meta(description="refuse other numbers of files and sentences than LDC's catalog")
    ] = True


@dataclass(frozen=True)
class Form:
    """One of the two forms of the text. folder: of its files; name: of a file, with its number."""

    folder: str
    name: re.Pattern[str]
    read: Callable[[RawBytes], Iterator[list[Cell]]]


def load(home: DataHome, **options: object) -> Dataset:
    """Read a licence holder's treebank; ``home.root`` is the folder unless ``path`` is given.

    ``metadata["sha256"]`` is of the bytes of all files read, in order. UserError for an option that
    does not fit, when there is no such folder, no file of a split in it, for a malformed file, and,
    unless ``check`` is off, for other numbers of files and sentences than LDC's.
    """
    settings = chosen("ctb7", options, Options)
    root = Path(settings.path).expanduser() if settings.path else home.root
    form, files = find_files(root)
    digest = hashlib.sha256()

    def sentences(split: str) -> Iterator[list[Cell]]:
        for path in (path for path, number in files.items() if split_of(number) == split):
            data = read_bytes(path)
            digest.update(data)
            yield from form.read(RawBytes(str(path), data))

    words = {split: Words.of(sentences(split), root) for split in ("train", "dev", "test")}
    if settings.check:
        _check(root, len(files), sum(len(found.counts) for found in words.values()))
    metadata = {"sha256": digest.hexdigest(), "form": form.folder}
    return as_characters("ctb7", words, metadata=metadata)


def split_of(number: int) -> str:
    """Where the file of that number belongs."""
    return "dev" if number in _DEV else "test" if number in _TEST else "train"


def numbers(ranges: str) -> set[int]:
    """ "1-3,7" is {1, 2, 3, 7}."""
    found: set[int] = set()
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def find_files(root: Path) -> tuple[Form, Mapping[Path, int]]:
    """The form that is there, and the number of each of its files, by name.

    UserError when there is no such folder, neither form below it, or no file of some split.
    """
    if not root.is_dir():
        raise UserError("no such folder", file=root, hint=_HINT)
    for form in FORMS:
        for folder in [*(root / layout / form.folder for layout in _LAYOUTS), root]:
            files = _matching(folder, form.name)
            missing = {"train", "dev", "test"} - set(map(split_of, files.values()))
            if files and missing:
                message = f"no file of {' and '.join(sorted(missing))}"
                raise UserError(message, file=folder, hint=_HINT)
            if files:
                return form, files
    raise UserError("no file of the Chinese Treebank in this folder", file=root, hint=_HINT)


def _matching(folder: Path, name: re.Pattern[str]) -> dict[Path, int]:
    if not folder.is_dir():
        return {}
    try:
        found = sorted(folder.iterdir())
    except OSError as problem:
        raise UserError(f"cannot be read: {problem.strerror}", file=folder) from problem
    matches = {path: name.fullmatch(path.name) for path in found}
    return {path: int(match[1]) for path, match in matches.items() if match}


def _check(root: Path, n_files: int, n_sentences: int) -> None:
    if (n_files, n_sentences) != (FILES, SENTENCES):
        raise UserError(
            f"(files, sentences) = {(n_files, n_sentences)}, should have {(FILES, SENTENCES)}",
            file=root,
            hint="is a file missing? --set ctb7.check=false takes it as it is",
        )


def read_tagged(source: RawBytes) -> Iterator[list[Cell]]:
    """The sentences of a .pos file; UserError, with file and line, for an item without tag."""
    for number, line in text_lines(source):
        if not _is_markup(line):
            yield [(word, _bare(tag)) for word, tag in cells(line.split(), source, number)]


def read_bracketed(source: RawBytes) -> Iterator[list[Cell]]:
    """The sentences of a file of trees, traces left out; UserError as in `trees.read_trees`."""
    lines = {number: line for number, line in text_lines(source) if not _is_markup(line)}
    # Blank lines in the place of markup: errors keep their line numbers.
    text = "\n".join(lines.get(number, "") for number in range(1, max(lines, default=0) + 1))
    trees = read_trees(RawBytes(source.name, text.encode()))
    for i in range(trees.n_sentences):
        tags = map(_bare, trees.sentence(i, "label"))
        yield list(zip(trees.sentence(i, "word"), tags, strict=True))


def _is_markup(line: str) -> bool:
    """Whether a line is markup and no sentence; "<_PU" and "<_PU 上海_NR" are sentences."""
    return line.startswith("<") and "_" not in line.split()[0]


def _bare(tag: str) -> str:
    """NR for NR-SHORT: the guidelines have 33 tags, the suffix marks an abbreviated word."""
    return tag.partition("-")[0] or tag


_DEV, _TEST = numbers(DEV), numbers(TEST)
# Segmented and raw files (chtb_0001.nw.seg, .raw) are neither.
FORMS = (
    Form("postagged", re.compile(r"chtb_(\d{4})(?:\.\w+)?\.pos"), read_tagged),
    Form("bracketed", re.compile(r"chtb_(\d{4})\.(?!(?:pos|seg|raw)$)\w+"), read_bracketed),
)
