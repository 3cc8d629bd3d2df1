"""A user's own CoNLL file or folder as a dataset."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from sslbench.engine.corpus import (
    Corpus,
    CorpusShards,
    Scheme,
    Shards,
    Vocabulary,
    convert_labels,
)
from sslbench.engine.errors import UserError, printable
from sslbench.engine.files.folders import check_name
from sslbench.experiment.data import Dataset
from sslbench.experiment.data.imports.files import KINDS, kind_of, parts_of
from sslbench.experiment.data.labels import label_scheme
from sslbench.experiment.data.layout import Reading
from sslbench.experiment.data.reading import (
    Read,
    columns_in,
    is_conllu,
    read_file,
    read_text_file,
    text_notes,
)
from sslbench.experiment.data.spelling import Spelling
from sslbench.experiment.data.weak import without_weak
from sslbench.experiment.data.weak_files import check_sources, with_weak
from sslbench.plugins.registrations import FeaturizerInfo

SPLITS: Mapping[str, tuple[str, ...]] = {
    "unlabeled": ("unlabeled", "unlabelled"),
    "train": ("train", "training", "trn"),
    "dev": ("dev", "devel", "development", "valid", "validation", "val", "testa"),
    "test": ("test", "testing", "testb", "tst"),
}
SUFFIXES = (
    *(".conll", ".conllu", ".conllx", ".txt", ".tsv", ".csv", ".iob", ".iob2", ".bio", ".gz"),
    *KINDS,
)
CUT_STREAM = 0x75736572  # seed of the permutation that holds out test sentences
TEST_SHARE = 5
READING = Reading()  # nothing is said


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
        if file.suffix == ".ann" and file.with_suffix(".txt").is_file():
            continue  # the text stands for both
        if split in files:
            raise UserError(
                f"{files[split].name} and {file.name} both look like the {split} split",
                file=path,
                hint="keep one of them in the folder",
            )
        if split:
            files[split] = file
    if not files and kind_of(path) is not None:
        return {"train": path}
    if "train" not in files:
        raise UserError(
            "no train file in the folder",
            file=path,
            hint="names say the split: train, dev or valid, test, unlabeled, as in train.txt,"
            f" en-ud-train.conllu or eng.testa; endings are {' '.join(SUFFIXES)}",
        )
    return files


def data_files(path: Path) -> list[Path]:
    """All files that are read for a user's data: of brat, text and annotations."""
    return [part for file in find_files(path).values() for part in parts_of(file)]


def columns_of(path: Path, columns: Sequence[str], reading: Reading = READING) -> tuple[str, ...]:
    """What the files have: as named, but those of CoNLL-U, or of a line of names."""
    files = find_files(path)
    if any(map(is_conllu, files.values())) and not is_conllu(files["train"]):
        return ("word", "label")
    return columns_in(files["train"], columns, reading)


def all_files(path: Path) -> list[Path]:
    """The file itself, or all files below a folder, sorted; UserError for no such path."""
    _check_exists(path)
    return [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())


def file_hashes(path: Path, files: Iterable[Path]) -> dict[str, str]:
    """Sha256 of files, by their path relative to the folder `path` (or that of the file `path`)."""
    folder = path.parent if path.is_file() else path
    hashes = {}
    for file in (part for each in files for part in (parts_of(each) if each.exists() else [each])):
        check_name(file)
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        hashes[file.relative_to(folder).as_posix()] = digest
    return hashes


def _check_exists(path: Path) -> None:
    check_name(path)
    if not path.exists():
        raise UserError("no such file or folder", file=path, hint="check --data")


def load_user_data(
    path: Path,
    columns: Sequence[str],
    notice: Callable[[str], None] = lambda text: None,
    *,
    cut: bool = True,
    reading: Reading = READING,
) -> Dataset:
    """Read a user's data.

    Parameters
    ----------
    path: a file or folder, see `find_files`.
    columns: names of the columns, e.g. ("word", "pos", "label"); "_" skips one. See `columns_of`.
    notice: called with messages on decisions that the user should know.
    cut: if there is no test file, hold out a fixed fifth of train as test split.
    reading: what the user says of the files.

    Returns
    -------
    The dataset. If the labels are chunk tags in a known scheme, its task is "spans" (labels
    rewritten as IOB2) or "segmentation" (BMES labels without types), otherwise "tagging".
    `metadata["source_scheme"]` is the scheme of the files, "none" for plain tags;
    `metadata["spelling"]` says how they write tags, and `metadata["form"]` how they were read, if
    that is not the usual way.

    Raises
    ------
    UserError: with file and line, for a file that cannot be read; for a label that is no chunk tag
        where most are.
    """
    files, columns = find_files(path), columns_of(path, columns, reading)
    _check_columns(columns)
    vocabularies: dict[str, Vocabulary] = {}
    labeled = {split: file for split, file in files.items() if split != "unlabeled"}
    read = {s: read_file(file, columns, vocabularies, reading) for s, file in labeled.items()}
    scheme, spelling, splits = label_scheme(read, labeled, reading.scheme)
    if scheme is None and (doubt := _open_labels(splits["train"])):
        notice(f"{files['train']}: {doubt}")
    task, encoding, splits = recognize(splits, scheme)
    written = partial(with_weak, columns=columns, schemes=(scheme, encoding), spelling=spelling)
    rich = replace(read["train"], corpus=splits["train"])
    splits = {name: without_weak(part) for name, part in splits.items()}
    splits["train"] = written(rich, files["train"], vocabularies={})
    if "test" not in splits and cut:
        splits |= _cut(splits["train"], files["train"])
        held_out = f"{splits['test'].n_sentences} sentences of train, a fixed fifth, are held out"
        notice(f"{path}: no test file; {held_out} for the test")
    how = {files[split]: each.notes for split, each in read.items()}
    external: Callable[[], Shards] | None = None
    if (raw := files.get("unlabeled")) is not None:
        how[raw] = text_notes(raw, columns, reading, task)
        shared = {n: c.vocabulary for n, c in splits["train"].drop("label").columns.items()}
        reads = partial(read_text_file, raw, columns, shared, reading, task)
        external = partial(_text, reads, partial(written, file=raw, vocabularies=shared))
    return Dataset(
        name=dataset_name(path),
        task=task,
        metric="accuracy" if task == "tagging" else "f1",
        encoding=encoding,
        splits=splits,
        external=external,
        metadata=_metadata(how, scheme, spelling),
    )


def _check_columns(columns: Sequence[str]) -> None:
    """UserError without a column of labels, or for weak sources without names of their own."""
    if "label" not in columns:
        raise UserError(
            f"no column is called label in --columns {','.join(columns)}",
            hint="e.g. --columns word,pos,label",
        )
    check_sources(columns)


def _text(read: Callable[[], Read], written: Callable[[Read], Corpus]) -> Shards:
    """The unlabeled text: its columns, and those of weak sources."""
    return CorpusShards(written(read()))


def _open_labels(corpus: Corpus) -> str:
    """What to know of a label ? or _, which may stand for an open label; "" = there is none.

    Punctuation may have itself as its tag.
    """
    words, labels = next(iter(corpus.columns.values())), corpus.column("label")
    for mark in sorted({"?", "_"}.intersection(labels.vocabulary.strings)):
        tagged = labels.codes == labels.vocabulary.lookup(mark)
        n = int((tagged & (words.codes != words.vocabulary.lookup(mark))).sum())
        if 0 < n < len(labels):
            learned = f"{mark!r} is learned as a label, of {n} token{'s' * (n != 1)}."
            return (
                f"{learned} If it says that the label is open, move the sentences to the unlabeled"
                " file: see Partly labeled sentences in docs/weak.md"
            )
    return ""


def _metadata(
    how: Mapping[Path, Sequence[str]], scheme: Scheme | None, spelling: Spelling
) -> dict[str, Any]:
    """What `load_user_data` says of the files. how: see `_form`."""
    facts: dict[str, Any] = {"source_scheme": scheme or "none"}
    if any(map(is_conllu, how)):
        facts["conllu"] = True
    if form := _form(how):
        facts["form"] = form
    if spelling != Spelling():
        facts["spelling"] = msgspec.to_builtins(spelling)
    return facts


def _form(how: Mapping[Path, Sequence[str]]) -> str:
    """How files are read that are not UTF-8 with columns at white space; "" = none."""
    by_form: dict[str, list[str]] = {}
    for file, notes in how.items():
        by_form.setdefault(", ".join(notes), []).append(file.name)
    by_form.pop("", None)
    if len(by_form) == 1 and sum(map(len, by_form.values())) == len(how):
        return next(iter(by_form))
    return "; ".join(f"{', '.join(files)}: {form}" for form, files in by_form.items())


def recognize(
    splits: dict[str, Corpus], scheme: Scheme | None
) -> tuple[str, Scheme | None, dict[str, Corpus]]:
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
    """Name of a user's data in records and tables: that of the folder, or of the file."""
    name = path.resolve().name
    if path.is_file():
        for ending in (".gz", *SUFFIXES):
            name = name.removesuffix(ending)
    return printable(name) or "data"


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
    """The split that the name of a file says; "" for other files.

    It is a word of the name, as in ``en_ewt-ud-train.conllu`` or ``eng.testa``, or begins it.
    """
    name = file.name.lower().removesuffix(".gz")
    words = re.split(r"[^a-z0-9]+", name)
    splits = [split for split, names in SPLITS.items() if not set(words).isdisjoint(names)]
    splits += [split for split, names in SPLITS.items() if name.startswith(names[:2])]
    ending = words[-1]
    if file.is_dir():
        return splits[0] if splits and kind_of(file) is not None else ""
    fits = f".{ending}" in SUFFIXES or any(ending in names for names in SPLITS.values())
    return splits[0] if splits and fits and file.is_file() else ""


def _cut(corpus: Corpus, file: Path) -> dict[str, Corpus]:
    """Move a fifth of train to the test, without its weak labels.

    It is the same fifth for every seed, so that results are comparable.
    """
    if corpus.n_sentences < 2:
        message = "one sentence cannot be split into train and test"
        raise UserError(message, file=file, hint="add a test file")
    order = np.random.default_rng(CUT_STREAM).permutation(corpus.n_sentences)
    n_test = max(1, corpus.n_sentences // TEST_SHARE)
    test = without_weak(corpus.select(np.sort(order[:n_test])))
    return {"train": corpus.select(np.sort(order[n_test:])), "test": test}
