"""``msr`` and ``pku``: word segmentation of the second SIGHAN bakeoff, by characters.

Source: T. Emerson, The second international Chinese word segmentation bakeoff, 2005. The gold test
texts are fetched. The training texts are not, for want of a pinned address and a verified sha256:
whoever has the bakeoff's icwb2-data.zip puts them below the data home.

Files: one sentence a line, words between two spaces, two spaces after the last; lines of the test
texts end with CRLF, and pku's with a blank line that is no sentence.

Widths. msr writes digits and Latin letters with full-width forms throughout. pku does so in train
only: its test text has 5,925 ASCII digits and 17 full-width ones, so that hardly a number of it was
ever seen in training. The option ``narrow`` makes them ASCII everywhere (the external text too);
by default they stay, as the bakeoff scored them.
"""

from __future__ import annotations

import string
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import msgspec
from msgspec import Meta

from sslbench.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.checks import chosen
from sslbench_datasets.chinese.load import (
    ASCII_FORMS,
    Words,
    as_characters,
    check_words,
    raw_text,
    read_spaced,
)
from sslbench_datasets.sighan.info import BAKEOFF, BAKEOFFS, Bakeoff

# Not punctuation: both texts of pku write that with full-width forms, as in 47．7.
NARROW = {
    wide: narrow
    for wide, narrow in ASCII_FORMS.items()
    if chr(narrow) in string.ascii_letters + string.digits
}


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the two data sets."""

    train: Annotated[
        str, Meta(description="the training file; empty: icwb2-data/training/ in the data home")
    ] = ""
    check: Annotated[
        bool, Meta(description="refuse a training file with another number of words than published")
    ] = True
    narrow: Annotated[
        bool, Meta(description="full-width digits and Latin letters become ASCII in all text")
    ] = False


def load_bakeoff(bakeoff: Bakeoff, home: DataHome, **options: object) -> Dataset:
    """Read the user's training file and the gold test text.

    ``metadata["train_sha256"]`` says which training file it was. UserError for an option that does not
    fit, a missing or malformed file, and, unless ``check`` is off, for a training file whose number
    of words is not the published one.
    """
    settings = chosen(bakeoff.name, options, Options)
    test = home.path(bakeoff.files[0])
    train = _train(bakeoff, home, settings.train)
    paths = {"train": train, "test": test}
    splits = {split: read_spaced(path) for split, path in paths.items()}
    check_words(splits, {"test": bakeoff.test_counts}, paths)
    if settings.check:
        _check_train(bakeoff, splits["train"], train)
    forms = NARROW if settings.narrow else {}
    return as_characters(
        bakeoff.name,
        {split: words.rewritten(forms) for split, words in splits.items()},
        partial(raw_text, bakeoff.files[1:], home, forms=forms),
        {"train_sha256": home.sha256(train)},
    )


def _train(bakeoff: Bakeoff, home: DataHome, given: str) -> Path:
    """The training file; UserError that says where to get it and where to put it."""
    path = Path(given).expanduser() if given else home.root / bakeoff.train
    if path.is_file():
        return path
    raise UserError(
        f"the training file of {bakeoff.name} is not there, and is not fetched",
        file=path,
        hint=(
            f"take {bakeoff.train} from icwb2-data.zip of the SIGHAN 2005 bakeoff ({BAKEOFF}) and"
            f" copy it to {home.root / bakeoff.train}, or give --set {bakeoff.name}.train=FILE"
        ),
    )


def _check_train(bakeoff: Bakeoff, words: Words, path: Path) -> None:
    # Sentences are not compared: whether a blank line is one is a matter of how they are counted.
    if len(words.words) != bakeoff.train_words:
        raise UserError(
            f"{len(words.words):,} words, should have {bakeoff.train_words:,}",
            file=path,
            hint=f"is it the bakeoff's? --set {bakeoff.name}.check=false takes it as it is",
        )


# ``load.msr(home, **options)`` and ``load.pku``: one loader for each registration.
load = SimpleNamespace(**{bakeoff.name: partial(load_bakeoff, bakeoff) for bakeoff in BAKEOFFS})
