"""``wsj_sample`` and ``ptb``: part-of-speech tagging of Wall Street Journal text.

Source: M. Marcus, B. Santorini, M. A. Marcinkiewicz, Building a large annotated corpus of English:
the Penn Treebank, 1993. Words and tags are the leaves of the trees, as in M. Collins,
Discriminative training methods for hidden Markov models, 2002; Suzuki & Isozaki (2008) use the same
sections. The tagged files (.pos) are split into other sentences (in the sample 94,200 tokens
instead of 94,084, and quotes that end a sentence are separate sentences).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from sslbench.engine.corpus import Corpus, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.loading import (
    SIZE,
    FolderOptions,
    OwnText,
    TextOptions,
    files_in,
    parse_options,
    read_hashed,
    text_metadata,
    without_check,
)
from sslbench_datasets.reuters.load import tokenized_text
from sslbench_datasets.treebank.info import (
    PTB_COUNTS,
    PTB_SECTIONS,
    SAMPLE,
    SAMPLE_COUNTS,
    SAMPLE_FILES,
)
from sslbench_datasets.treebank.trees import read_trees

N_SECTIONS = 25
# Where the sections 00 to 24 may be below the folder of the user.
_PARENTS = (
    *(".", "wsj", "WSJ", "mrg/wsj", "combined", "combined/wsj"),
    *("parsed/mrg/wsj", "treebank_3/parsed/mrg/wsj"),
)
_HINT = (
    "give the folder of the Penn Treebank's combined trees, with wsj/00 to wsj/24 with"
    " .mrg files, with {flags} (tagged .pos files will not do)"
)
_FLAGS = "--data FOLDER or --set ptb.path=FOLDER"


class Options(FolderOptions, frozen=True, forbid_unknown_fields=True):
    """Options of ``ptb``."""

    unlabeled: OwnText = ""


def load_sample(home: DataHome, **options: object) -> Dataset:
    """Read NLTK's sample; options are those of `TextOptions`.

    UserError for a bad option, a missing or malformed file or unexpected counts.
    """
    settings = parse_options("wsj_sample", options, TextOptions)
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
    SIZE.check(splits, SAMPLE_COUNTS, dict.fromkeys(splits, path))
    return _dataset("wsj_sample", splits, SAMPLE.sha256, settings.unlabeled, home)


def load_ptb(home: DataHome, **options: object) -> Dataset:
    """Read a licence holder's Penn Treebank from the folder of the option ``path`` or `home.root`.

    ``metadata["sha256"]`` is of the bytes of all files read, in order. UserError for a bad option,
    a missing folder or section, a malformed file and, unless ``check`` is off, counts that are not
    the published ones.
    """
    settings = parse_options("ptb", options, Options)
    root = settings.folder(home)
    splits, sha256 = read_sections(root, PTB_SECTIONS, {})
    if settings.check:
        SIZE.check(splits, PTB_COUNTS, dict.fromkeys(splits, root), without_check("ptb"))
    return _dataset("ptb", splits, sha256, settings.unlabeled, settings.text_home(home))


def read_sections(
    root: Path,
    ranges: Mapping[str, tuple[int, int]],
    vocabularies: dict[str, Vocabulary],
    flags: str = _FLAGS,
) -> tuple[dict[str, Corpus], str]:
    """Read sections of a licence holder's Penn Treebank.

    ranges: first and last section of each corpus.
    vocabularies: vocabularies by column; they are extended.
    flags: the options that name the folder, for messages.
    Returns the corpora, and the sha256 of the bytes of all files read, in order.
    UserError for a missing folder or section or a malformed file.
    """
    sections = find_sections(root, flags)
    digest = hashlib.sha256()
    splits = {}
    for split, (first, last) in ranges.items():
        paths = [path for number in range(first, last + 1) for path in sections[number]]
        corpora = [read_trees(read_hashed(path, digest), vocabularies) for path in paths]
        splits[split] = Corpus.concatenate(corpora)
    return splits, digest.hexdigest()


def find_sections(root: Path, flags: str = _FLAGS) -> dict[int, list[Path]]:
    """The .mrg files of each of the sections 0 to 24, by name.

    flags: see `read_sections`.
    UserError for a missing folder, a folder without sections, and a missing section.
    """
    hint = _HINT.format(flags=flags)
    if not root.is_dir():
        raise UserError("no such folder", file=root, hint=hint)
    for parent in _PARENTS:
        folder = root / parent
        sections = {number: tree_files(folder / f"{number:02d}") for number in range(N_SECTIONS)}
        missing = [f"{number:02d}" for number, files in sections.items() if not files]
        if not missing:
            return sections
        if len(missing) < len(sections):
            message = f"no .mrg file in section{'s' * (len(missing) > 1)} {', '.join(missing)}"
            raise UserError(message, file=folder, hint="sections 00 to 24 are needed")
    raise UserError("no section of the Penn Treebank in this folder", file=root, hint=hint)


def tree_files(folder: Path) -> list[Path]:
    """The .mrg files of a folder (.MRG on CD-ROMs); UserError if it cannot be read."""
    return [path for path in files_in(folder) if path.name.lower().endswith(".mrg")]


def _dataset(
    name: str, splits: Mapping[str, Corpus], sha256: str, user_file: str, home: DataHome
) -> Dataset:
    """user_file: external text of the user, or "".  home: data home of the external text."""
    words = {"word": splits["train"].column("word").vocabulary}
    return Dataset(
        name=name,
        task="tagging",
        metric="accuracy",
        encoding=None,
        splits=splits,
        external=partial(tokenized_text, home, words, user_file),
        metadata={"sha256": sha256, **text_metadata(user_file, home)},
    )
