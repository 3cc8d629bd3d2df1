"""A user's own CoNLL file or folder as a dataset."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path

import numpy as np

from sslbench.engine.corpus import (
    Corpus,
    CorpusShards,
    Scheme,
    Shards,
    Vocabulary,
    convert_labels,
    detect_scheme,
    read_conll,
    read_conllu,
    split_tag,
    tag_fits,
)
from sslbench.engine.corpus.conllu import FIELDS
from sslbench.engine.errors import UserError, printable
from sslbench.experiment.data import Dataset
from sslbench.plugins.registrations import FeaturizerInfo

SPLITS: Mapping[str, tuple[str, ...]] = {
    "train": ("train",),
    "dev": ("dev", "valid"),
    "test": ("test",),
    "unlabeled": ("unlabeled", "unlabelled"),
}
SUFFIXES = (".conll", ".conllu", ".txt", ".tsv", ".gz")
CUT_STREAM = 0x75736572  # seed of the permutation that holds out test sentences
TEST_SHARE = 5


def find_files(path: Path) -> dict[str, Path]:
    """The files of a user's data by split ("train", "dev", "test", "unlabeled").

    path: a file, which is "train", or a folder.

    Raises
    ------
    UserError: no such path, no train file in the folder, or two files of the same split.
    """
    _check_exists(path)
    if path.is_file():
        return {"train": path}
    if not path.is_dir():
        raise UserError("is neither a file nor a folder", file=path, hint="check --data")
    files: dict[str, Path] = {}
    for file in sorted(path.iterdir()):
        split = _split_of(file)
        if split in files:
            raise UserError(
                f"{files[split].name} and {file.name} both look like the {split} split",
                file=path,
                hint="keep one of them in the folder",
            )
        if split:
            files[split] = file
    if "train" not in files:
        names = ", ".join(f"{name}*" for names in SPLITS.values() for name in names)
        raise UserError(
            "no train file in the folder",
            file=path,
            hint=f"name the files {names} with one of the endings {' '.join(SUFFIXES)}",
        )
    return files


def columns_of(path: Path, columns: Sequence[str]) -> tuple[str, ...]:
    """What the files have: as named, but of CoNLL-U word (FORM) and label (UPOS).

    columns: as named; ten of them name the fields of CoNLL-U.
    """
    conllu = any(map(_is_conllu, find_files(path).values()))
    return ("word", "label") if conllu and len(columns) != len(FIELDS) else tuple(columns)


def _is_conllu(file: Path) -> bool:
    return file.name.lower().removesuffix(".gz").endswith(".conllu")


def _read(
    file: Path, columns: Sequence[str], vocabularies: dict[str, Vocabulary] | None = None
) -> Corpus:
    """The columns of a file that are not "_"."""
    if not _is_conllu(file):
        return read_conll(file, columns, vocabularies)
    fields: Mapping[str, str] = {"word": "FORM", "label": "UPOS"}
    if len(columns) == len(FIELDS):
        fields = {name: field for name, field in zip(columns, FIELDS, strict=True) if name != "_"}
    else:
        fields = {name: fields[name] for name in columns if name in fields}
    return read_conllu(file, vocabularies, columns=fields)


def all_files(path: Path) -> list[Path]:
    """The file itself, or all files below a folder, sorted; UserError for no such path."""
    _check_exists(path)
    return [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())


def file_hashes(path: Path, files: Iterable[Path]) -> dict[str, str]:
    """Sha256 of files, by their path relative to the folder `path` (or that of the file `path`)."""
    folder = path.parent if path.is_file() else path
    hashes = {}
    for file in files:
        _check_name(file)
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        hashes[file.relative_to(folder).as_posix()] = digest
    return hashes


def _check_name(path: Path) -> None:
    """UserError for a name that a record cannot hold."""
    if os.fsencode(path).decode(errors="ignore") != os.fspath(path):
        raise UserError("the name is not UTF-8", file=path, hint="rename the file or folder")


def _check_exists(path: Path) -> None:
    _check_name(path)
    if not path.exists():
        raise UserError("no such file or folder", file=path, hint="check --data")


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
    path: a file or folder, see `find_files`.
    columns: names of the columns, e.g. ("word", "pos", "label"); "_" skips one. See `columns_of`.
    notice: called with messages on decisions that the user should know.
    cut: if there is no test file, hold out a fixed fifth of train as test split.

    Returns
    -------
    The dataset. If the labels are chunk tags in a known scheme, its task is "spans" (labels
    rewritten as IOB2) or "segmentation" (BMES labels without types), otherwise "tagging".
    `metadata["source_scheme"]` is the scheme of the files, "none" for plain tags.

    Raises
    ------
    UserError: with file and line, for a file that cannot be read; for a label that is no chunk tag
        where most are.
    """
    files, columns = find_files(path), columns_of(path, columns)
    if "label" not in columns:
        raise UserError(
            f"no column is called label in --columns {','.join(columns)}",
            hint="e.g. --columns word,pos,label",
        )
    vocabularies: dict[str, Vocabulary] = {}
    labeled = {split: file for split, file in files.items() if split != "unlabeled"}
    splits = {split: _read(file, columns, vocabularies) for split, file in labeled.items()}
    scheme = _scheme_of(splits, labeled, columns)
    if "test" not in splits and cut:
        splits["train"], splits["test"] = _cut(splits["train"], files["train"])
        notice(
            f"{path}: no test file; {splits['test'].n_sentences} sentences of train, a fixed fifth,"
            " are held out for the test"
        )
    task, encoding, splits = recognize(splits, scheme)
    raw = files.get("unlabeled")
    return Dataset(
        name=dataset_name(path),
        task=task,
        metric="accuracy" if task == "tagging" else "f1",
        encoding=encoding,
        splits=splits,
        external=None if raw is None else lambda: _raw_text(raw, columns, vocabularies),
        metadata={"source_scheme": scheme or "none"},
    )


def _scheme_of(
    splits: Mapping[str, Corpus], files: Mapping[str, Path], columns: Sequence[str]
) -> Scheme | None:
    """The scheme of the labels; None for plain tags.

    One typing error (I_NP for I-NP) must not silently turn chunk tags into plain tags: if most
    labels are chunk tags, the files are read again to report the place of the first other label.
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
    # max() returns the first of equals. IOB1 is not listed: its labels are those of IOB2.
    schemes: tuple[Scheme, ...] = ("IOB2", "BMES", "IOBES") if scheme is None else (scheme,)
    share, nearest = max(((_share(labels, name), name) for name in schemes), key=itemgetter(0))
    mostly_typed = 2 * typed > labels.total() and share > 0.5
    mostly_bare = {"B", "E"} <= set(labels) and share > 0.95
    if mostly_typed or mostly_bare:
        for file in (file for file in files.values() if not _is_conllu(file)):
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
    legal = sum(count for label, count in labels.items() if tag_fits(label, scheme))
    return legal / max(1, labels.total())


def recognize(
    splits: dict[str, Corpus], scheme: Scheme | None
) -> tuple[str, str | None, dict[str, Corpus]]:
    """Task, encoding, and the splits in that encoding.

    scheme: of the labels as they are; None for plain tags.
    """
    if scheme is None:
        return "tagging", None, splits
    labels = splits["train"].column("label").vocabulary.strings
    if scheme == "BMES" and not any("-" in label for label in labels):
        return "segmentation", "BMES", splits
    if scheme != "IOB2":
        vocabulary = Vocabulary()
        splits = {
            name: convert_labels(part, scheme, "IOB2", vocabulary=vocabulary)
            for name, part in splits.items()
        }
    return "spans", "IOB2", splits


def dataset_name(path: Path) -> str:
    """Name of a user's data in records and tables: the file or folder name up to its first dot."""
    return printable(path.resolve().name.split(".")[0]) or "data"


def fitting_featurizers(
    infos: Mapping[str, FeaturizerInfo], task: str, columns: Sequence[str]
) -> list[str]:
    """Names of the featurizers for this task whose columns exist, those of most columns first.

    UserError if none fits.
    """
    fitting = [
        name
        for name, info in infos.items()
        if task in info.tasks and set(info.columns) <= set(columns)
    ]
    if not fitting:
        raise UserError(
            f"no featurizer fits the task {task} with the columns {', '.join(columns)}",
            hint="give one with --featurizer (see sslbench list featurizers)",
        )
    return sorted(fitting, key=lambda name: -len(infos[name].columns))


def _split_of(file: Path) -> str:
    """The split that the name of a file says; "" for other files."""
    if not file.is_file() or file.suffix.lower() not in SUFFIXES:
        return ""
    name = file.name.lower()
    splits = [split for split, prefixes in SPLITS.items() if name.startswith(prefixes)]
    return splits[0] if splits else ""


def _cut(corpus: Corpus, file: Path) -> tuple[Corpus, Corpus]:
    """Four fifths for train and one for test, the same for every seed: results are comparable."""
    if corpus.n_sentences < 2:
        message = "one sentence cannot be split into train and test"
        raise UserError(message, file=file, hint="add a test file")
    order = np.random.default_rng(CUT_STREAM).permutation(corpus.n_sentences)
    n_test = max(1, corpus.n_sentences // TEST_SHARE)
    return corpus.select(np.sort(order[n_test:])), corpus.select(np.sort(order[:n_test]))


def _raw_text(file: Path, columns: Sequence[str], vocabularies: dict[str, Vocabulary]) -> Shards:
    """The unlabeled file, with all columns (labels are dropped) or all but the label column."""
    shared = {name: words for name, words in vocabularies.items() if name != "label"}
    label_skipped = tuple("_" if name == "label" else name for name in columns)
    try:
        return CorpusShards(_read(file, label_skipped, shared))
    except UserError as error:
        label_missing = tuple(name for name in columns if name != "label")
        try:
            return CorpusShards(_read(file, label_missing, shared))
        except UserError:
            raise error from None
