"""Steps that the loaders share: parse options, read one file per split, check counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Generic, Protocol, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from sslbench import RemoteFile
from sslbench.engine.corpus import Corpus, RawBytes, read_bytes
from sslbench.engine.corpus.files import COPY_AGAIN
from sslbench.engine.errors import UserError
from sslbench.engine.types import I64, Bool
from sslbench.experiment.data import DataHome
from sslbench.experiment.planning.values import typed_values
from sslbench.experiment.request.words import in_words
from sslbench_datasets.upstream import size

Counts = tuple[int, ...]
Options = TypeVar("Options", bound=msgspec.Struct)
Text = TypeVar("Text")


class Hash(Protocol):
    """A hash object of hashlib."""

    def update(self, data: bytes, /) -> None: ...


OwnText = Annotated[
    str,
    Meta(
        description="your own unlabeled text in place of the external one: a file with one word"
        " per line and a blank line between sentences"
    ),
]


class TextOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Option of datasets whose unlabeled text may be a file of the user."""

    unlabeled: OwnText = ""


def text_metadata(user_file: str, home: DataHome) -> dict[str, str]:
    """The sha256 of the user's file, if there is one: its path does not say what is in it."""
    return {"sha256_unlabeled": home.sha256(Path(user_file).expanduser())} if user_file else {}


class CheckOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Option of datasets that are read from files of the user."""

    check: Annotated[
        bool, Meta(description="stop if the counts of your files differ from the published ones")
    ] = True


class FolderOptions(CheckOptions, frozen=True, forbid_unknown_fields=True):
    """Options of datasets that are read from a folder of the user."""

    path: Annotated[str, Meta(description="your folder; default: the one of --data")] = ""

    def folder(self, home: DataHome) -> Path:
        """The folder that the option names, by default the root of `home`."""
        return Path(self.path).expanduser() if self.path else home.root

    def text_home(self, home: DataHome) -> DataHome:
        """Where files of external text are: `home`, unless its root is the user's folder."""
        if self.path:
            return home
        return DataHome(None, home.cache, home.offline, home.dataset)


class DocumentOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Option of datasets that know the document of each sentence."""

    documents: Annotated[
        bool,
        Meta(
            description="add the column document (its name or number); a saved tagger then reads"
            " it, too"
        ),
    ] = False


def parse_options(dataset: str, options: Mapping[str, object], kind: type[Options]) -> Options:
    """The options of a dataset as its struct; UserError for an unknown option or a bad value."""
    try:
        return typed_values(kind, options, strict=True)
    except msgspec.ValidationError as error:
        message = f"dataset {dataset}: {in_words(error, options, kind)}"
        raise UserError(message, hint=f"sslbench show {dataset}") from None


def check_draw(dataset: str, seed: int, n_draws: int) -> None:
    """UserError unless `seed` is the number of one of the draws 0 to `n_draws` - 1."""
    if not 0 <= seed < n_draws:
        raise UserError(
            f"dataset {dataset} has {n_draws} draws; there is none for seed {seed}",
            hint=f"give --seed 0 to {n_draws - 1}, or leave out --set {dataset}.draws=true",
        )


def numbered(train: Bool) -> dict[str, I64]:
    """`Dataset.sentence_ids` of train and test; train: bool[S], which sentences of the corpus."""
    return {"train": np.flatnonzero(train), "test": np.flatnonzero(~train)}


@dataclass(frozen=True)
class Measure(Generic[Text]):
    """What is counted in a split.

    Attributes
    ----------
    units: names of the counts.
    count: gives the counts of a text.
    """

    units: tuple[str, ...]
    count: Callable[[Text], Counts]

    def check(
        self,
        splits: Mapping[str, Text],
        expected: Mapping[str, Counts],
        paths: Mapping[str, Path],
        hint: str = COPY_AGAIN,
    ) -> None:
        """Compare the counts of splits; UserError that names the file of one with other counts."""
        for split, counts in expected.items():
            check_counts(split, self.count(splits[split]), counts, self.units, paths[split], hint)


SIZE = Measure[Corpus](
    ("sentences", "tokens"), lambda corpus: (corpus.n_sentences, corpus.n_tokens)
)


def _mentions(corpus: Corpus) -> Counts:
    label = corpus.column("label")
    begins = [text.startswith("B-") for text in label.vocabulary.strings]
    n_mentions = int(np.array(begins, dtype=np.bool_)[label.codes].sum())
    return corpus.n_sentences, corpus.n_tokens, n_mentions


# Labels are well-formed IOB2.
MENTIONS = Measure[Corpus](("sentences", "tokens", "mentions"), _mentions)


def check_counts(
    part: str,
    counts: Counts,
    expected: Counts,
    units: tuple[str, ...],
    path: Path | None,
    hint: str = COPY_AGAIN,
) -> None:
    """UserError if `counts` of a part of a dataset are not the expected ones."""
    if counts != expected:
        message = f"{part} has {size(counts, *units)}; expected {size(expected, *units)}"
        raise UserError(message, file=path, hint=hint)


def read_splits(
    home: DataHome,
    files: Mapping[str, RemoteFile],
    read: Callable[[Path], Text],
    expected: Mapping[str, Counts],
    measure: Measure[Text],
) -> dict[str, Text]:
    """Read the file of each split.

    read: gives the text of one file; splits share vocabularies if it uses the same ones each time.
    UserError for a file that is missing, malformed, or of other counts than `expected`.
    """
    paths = {split: home.path(file) for split, file in files.items()}
    splits = {split: read(path) for split, path in paths.items()}
    measure.check(splits, {split: expected[split] for split in splits}, paths)
    return splits


def digests(files: Mapping[str, RemoteFile], part: str = "") -> dict[str, str]:
    """Metadata that names the files of splits: "sha256_train" -> digest, and so on."""
    return {f"sha256_{part}{split}": file.sha256 for split, file in files.items()}


def files_in(folder: Path) -> list[Path]:
    """The files of a folder by name, without hidden ones; none if there is no such folder.

    UserError if the folder cannot be read.
    """
    if not folder.is_dir():
        return []
    try:
        paths = [path for path in folder.iterdir() if path.name[0] != "."]
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", file=folder) from error
    return sorted(paths, key=lambda path: path.name)


def read_hashed(path: Path, digest: Hash) -> RawBytes:
    """The bytes of a file, which are added to `digest`; UserError as `read_bytes`."""
    data = read_bytes(path)
    digest.update(data)
    return RawBytes(str(path), data)


def without_check(dataset: str, question: str = "is a file missing?") -> str:
    """Hint for files of the user whose counts are not the published ones."""
    return f"{question} --set {dataset}.check=false turns this check off"
