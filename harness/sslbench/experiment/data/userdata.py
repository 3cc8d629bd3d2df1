"""A user's own CoNLL file or folder as a data set."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sslbench.corpus import (
    Corpus,
    CorpusShards,
    Scheme,
    Shards,
    Vocabulary,
    convert_labels,
    detect_scheme,
    read_conll,
    split_tag,
    tag_fits,
)
from sslbench.errors import UserError
from sslbench.experiment.data import Dataset
from sslbench.registrations import FeaturizerInfo

SPLITS: Mapping[str, tuple[str, ...]] = {
    "train": ("train",),
    "dev": ("dev", "valid"),
    "test": ("test",),
    "unlabeled": ("unlabeled", "unlabelled"),
}
SUFFIXES = (".conll", ".txt", ".tsv", ".gz")
CUT_STREAM = 0x75736572
TEST_SHARE = 5


def find_files(path: Path) -> dict[str, Path]:
    """The files of a user's data by split ("train", "dev", "test", "unlabeled").

    A lone file is "train". UserError when nothing fits or when two files claim one split.
    """
    if not path.exists():
        raise UserError("no such file or folder", file=path, hint="check --data")
    if path.is_file():
        return {"train": path}
    if not path.is_dir():
        raise UserError("is neither a file nor a folder", file=path, hint="check --data")
    found: dict[str, Path] = {}
    for file in sorted(path.iterdir()):
        split = _split_of(file)
        if split in found:
            raise UserError(
                f"{found[split].name} and {file.name} both look like the {split} split",
                file=path,
                hint="keep one of them in the folder",
            )
        if split:
            found[split] = file
    if "train" not in found:
        names = ", ".join(f"{name}*" for names in SPLITS.values() for name in names)
        raise UserError(
            "no train file in the folder",
            file=path,
            hint=f"name the files {names} with one of the endings {' '.join(SUFFIXES)}",
        )
    return found


def hash_files(path: Path) -> dict[str, str]:
    """Sha256 of each file of a user's data, by file name."""
    digests = {}
    for file in find_files(path).values():
        with file.open("rb") as stream:
            digests[file.name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return digests


def load_user_data(
    path: Path,
    columns: Sequence[str],
    notice: Callable[[str], None] = lambda text: None,
    *,
    cut: bool = True,
) -> Dataset:
    """Read a user's data.

    Parameters
    ----------
    columns: meaning of the columns, e.g. ("word", "pos", "label"); "_" skips one.
    notice: told about decisions that the user should know.
    cut: without a test file, cut a fixed fifth off train; otherwise there is then no test split.

    Returns
    -------
    Task "spans" (labels rewritten as IOB2) or "segmentation" (BMES labels without types) when the
    labels are chunk tags in a known scheme, else "tagging". `metadata["source_scheme"]` is the scheme
    of the files ("none" for plain tags).

    Raises
    ------
    UserError: with file and line; also for a stray label among chunk tags.
    """
    files = find_files(path)
    if "label" not in columns:
        raise UserError(
            f"no column is called label in --columns {','.join(columns)}",
            hint="e.g. --columns word,pos,label",
        )
    vocabularies: dict[str, Vocabulary] = {}
    labeled = {split: file for split, file in files.items() if split != "unlabeled"}
    splits = {split: read_conll(file, columns, vocabularies) for split, file in labeled.items()}
    scheme = _scheme_of(splits, labeled, columns)
    if "test" not in splits and cut:
        splits["train"], splits["test"] = _cut(splits["train"], files["train"])
        notice(
            f"{path}: no test file; every fit is tested on {splits['test'].n_sentences} sentences"
            " cut from train (a fixed fifth)"
        )
    kind = _recognize(splits, scheme)
    raw = files.get("unlabeled")
    return Dataset(
        name=dataset_name(path),
        task=kind.task,
        metric="accuracy" if kind.task == "tagging" else "f1",
        encoding=kind.encoding,
        splits=kind.splits,
        external=None if raw is None else lambda: _raw_text(raw, columns, vocabularies),
        metadata={"source_scheme": scheme or "none"},
    )


class _Kind(NamedTuple):
    """What the labels turned out to be, and the splits in the encoding to work with."""

    task: str
    encoding: str | None
    splits: dict[str, Corpus]


def _scheme_of(
    splits: Mapping[str, Corpus], files: Mapping[str, Path], columns: Sequence[str]
) -> Scheme | None:
    """The scheme of the labels; None for plain tags.

    A single slip (I_NP for I-NP) must not turn chunks into plain tags without a word: when most
    labels are chunk tags, the files are read again to name the place of the first that is none.
    """
    rows = [
        corpus.sentence(i, "label") for corpus in splits.values() for i in range(corpus.n_sentences)
    ]
    scheme = detect_scheme(rows)
    labels = Counter(label for label in chain.from_iterable(rows) if label != "O")
    typed = sum(count for label, count in labels.items() if "-" in label)
    if scheme is not None and typed in (0, labels.total()):
        return scheme
    _refuse_bilou(set(labels), files["train"])
    # Of equals, the first: IOB1 has the labels of IOB2.
    schemes: tuple[Scheme, ...] = ("IOB2", "BMES", "IOBES") if scheme is None else (scheme,)
    share, nearest = max(((_share(labels, name), name) for name in schemes), key=itemgetter(0))
    stray_type = 2 * typed > labels.total() and share > 0.5
    stray_prefix = {"B", "E"} <= set(labels) and share > 0.95
    if stray_type or stray_prefix:
        for file in files.values():
            read_conll(file, columns, scheme=nearest)
    return scheme


def _refuse_bilou(labels: set[str], file: Path) -> None:
    prefixes = {split_tag(label)[0] for label in labels if "-" in label}
    if {"B", "L"} <= prefixes <= set("BILU") and all("-" in label for label in labels):
        raise UserError(
            "the labels look like BILOU, which is not read",
            file=file,
            hint="write E for L and S for U (IOBES)",
        )


def _share(labels: Counter[str], scheme: Scheme) -> float:
    """Share of the tokens outside O whose label is legal in a scheme."""
    fits = sum(count for label, count in labels.items() if tag_fits(label, scheme))
    return fits / max(1, labels.total())


def _recognize(splits: dict[str, Corpus], scheme: Scheme | None) -> _Kind:
    if scheme is None:
        return _Kind("tagging", None, splits)
    labels = splits["train"].column("label").vocabulary.strings
    if scheme == "BMES" and not any("-" in label for label in labels):
        return _Kind("segmentation", "BMES", splits)
    if scheme != "IOB2":
        vocabulary = Vocabulary()
        splits = {
            name: convert_labels(part, scheme, "IOB2", vocabulary=vocabulary)
            for name, part in splits.items()
        }
    return _Kind("spans", "IOB2", splits)


def dataset_name(path: Path) -> str:
    """Name of a user's data in records and tables: file or folder name without its endings."""
    return path.resolve().name.split(".")[0] or "data"


def fitting_featurizer(
    infos: Mapping[str, FeaturizerInfo], task: str, columns: Sequence[str]
) -> str:
    """The first featurizer made for this task whose columns are all there."""
    for name, info in infos.items():
        if task in info.tasks and set(info.columns) <= set(columns):
            return name
    raise UserError(
        f"no featurizer fits the task {task} with the columns {', '.join(columns)}",
        hint="choose one with --featurizer (see sslbench list featurizers)",
    )


def _split_of(file: Path) -> str:
    if not file.is_file() or file.suffix.lower() not in SUFFIXES:
        return ""
    name = file.name.lower()
    hits = [split for split, starts in SPLITS.items() if name.startswith(starts)]
    return hits[0] if hits else ""


def _cut(corpus: Corpus, file: Path) -> tuple[Corpus, Corpus]:
    """80/20 into train and test; the same cut for every seed, so that results are comparable."""
    if corpus.n_sentences < 2:
        message = "one sentence cannot be cut into train and test"
        raise UserError(message, file=file, hint="add a test file")
    order = np.random.default_rng(CUT_STREAM).permutation(corpus.n_sentences)
    n_test = max(1, corpus.n_sentences // TEST_SHARE)
    return corpus.select(np.sort(order[n_test:])), corpus.select(np.sort(order[:n_test]))


def _raw_text(file: Path, columns: Sequence[str], vocabularies: dict[str, Vocabulary]) -> Shards:
    """The unlabeled file: with all columns (labels are dropped) or all but the label column."""
    known = {name: words for name, words in vocabularies.items() if name != "label"}
    blind = tuple("_" if name == "label" else name for name in columns)
    try:
        return CorpusShards(read_conll(file, blind, known))
    except UserError as error:
        bare = tuple(name for name in columns if name != "label")
        try:
            return CorpusShards(read_conll(file, bare, known))
        except UserError:
            raise error from None
