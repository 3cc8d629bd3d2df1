"""Names in Wikipedia and in tweets, with labels from dictionaries or without.

Sources: D. Balasuriya et al., Named entity recognition in Wikipedia, 2009; B. Strauss et al.,
Results of the WNUT16 named entity recognition shared task, 2016; C. Liang et al., BOND, 2020.
The labels of BOND's train come from dictionaries: only its words are read, or, for the datasets
``..._distant``, its labels as those of a weak source. The train of its folder BC5CDR-chem has the
gold labels of that corpus, so no dataset is made of it.

BOND's tweets are not those of the shared task (2,394, 1,000 and 3,850 tweets of 46,469, 16,261 and
61,908 tokens): each lacks its last token, and one of a single token is the beginning of the next.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec

from sslbench.engine.corpus import (
    Corpus,
    CorpusShards,
    Shards,
    Vocabulary,
    convert_labels,
    read_bytes,
    tag_fits,
)
from sslbench.engine.corpus.files import COPY_AGAIN, Source, source_name
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.data.weak import PREFIX, unread
from sslbench_datasets.bond.info import (
    SOURCE,
    TWITTER,
    TWITTER_DISTANT,
    WIKIGOLD,
    WIKIGOLD_DISTANT,
    BondCorpus,
)
from sslbench_datasets.loading import MENTIONS, SIZE, check_counts, digests, read_splits

Decoded = TypeVar("Decoded")


class Entry(msgspec.Struct):
    """A sentence of a file: its words, and the number of the tag of each."""

    str_words: list[str]
    tags: list[int]


def load_wikigold(home: DataHome) -> Dataset:
    """Read Wikigold; UserError for a missing or malformed file or unexpected counts."""
    return _load(WIKIGOLD, home)


def load_twitter(home: DataHome) -> Dataset:
    """Read the tweets; UserError for a missing or malformed file or unexpected counts."""
    return _load(TWITTER, home)


def load_wikigold_distant(home: DataHome) -> Dataset:
    """Read Wikigold with weak labels; UserError as above."""
    return _load(WIKIGOLD_DISTANT, home)


def load_twitter_distant(home: DataHome) -> Dataset:
    """Read the tweets with weak labels; UserError as above."""
    return _load(TWITTER_DISTANT, home)


def _load(corpus: BondCorpus, home: DataHome) -> Dataset:
    tags = read_tags(home.path(corpus.tags))
    words, labels, weak = Vocabulary(), Vocabulary(), Vocabulary()

    def read(source: Source) -> Corpus:
        return _labeled(source, tags, words, labels)

    splits = read_splits(home, corpus.gold, read, corpus.counts, MENTIONS)
    external: Callable[[], Shards] = partial(_text, corpus, home, words, len(tags))
    if corpus.distant is not None:
        train = splits["train"]
        splits["train"] = train.with_column(PREFIX + SOURCE, unread(train.n_tokens, weak))
        external = partial(_weak_text, corpus, home, (words, weak), tags)
    return Dataset(
        name=corpus.name,
        task="spans",
        metric="f1",
        encoding="IOB2",
        splits=splits,
        external=external,
        joined=True,
        metadata=digests(corpus.gold),
    )


def _labeled(source: Source, tags: list[str], words: Vocabulary, labels: Vocabulary) -> Corpus:
    """The sentences of a file with labels in IOB2, coded by these vocabularies."""
    entries = read_entries(source, len(tags))
    columns = {
        "word": [entry.str_words for entry in entries],
        "label": [[tags[tag] for tag in entry.tags] for entry in entries],
    }
    coded = Corpus.from_sentences(columns, {"word": words, "label": Vocabulary()})
    return convert_labels(coded, "IOB2", "IOB2", vocabulary=labels)


def _text(corpus: BondCorpus, home: DataHome, words: Vocabulary, n_tags: int) -> Shards:
    """The words of train; UserError for a missing or malformed file or unexpected counts."""
    path = home.path(corpus.text)
    sentences = [entry.str_words for entry in read_entries(path, n_tags)]
    text = Corpus.from_sentences({"word": sentences}, {"word": words})
    check_counts("text", SIZE.count(text), corpus.text_counts, SIZE.units, path)
    return CorpusShards(text)


def _weak_text(
    corpus: BondCorpus, home: DataHome, vocabularies: tuple[Vocabulary, Vocabulary], tags: list[str]
) -> Shards:
    """As `_text`, with labels from dictionaries. vocabularies: of words and of weak labels."""
    path = home.path(corpus.text)
    text = _labeled(path, tags, *vocabularies)
    check_counts("text", MENTIONS.count(text), corpus.distant or (), MENTIONS.units, path)
    return CorpusShards(text.with_column(PREFIX + SOURCE, text.column("label")).drop("label"))


def read_tags(source: Source) -> list[str]:
    """The IOB2 tags by their number; UserError for other JSON, other numbers or other tags."""
    numbers = _decode(source, dict[str, int])
    tags = sorted(numbers, key=numbers.__getitem__)
    if not tags or sorted(numbers.values()) != list(range(len(tags))):
        raise _error(source, "the tags are not numbered 0, 1, ...")
    for tag in tags:
        if not tag_fits(tag, "IOB2"):
            raise _error(source, f"tag {tag!r} does not fit IOB2")
    return tags


def read_entries(source: Source, n_tags: int) -> list[Entry]:
    """The sentences of a JSON array of objects with ``str_words`` and ``tags``.

    A sentence without words is left out. UserError, with the number of the sentence from 1, for
    other JSON, a tag that is not 0 to `n_tags` - 1, another number of tags than words, and a word
    that is empty or has white space; UserError for a file without sentences.
    """
    entries = _decode(source, list[Entry])
    for number, entry in enumerate(entries, 1):
        if len(entry.tags) != len(entry.str_words):
            message = f"{len(entry.str_words)} words and {len(entry.tags)} tags"
            raise _error(source, f"sentence {number} has {message}")
        wrong = [tag for tag in entry.tags if not 0 <= tag < n_tags]
        if wrong:
            raise _error(source, f"sentence {number} has the tag {wrong[0]}, not 0 to {n_tags - 1}")
        for word in entry.str_words:
            if word.split() != [word]:
                message = f"sentence {number} has the word {word[:40]!r}: empty or with white space"
                raise _error(source, message)
    full = [entry for entry in entries if entry.str_words]
    if not full:
        raise _error(source, "no sentence in the file")
    return full


def _decode(source: Source, kind: type[Decoded]) -> Decoded:
    """The JSON of a file as a type; UserError with the place where it is another."""
    data = read_bytes(source)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _error(source, f"not the JSON of BOND: {error}") from None


def _error(source: Source, message: str) -> UserError:
    return UserError(message, file=source_name(source), hint=COPY_AGAIN)
