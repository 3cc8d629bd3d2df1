"""Raw text for English newswire: stories of Reuters-21578, or the user's; tokenized and tagged.

Source: D. D. Lewis, Reuters-21578 text categorization collection, distribution 1.0; seven of its 22
files. The tokenized and the tagged text are cached. The key of the tagged text names the training
data and the recipe of the tagger, so the tagger is trained once.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from sslbench import registry
from sslbench.engine.corpus import (
    Column,
    Corpus,
    CorpusShards,
    Shards,
    StoredShards,
    Vocabulary,
    read_bytes,
    read_conll,
    write_shards,
)
from sslbench.engine.errors import UserError
from sslbench.engine.files.atomic import write_atomically
from sslbench.engine.types import I32
from sslbench.experiment.data import DataHome
from sslbench_datasets.reuters.info import REUTERS
from sslbench_datasets.treebank import tokenizer

# Part of the cache key: raise it with any change to which text is used.
VERSION = 1
TAGGER_FEATURIZER = "pos47"
_SHARD_TOKENS = 2**18
_MIN_TOKENS, _MAX_TOKENS = 4, 120  # of a sentence
_MAX_NUMBERS = 0.4  # share of its tokens
_MAX_CHARACTERS = 10_000  # far above any sentence of _MAX_TOKENS words

_BODY = "<BODY>", "</BODY>"
# No character has that many digits, and int() refuses thousands of them.
_NO_CHARACTER = re.compile(r"&#\d{20,};?")
_CONTROL = re.compile(r"&#(\d+);")
_SIGNATURE = re.compile(r"(?<!\s)\s*\breuters?\b[\s.]*\Z", re.IGNORECASE)
_INDENTED = re.compile(r"\n(?=[ \t]{2,}\S)|\n[ \t]*(?=\n)")
_TICKER = re.compile(r"(?:,|(?<!\s))\s*(?:<[A-Z0-9.]+>|\([A-Z]+\.[A-Z]+\))")
_BRACKETED = re.compile(r"<([^<>]{1,80})>")
_END_OF_PROSE = re.compile(r"[.?!][\"')\]]*\Z")


def bodies(sgml: str) -> Iterator[str]:
    """Yield the text of each story, entities resolved, control characters and "Reuter" removed."""
    begin, end = _BODY
    stop = 0
    # A regular expression would take quadratic time on thousands of stories without an end.
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

    An indented line starts a paragraph. Left out are paragraphs that do not end like a sentence
    (headings, rows of tables) and sentences that are too short, too long, mostly numbers or all in
    capitals.
    """
    for paragraph in _INDENTED.split(body):
        # Join words that were broken at a hyphen.
        text = re.sub(r"(?<=[a-z])-\n\s*(?=[a-z])", "-", paragraph).strip()
        if not _END_OF_PROSE.search(text):
            continue
        text = _BRACKETED.sub(r"\1", _TICKER.sub("", text))
        for sentence in tokenizer.split_sentences(text):
            if len(sentence) > _MAX_CHARACTERS:
                continue
            tokens = tokenizer.tokenize(sentence)
            if _is_prose(tokens):
                yield tokens


def _is_prose(tokens: list[str]) -> bool:
    if not _MIN_TOKENS <= len(tokens) <= _MAX_TOKENS:
        return False
    numbers = sum(token[0].isdigit() for token in tokens)
    return numbers <= _MAX_NUMBERS * len(tokens) and any(map(str.islower, tokens))


def read_stories(paths: Iterable[Path]) -> Corpus:
    """All sentences of .sgm files, column word. UserError for a file without stories."""
    vocabulary = Vocabulary()
    codes: list[I32] = []
    for path in paths:
        n_before = len(codes)
        # The distribution is ASCII except for a few stray bytes; Latin-1 decodes any byte.
        for body in bodies(read_bytes(path).decode("latin-1")):
            codes.extend(vocabulary.encode(tokens) for tokens in sentences(body))
        if len(codes) == n_before:
            raise UserError("no story in the file: not a Reuters-21578 .sgm file?", file=path)
    offsets = np.concatenate([[0], np.cumsum([len(sentence) for sentence in codes])])
    flat = np.concatenate(codes) if codes else np.empty(0, dtype=np.int32)
    return Corpus({"word": Column(vocabulary, flat)}, offsets)


class TaggedShards:
    """Shards with the column "pos", which a tagger predicts for each shard during iteration."""

    def __init__(self, shards: Shards, tag: Callable[[Corpus], Column]) -> None:
        self._shards = shards
        self._tag = tag

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
            yield shard.with_column("pos", self._tag(shard))


def tokenized_text(
    home: DataHome, vocabularies: dict[str, Vocabulary], user_file: str = ""
) -> StoredShards:
    """The tokenized stories, column word; cached.

    vocabularies: vocabularies by column; they are extended.
    user_file: the user's file of words in place of the stories.
    UserError for a file that is missing and cannot be downloaded, or is malformed.
    """
    folder = home.derived("newswire-words", _text_key(home, user_file))
    if not folder.exists():
        paths = [home.path(file) for file in REUTERS] if not user_file else []
        corpus = (
            read_conll(Path(user_file).expanduser(), ("word",))
            if user_file
            else read_stories(paths)
        )
        write_shards(folder, CorpusShards(corpus, _SHARD_TOKENS))
    return StoredShards(folder, vocabularies)


def tagged_text(home: DataHome, train: Corpus, sha256: str, user_file: str = "") -> StoredShards:
    """The stories with columns word and pos, which share the vocabularies of `train`; cached.

    The tags are predictions of a first-order CRF with the templates of TAGGER_FEATURIZER, trained
    on columns word and pos of `train`.

    sha256: digest of the file of `train`.
    user_file: see `tokenized_text`, whose errors are raised.
    """
    vocabularies = {name: train.column(name).vocabulary for name in ("word", "pos")}
    folder = home.derived("newswire-tagged", _tagged_key(sha256, _text_key(home, user_file)))
    if not folder.exists():
        from sslbench_datasets.reuters.column_tagger import train_tagger

        words = tokenized_text(home, vocabularies, user_file)
        templates = registry().featurizer(TAGGER_FEATURIZER).load()().templates
        tagger = train_tagger(train.drop("label"), "pos", templates)
        write_shards(folder, TaggedShards(words, tagger.tag))
        # Identifies the tagger of this folder; nothing reads it.
        write_atomically(folder.with_suffix(".tagger.txt"), f"{tagger.digest}\n".encode())
    return StoredShards(folder, vocabularies)


def _text_key(home: DataHome, user_file: str) -> dict[str, object]:
    if user_file:
        return {"own": home.sha256(Path(user_file).expanduser()), "shard_tokens": _SHARD_TOKENS}
    return {
        "files": [file.sha256 for file in REUTERS],
        "tokenizer": tokenizer.VERSION,
        "newswire": VERSION,
        "shard_tokens": _SHARD_TOKENS,
    }


def _tagged_key(train_sha256: str, text_key: dict[str, object]) -> dict[str, object]:
    """All that the tagged text depends on; the tagger's recipe, since its digest needs training."""
    from sslbench_datasets.reuters.column_tagger import RECIPE

    templates = registry().featurizer(TAGGER_FEATURIZER).load()().templates
    return {
        **text_key,
        "train": train_sha256,
        "templates": [str(template) for template in templates],
        "tagger": RECIPE,
    }
