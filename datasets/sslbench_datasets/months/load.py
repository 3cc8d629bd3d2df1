"""``conll03_months``: CoNLL-2003 with all of Reuters-21578, or one of its months, as text.

Suzuki & Isozaki (2008, table 6) compare months of Reuters RCV1. The stories of Reuters-21578 are
dated, too: 26 February to 20 October 1987, with none between July and September.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from sslbench.engine.corpus import Corpus, StoredShards, read_bytes
from sslbench.engine.files.atomic import write_atomically
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.loading import parse_options
from sslbench_datasets.months.info import FILES
from sslbench_datasets.ner.info import CONLL2003
from sslbench_datasets.ner.load import load_conll03
from sslbench_datasets.reuters.load import VERSION, bodies, sentences, tagged_text
from sslbench_datasets.treebank import tokenizer

Month = Literal["all", "1987-02", "1987-03", "1987-04", "1987-06", "1987-10"]
_NAMES = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_DATE = re.compile(rf"<DATE>\s*\d{{1,2}}-({'|'.join(_NAMES)})-(\d{{4}})")
_STORY = "<REUTERS "


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of conll03_months."""

    month: Annotated[Month, Meta(description="the stories that are the external text")] = "all"


def load(home: DataHome, **options: object) -> Dataset:
    """Read English; `options` are those of `Options`.

    UserError for a bad option, a missing or malformed file, or unexpected counts.
    """
    month = parse_options("conll03_months", options, Options).month
    dataset = load_conll03(home)
    external = partial(month_text, home, dataset.splits["train"], month)
    return replace(dataset, name="conll03_months", external=external)


def month_text(home: DataHome, train: Corpus, month: Month) -> StoredShards:
    """The stories of a month, tagged as those of conll03 are; see `tagged_text`.

    train: the train split of conll03.
    """
    key = {"files": [file.sha256 for file in FILES], "tokenizer": tokenizer.VERSION}
    words = home.derived("newswire-months", {**key, "newswire": VERSION, "month": month})
    if not words.exists():
        write_atomically(words, month_words(map(home.path, FILES), month).encode())
    return tagged_text(home, train, CONLL2003["train"].sha256, str(words))


def month_words(paths: Iterable[Path], month: Month) -> str:
    """The sentences of a month's stories: a word per line, a blank line after each sentence."""
    texts = []
    for path in paths:
        # The distribution is ASCII except for a few stray bytes; Latin-1 decodes any byte.
        for story in read_bytes(path).decode("latin-1").split(_STORY)[1:]:
            if month in ("all", month_of(story)):
                for body in bodies(story):
                    texts += ["\n".join(sentence) + "\n" for sentence in sentences(body)]
    return "\n".join(texts)


def month_of(story: str) -> str:
    """Year and month of a story in SGML, as in `Month`; "" if it has no date."""
    date = _DATE.search(story)
    return f"{date[2]}-{_NAMES.index(date[1]) + 1:02}" if date else ""
