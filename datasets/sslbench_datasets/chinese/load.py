"""Chinese corpora as sequences of characters: zh_gsd, zh_zx, sinica and sxu.

The column "word" holds characters. The column "label" holds the position of each in its word, B, M,
E or S (N. Xue: Chinese word segmentation as character tagging, 2003), joined with the word's tag
where the corpus has tags ("B-NN"). Characters are not normalized: sxu and zh_zx have full-width
digits and punctuation, zh_gsd has ASCII ones, sinica both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.chinese.info import (
    COUNTS,
    MSR,
    PKU,
    RAW_TEXT,
    SINICA,
    SINICA_MAP,
    SXU,
    UDC,
    ZX,
)
from sslbench_datasets.chinese.text import (
    ASCII_FORMS,
    SIZE,
    raw_text,
    read_sinica,
    read_spaced,
    read_tag_map,
    read_ud,
    read_word_tag,
    segmentation_dataset,
)
from sslbench_datasets.loading import parse_options, read_splits

_SINICA_MEMBER = "sinica_treebank/parsed"
# Clauses per block of the split. Adjacent clauses come from one text, and the genre changes within
# the file (the last clauses are twice as long as the first): neither single clauses nor the end of
# the file would be a fair test set.
_SINICA_BLOCK = 100

# The forms of zh_gsd.
GSD_FORMS = {**ASCII_FORMS, ord("。"): ord(".")}


class JointOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of zh_gsd and zh_zx."""

    text: Annotated[
        Literal["apart", "joined"],
        Meta(
            description="apart: unlabeled text is the rest of train, or the external text if all of"
            " train is labeled; joined: the rest of train, then the external text"
        ),
    ] = "apart"


def load_zh_gsd(home: DataHome, **options: object) -> Dataset:
    """UD Chinese GSD; UserError for a bad option, a missing file or unexpected counts."""
    joined = _is_joined("zh_gsd", options)
    texts = read_splits(home, UDC, read_ud, COUNTS["zh_gsd"], SIZE)
    external = partial(raw_text, RAW_TEXT, home, forms=GSD_FORMS)
    return replace(segmentation_dataset("zh_gsd", texts, external), joined=joined)


def load_zh_zx(home: DataHome, **options: object) -> Dataset:
    """ZhuXian; UserError for a bad option, a missing file or unexpected counts."""
    joined = _is_joined("zh_zx", options)
    texts = read_splits(home, ZX, read_word_tag, COUNTS["zh_zx"], SIZE)
    external = partial(raw_text, RAW_TEXT, home)
    return replace(segmentation_dataset("zh_zx", texts, external), joined=joined)


def _is_joined(dataset: str, options: Mapping[str, object]) -> bool:
    return parse_options(dataset, options, JointOptions).text == "joined"


def load_sxu(home: DataHome) -> Dataset:
    """SXU of SIGHAN 2008; UserError for a missing file or unexpected counts."""
    texts = read_splits(home, SXU, read_spaced, COUNTS["sxu"], SIZE)
    return segmentation_dataset("sxu", texts, partial(raw_text, (MSR, PKU), home))


def load_sinica(home: DataHome) -> Dataset:
    """Sinica sample; UserError for a missing file or unexpected counts.

    Of ten blocks of clauses, eight are train, the ninth is dev and the tenth test.
    """
    path = home.path(SINICA)
    clauses = read_sinica((path, _SINICA_MEMBER), read_tag_map(home.path(SINICA_MAP)))
    numbers: dict[str, list[int]] = {split: [] for split in COUNTS["sinica"]}
    for number in range(len(clauses.lengths)):
        block = number // _SINICA_BLOCK % 10
        numbers["dev" if block == 8 else "test" if block == 9 else "train"].append(number)
    texts = {split: clauses.select(sentences) for split, sentences in numbers.items()}
    SIZE.check(texts, COUNTS["sinica"], dict.fromkeys(texts, path))
    return segmentation_dataset("sinica", texts)
