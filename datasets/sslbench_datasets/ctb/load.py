"""``ctb7``: joint word segmentation and tagging of the Chinese Treebank 7.0, by characters.

Source: N. Xue et al., Chinese Treebank 7.0, LDC2010T07, 2010, for licence holders. Its folder
data/utf-8 has the same text twice: postagged/chtb_0001.nw.pos, one sentence per line of word_TAG,
and bracketed/chtb_0001.nw, trees. The tagged files are used if both are there. Depending on the
genre, sentences are in <S ID=1> or <seg id="1"> elements, after <su id=1A>, or without markup;
markup is on separate lines.

Split by file number: Y. Wang et al., Improving Chinese word segmentation and POS tagging with
semi-supervised methods using large auto-analyzed data, IJCNLP 2011. Zeng et al. (2013) have splits
of other sizes and do not name the files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from sslbench.engine.corpus import RawBytes
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.chinese.info import RAW_TEXT
from sslbench_datasets.chinese.text import (
    SegmentedText,
    TaggedWord,
    raw_text,
    segmentation_dataset,
    tagged_words,
    text_lines,
)
from sslbench_datasets.ctb.info import COUNTS, DEV, TEST
from sslbench_datasets.loading import (
    FolderOptions,
    check_counts,
    files_in,
    parse_options,
    read_hashed,
    text_metadata,
    without_check,
)
from sslbench_datasets.treebank.trees import read_trees
from sslbench_datasets.upstream import SPLITS

_PARENTS = ("data/utf-8", "utf-8", ".")  # where the folders of the formats may be
_HINT = (
    "give the folder of LDC2010T07, with data/utf-8/postagged with files chtb_NNNN.*.pos,"
    " with --data FOLDER or --set ctb7.path=FOLDER"
)


class Options(FolderOptions, frozen=True, forbid_unknown_fields=True):
    """Options of ``ctb7``."""

    unlabeled: Annotated[
        str,
        Meta(
            description="your own unlabeled text in place of the external one: a file with one"
            " sentence per line, whose spaces are left out"
        ),
    ] = ""


@dataclass(frozen=True)
class Format:
    """One of the two formats of the text.

    Attributes
    ----------
    folder: name of the folder of its files.
    name: pattern of the names of its files; group 1 is the file number.
    read: gives the sentences of a file.
    """

    folder: str
    name: re.Pattern[str]
    read: Callable[[RawBytes], Iterator[list[TaggedWord]]]


def load(home: DataHome, **options: object) -> Dataset:
    """Read a licence holder's treebank from the folder of the option ``path`` or `home.root`.

    ``metadata["sha256"]`` is of the bytes of all files read, in order. UserError for a bad option,
    a missing folder, a split without files, a malformed file and, unless ``check`` is off, counts
    of files and sentences that are not those of the LDC catalog.
    """
    settings = parse_options("ctb7", options, Options)
    root = settings.folder(home)
    text_format, files = find_files(root)
    digest = hashlib.sha256()

    def sentences(split: str) -> Iterator[list[TaggedWord]]:
        for path in (path for path, number in files.items() if split_of(number) == split):
            yield from text_format.read(read_hashed(path, digest))

    texts = {split: SegmentedText.from_sentences(sentences(split), root) for split in SPLITS}
    if settings.check:
        counts = len(files), sum(len(text.lengths) for text in texts.values())
        hint = without_check("ctb7")
        check_counts("the treebank", counts, COUNTS, ("files", "sentences"), root, hint)
    unlabeled, home = settings.unlabeled, settings.text_home(home)
    form = {"sha256": digest.hexdigest(), "form": text_format.folder}
    external = partial(raw_text, [Path(unlabeled).expanduser()] if unlabeled else RAW_TEXT, home)
    metadata = {**form, **text_metadata(unlabeled, home)}
    return segmentation_dataset("ctb7", texts, external, metadata)


def split_of(number: int) -> str:
    """The split of the file of that number."""
    return "dev" if number in _DEV else "test" if number in _TEST else "train"


def numbers(ranges: str) -> set[int]:
    """The numbers of a list of ranges: "1-3,7" is {1, 2, 3, 7}."""
    result: set[int] = set()
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        result.update(range(int(first), int(last or first) + 1))
    return result


def find_files(root: Path) -> tuple[Format, Mapping[Path, int]]:
    """The format of the text in a folder, and the number of each of its files, by name.

    UserError for a missing folder, a folder with neither format, and a split without files.
    """
    if not root.is_dir():
        raise UserError("no such folder", file=root, hint=_HINT)
    for text_format in FORMATS:
        for folder in [*(root / parent / text_format.folder for parent in _PARENTS), root]:
            matches = {path: text_format.name.fullmatch(path.name) for path in files_in(folder)}
            files = {path: int(match[1]) for path, match in matches.items() if match}
            missing = set(SPLITS) - set(map(split_of, files.values()))
            if files and missing:
                message = f"no file of {' and '.join(sorted(missing))}"
                raise UserError(message, file=folder, hint=_HINT)
            if files:
                return text_format, files
    raise UserError("no file of the Chinese Treebank in this folder", file=root, hint=_HINT)


def read_tagged(source: RawBytes) -> Iterator[list[TaggedWord]]:
    """The sentences of a .pos file; UserError, with file and line, for an item without a tag."""
    for number, line in text_lines(source):
        if not _is_markup(line):
            pairs = tagged_words(line.split(), source, number)
            yield [(word, _base_tag(tag)) for word, tag in pairs]


def read_bracketed(source: RawBytes) -> Iterator[list[TaggedWord]]:
    """The sentences of a file of trees, without traces; UserError as `trees.read_trees`."""
    lines = {number: line for number, line in text_lines(source) if not _is_markup(line)}
    # Blank lines replace the markup, so that errors have the right line numbers.
    text = "\n".join(lines.get(number, "") for number in range(1, max(lines, default=0) + 1))
    trees = read_trees(RawBytes(source.name, text.encode()))
    for i in range(trees.n_sentences):
        tags = map(_base_tag, trees.sentence(i, "label"))
        yield list(zip(trees.sentence(i, "word"), tags, strict=True))


def _is_markup(line: str) -> bool:
    """Whether a line is markup; "<_PU" and "<_PU 上海_NR" are sentences."""
    return line.startswith("<") and "_" not in line.split()[0]


def _base_tag(tag: str) -> str:
    """NR for NR-SHORT: the suffix marks an abbreviated word; the guidelines have 33 tags."""
    return tag.partition("-")[0] or tag


_DEV, _TEST = numbers(DEV), numbers(TEST)
# Segmented and raw files (chtb_0001.nw.seg, .raw) have neither format.
FORMATS = (
    Format("postagged", re.compile(r"chtb_(\d{4})(?:\.\w+)?\.pos"), read_tagged),
    Format("bracketed", re.compile(r"chtb_(\d{4})\.(?!(?:pos|seg|raw)$)\w+"), read_bracketed),
)
