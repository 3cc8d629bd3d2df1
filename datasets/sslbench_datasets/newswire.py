"""Raw text for ``conll00``: the stories of Reuters-21578, split, tokenized and tagged.

Source: D. D. Lewis, Reuters-21578 text categorization collection, distribution 1.0; seven of its 22
files. Both steps are cached: the tokenized text by its files, the tagged text also by what its
tagger is made of, so that the tagger is trained once.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sslbench import __version__, registry
from sslbench.atomic import write_atomically
from sslbench.corpus import Column, Corpus, CorpusShards, Shards, StoredShards, Vocabulary
from sslbench.corpus import write_shards as store
from sslbench.errors import UserError
from sslbench.experiment.data import DataHome
from sslbench_datasets.files import REUTERS
from sslbench_datasets.treebank import text as ptb

# To be raised with any change to what is kept of the stories.
VERSION = 1
TAGGER_FEATURIZER = "pos47"
_SHARD_TOKENS = 2**18
_LONGEST_SENTENCE = 120
_SHORTEST_SENTENCE = 4
_MOST_NUMBERS = 0.4
_LONGEST_TEXT = 10_000  # characters; no sentence of tokens that are words comes near it

_BODY = "<BODY>", "</BODY>"
# More digits than a character has; int() refuses thousands of them.
_NO_CHARACTER = re.compile(r"&#\d{20,};?")
_CONTROL = re.compile(r"&#(\d+);")
_SIGNATURE = re.compile(r"(?<!\s)\s*\breuters?\b[\s.]*\Z", re.IGNORECASE)
_INDENTED = re.compile(r"\n(?=[ \t]{2,}\S)|\n[ \t]*(?=\n)")
_TICKER = re.compile(r"(?:,|(?<!\s))\s*(?:<[A-Z0-9.]+>|\([A-Z]+\.[A-Z]+\))")
_BRACKETED = re.compile(r"<([^<>]{1,80})>")
_END_OF_PROSE = re.compile(r"[.?!][\"')\]]*\Z")


def bodies(sgml: str) -> Iterator[str]:
    """Yield the text of each story: entities resolved, controls and the "Reuter" line removed."""
    begin, end = _BODY
    stop = 0
    # A regular expression would look for the end of each of thousands of truncated stories.
    while (start := sgml.find(begin, stop)) >= 0:
        start += len(begin)
        stop = sgml.find(end, start)
        if stop < 0:
            return
        text = _NO_CHARACTER.sub("\ufffd", sgml[start:stop])
        text = _CONTROL.sub(_without_control, text)
        yield _SIGNATURE.sub("", html.unescape(text))


def _without_control(entity: re.Match[str]) -> str:
    """Blank a numeric entity of a control character; leave the others to ``html.unescape``."""
    code = int(entity[1])
    return " " if code < 32 or 127 <= code < 160 else entity[0]


def sentences(body: str) -> Iterator[list[str]]:
    """Yield the tokenized sentences of a story's running text.

    An indented line starts a paragraph. A paragraph that does not end like a sentence is a heading
    or a row of a table (earnings reports are full of them) and is left out, like what is mostly
    numbers, all in capitals, or out of all length.
    """
    for paragraph in _INDENTED.split(body):
        # A word broken at a hyphen goes on in the next line.
        text = re.sub(r"(?<=[a-z])-\n\s*(?=[a-z])", "-", paragraph).strip()
        if not _END_OF_PROSE.search(text):
            continue
        text = _BRACKETED.sub(r"\1", _TICKER.sub("", text))
        for sentence in ptb.split_sentences(text):
            if len(sentence) > _LONGEST_TEXT:
                continue
            tokens = ptb.tokenize(sentence)
            if _is_prose(tokens):
                yield tokens


def _is_prose(tokens: list[str]) -> bool:
    if not _SHORTEST_SENTENCE <= len(tokens) <= _LONGEST_SENTENCE:
        return False
    numbers = sum(token[0].isdigit() for token in tokens)
    return numbers <= _MOST_NUMBERS * len(tokens) and any(map(str.islower, tokens))


def read_stories(paths: Iterable[Path]) -> Corpus:
    """Return all sentences of .sgm files, column word. UserError for a file without stories."""
    vocabulary = Vocabulary()
    codes: list[Any] = []
    for path in paths:
        # The distribution is ASCII but for a few stray bytes, which Latin-1 always decodes.
        n_before = len(codes)
        try:
            sgml = path.read_text(encoding="latin-1")
        except OSError as problem:
            raise UserError(f"cannot be read: {problem.strerror}", file=path) from problem
        for body in bodies(sgml):
            codes.extend(vocabulary.encode(tokens) for tokens in sentences(body))
        if len(codes) == n_before:
            raise UserError("no story found: not a Reuters-21578 .sgm file?", file=path)
    offsets = np.concatenate([[0], np.cumsum([len(sentence) for sentence in codes])])
    flat = np.concatenate(codes) if codes else np.empty(0, dtype=np.int32)
    return Corpus({"word": Column(vocabulary, flat)}, offsets)


def raw_shards(home: DataHome, vocabularies: dict[str, Vocabulary]) -> StoredShards:
    """Return the tokenized stories (column word), from the cache when they are there.

    ``vocabularies`` are used and extended. UserError when a file is missing and cannot be fetched.
    """
    folder = home.derived("newswire-words", _text_key())
    if not folder.exists():
        corpus = read_stories([home.path(file) for file in REUTERS])
        store(folder, CorpusShards(corpus, _SHARD_TOKENS))
    return StoredShards(folder, vocabularies)


class TaggedShards:
    """Shards with a "pos" column that a tagger adds to each as it is iterated over."""

    def __init__(self, shards: Shards, tagger: Callable[[Corpus], Column]) -> None:
        self._shards = shards
        self._tagger = tagger

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""
        return self._shards.n_sentences

    @cached_property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return self._shards.n_tokens

    def __iter__(self) -> Iterator[Corpus]:
        for shard in self._shards:
            yield shard.with_column("pos", self._tagger(shard))


def tag_shards(shards: Shards, tagger: Callable[[Corpus], Column]) -> TaggedShards:
    """Return ``shards`` with the column "pos" that ``tagger`` gives each shard."""
    return TaggedShards(shards, tagger)


def external(home: DataHome, train: Corpus, sha256: str) -> Shards:
    """Return the newswire with columns word and pos, sharing the vocabularies of ``train``.

    The tagger is the engine's own, trained on ``train``'s words and "pos" column with the templates
    of the featurizer TAGGER_FEATURIZER; ``sha256`` is of the file that ``train`` was read from.
    UserError when a file is missing and cannot be fetched.
    """
    vocabularies = {name: train.column(name).vocabulary for name in ("word", "pos")}
    folder = home.derived("newswire-tagged", _tagged_key(sha256))
    if not folder.exists():
        from sslbench.experiment.column_tagger import train_tagger

        words = raw_shards(home, vocabularies)
        templates = registry().featurizer(TAGGER_FEATURIZER).load()().templates
        tagger = train_tagger(train.drop("label"), "pos", templates)
        store(folder, tag_shards(words, tagger.tag))
        # For whoever wonders later what made this folder; nothing reads it.
        write_atomically(folder.with_suffix(".tagger.txt"), f"{tagger.digest}\n".encode())
    return StoredShards(folder, vocabularies)


def _text_key() -> dict[str, object]:
    return {
        "files": [file.sha256 for file in REUTERS],
        "tokenizer": ptb.VERSION,
        "newswire": VERSION,
        "shard_tokens": _SHARD_TOKENS,
    }


def _tagged_key(train_sha256: str) -> dict[str, object]:
    """Return what the tagged text depends on.

    The recipe of the tagger instead of its digest: that would take training it to find the cache.
    """
    from sslbench.experiment import column_tagger as tagger

    templates = registry().featurizer(TAGGER_FEATURIZER).load()().templates
    return {
        **_text_key(),
        "train": train_sha256,
        "templates": [str(template) for template in templates],
        "tagger": str(getattr(tagger, "RECIPE", __version__)),
    }
