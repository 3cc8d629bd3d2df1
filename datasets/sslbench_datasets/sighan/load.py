"""``msr`` and ``pku``: word segmentation of the second SIGHAN bakeoff, by characters.

Source: T. Emerson, The second international Chinese word segmentation bakeoff, 2005. The gold test
texts are downloaded. The training texts have no stable address; users copy them from the bakeoff's
icwb2-data.zip to the data home.

Files: one sentence per line, words between two spaces, two spaces after the last; lines of the test
texts end with CRLF, and pku's ends with a blank line, which is not a sentence.

Widths: msr writes all digits and Latin letters with full-width forms. pku does so in train only:
its test text has 5,925 ASCII digits and 17 full-width ones, so hardly any of its numbers occurs in
training. The option ``narrow`` makes them ASCII everywhere, also in the external text; the default
is the text that the bakeoff scored.
"""

from __future__ import annotations

import string
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

from msgspec import Meta

from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.chinese.text import (
    ASCII_FORMS,
    SIZE,
    raw_text,
    read_spaced,
    segmentation_dataset,
)
from sslbench_datasets.loading import CheckOptions, check_counts, parse_options, without_check
from sslbench_datasets.sighan.info import BAKEOFFS, URL, Bakeoff

# Without punctuation: both texts of pku write that with full-width forms, as in 47．7.
NARROW = {
    wide: narrow
    for wide, narrow in ASCII_FORMS.items()
    if chr(narrow) in string.ascii_letters + string.digits
}


class Options(CheckOptions, frozen=True, forbid_unknown_fields=True):
    """Options of both datasets."""

    train: Annotated[
        str, Meta(description="the training file; default: icwb2-data/training/ in the data home")
    ] = ""
    narrow: Annotated[
        bool, Meta(description="make full-width digits and Latin letters ASCII in all text")
    ] = False


def load_bakeoff(bakeoff: Bakeoff, home: DataHome, **options: object) -> Dataset:
    """Read the user's training file and the gold test text.

    ``metadata["train_sha256"]`` identifies the training file. UserError for a bad option, a missing
    or malformed file, unexpected counts of the test text and, unless ``check`` is off, a training
    file without the published number of words.
    """
    settings = parse_options(bakeoff.name, options, Options)
    paths = {"train": _train_path(bakeoff, home, settings), "test": home.path(bakeoff.test)}
    texts = {split: read_spaced(path) for split, path in paths.items()}
    SIZE.check(texts, {"test": bakeoff.test_counts}, paths)
    if settings.check:
        # Words only: the count of sentences depends on how blank lines are counted.
        counts = (len(texts["train"].words),)
        hint = without_check(bakeoff.name, "is it another file?")
        check_counts("train", counts, (bakeoff.train_words,), ("words",), paths["train"], hint)
    forms = NARROW if settings.narrow else {}
    return segmentation_dataset(
        bakeoff.name,
        {split: text.translate(forms) for split, text in texts.items()},
        partial(raw_text, bakeoff.raw, home, forms=forms),
        {"train_sha256": home.sha256(paths["train"])},
    )


def _train_path(bakeoff: Bakeoff, home: DataHome, options: Options) -> Path:
    default = home.root / bakeoff.train
    path = Path(options.train).expanduser() if options.train else default
    if path.is_file():
        return path
    raise UserError(
        f"the training file of {bakeoff.name} is missing and cannot be downloaded",
        file=path,
        hint=(
            f"copy {bakeoff.train} of icwb2-data.zip of the SIGHAN 2005 bakeoff ({URL}) to"
            f" {default}, or give --set {bakeoff.name}.train=FILE"
        ),
    )


# ``load.msr(home, **options)`` and ``load.pku``: the loaders that the registrations name.
load = SimpleNamespace(**{bakeoff.name: partial(load_bakeoff, bakeoff) for bakeoff in BAKEOFFS})
