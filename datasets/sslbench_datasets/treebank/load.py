"""``wsj_sample`` and ``ptb``: part-of-speech tagging of Wall Street Journal text.

Source: M. Marcus, B. Santorini, M. A. Marcinkiewicz, Building a large annotated corpus of English:
the Penn Treebank, 1993. Words and tags are the leaves of the trees, as in M. Collins,
Discriminative training methods for hidden Markov models, 2002, whose sections Suzuki & Isozaki
(2008) use too. The tagged files (.pos) are no substitute: they are not cut into the same sentences
(in the sample 94,200 tokens for 94,084, and quotes that end a sentence stand alone).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from sslbench.corpus import Corpus, RawBytes, Vocabulary, read_bytes
from sslbench.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.checks import check_sizes, chosen
from sslbench_datasets.treebank.info import (
    PTB_COUNTS,
    PTB_SECTIONS,
    SAMPLE,
    SAMPLE_COUNTS,
    SAMPLE_FILES,
)
from sslbench_datasets.treebank.trees import read_trees

# Where the folders 00 to 24 lie: in the folder given, or below it in the layouts that go about.
_LAYOUTS = (
    *(".", "wsj", "WSJ", "mrg/wsj", "combined", "combined/wsj"),
    *("parsed/mrg/wsj", "treebank_3/parsed/mrg/wsj"),
)
_HINT = (
    "give the folder of the Penn Treebank's combined trees, which holds wsj/00 to wsj/24 with"
    " .mrg files, with {way} (tagged .pos files will not do)"
)
_WAY = "--data FOLDER or --set ptb.path=FOLDER"


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of ``ptb``."""

    path: Annotated[
        str, Meta(description="the licence holder's own folder; empty: the one of --data")
    ] = ""
    check: Annotated[
        bool, Meta(description="refuse other numbers of sentences and tokens than published")
    ] = True


def load_sample(home: DataHome) -> Dataset:
    """Read NLTK's sample; UserError when it is missing, malformed or of other counts."""
    path = home.path(SAMPLE)
    vocabularies: dict[str, Vocabulary] = {}
    splits = {
        split: Corpus.concatenate(
            [
                read_trees((path, f"treebank/combined/wsj_{number:04d}.mrg"), vocabularies)
                for number in range(first, last + 1)
            ]
        )
        for split, (first, last) in SAMPLE_FILES.items()
    }
    check_sizes(splits, SAMPLE_COUNTS, dict.fromkeys(splits, path))
    return _dataset("wsj_sample", splits, SAMPLE.sha256)


def load_ptb(home: DataHome, **options: object) -> Dataset:
    """Read a licence holder's Penn Treebank; ``home.root`` is the folder unless ``path`` is given.

    ``metadata["sha256"]`` is of the bytes of all files read, in order. UserError for an option that
    does not fit, when there is no such folder, when a section is not there, for a malformed file,
    and, unless ``check`` is off, for counts that are not the published ones.
    """
    settings = chosen("ptb", options, Options)
    root = Path(settings.path).expanduser() if settings.path else home.root
    splits, sha256 = read_sections(root, PTB_SECTIONS, {})
    if settings.check:
        hint = "is a file missing? --set ptb.check=false takes it as it is"
        check_sizes(splits, PTB_COUNTS, dict.fromkeys(splits, root), hint)
    return _dataset("ptb", splits, sha256)


def read_sections(
    root: Path,
    spans: Mapping[str, tuple[int, int]],
    vocabularies: dict[str, Vocabulary],
    way: str = _WAY,
) -> tuple[dict[str, Corpus], str]:
    """Read a licence holder's Penn Treebank: name -> sections, from first to last.

    Returns a corpus per name, and the sha256 of the bytes of all files read, in order.
    vocabularies: per column, used and extended. way: how the user gives the folder, for messages.
    UserError when the folder or one of its 25 sections is not there, or a file is malformed.
    """
    sections = find_sections(root, way)
    digest = hashlib.sha256()
    splits: dict[str, Corpus] = {}
    for split, (first, last) in spans.items():
        corpora = []
        for path in (path for number in range(first, last + 1) for path in sections[number]):
            data = read_bytes(path)
            digest.update(data)
            corpora.append(read_trees(RawBytes(str(path), data), vocabularies))
        splits[split] = Corpus.concatenate(corpora)
    return splits, digest.hexdigest()


def find_sections(root: Path, way: str = _WAY) -> dict[int, list[Path]]:
    """The .mrg files of each of the sections 0 to 24, by name.

    way: how the user gives the folder, for messages.
    UserError when there is no such folder, no section below it, or one of them is missing.
    """
    hint = _HINT.format(way=way)
    if not root.is_dir():
        raise UserError("no such folder", file=root, hint=hint)
    for layout in _LAYOUTS:
        folder = root / layout
        sections = {number: _trees_in(folder / f"{number:02d}") for number in range(25)}
        missing = [f"{number:02d}" for number, files in sections.items() if not files]
        if not missing:
            return sections
        if len(missing) < len(sections):
            message = f"no .mrg file in section{'s' * (len(missing) > 1)} {', '.join(missing)}"
            raise UserError(message, file=folder, hint="sections 00 to 24 are needed")
    raise UserError("no section of the Penn Treebank in this folder", file=root, hint=hint)


def _trees_in(section: Path) -> list[Path]:
    """Sorted by name; upper case comes from CD-ROMs, hidden files from file servers."""
    if not section.is_dir():
        return []
    try:
        files = [path for path in section.iterdir() if path.name.lower().endswith(".mrg")]
    except OSError as problem:
        raise UserError(f"cannot be read: {problem.strerror}", file=section) from problem
    return sorted((path for path in files if path.name[0] != "."), key=lambda path: path.name)


def _dataset(name: str, splits: Mapping[str, Corpus], sha256: str) -> Dataset:
    return Dataset(
        name=name,
        task="tagging",
        metric="accuracy",
        encoding=None,
        splits=splits,
        metadata={"sha256": sha256},
    )
