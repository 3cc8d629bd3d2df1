"""Bracketed trees of the Penn Treebank, read for their words and part-of-speech tags.

Source: A. Bies et al., Bracketing guidelines for Treebank II style Penn Treebank project, 1995.
``( (S (NP (DT the) (NN board)) ...) )``: the outermost bracket may have no label, white space is
free, a file holds any number of trees. A leaf is ``(TAG word)``, brackets in the text are -LRB- and
-RRB-. Each outermost bracket is one sentence. Words stay as they are written (``1\\/2``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np

from sslbench.corpus import Column, Corpus, Vocabulary, read_bytes
from sslbench.corpus.files import Source, source_name
from sslbench.errors import UserError

EMPTY = "-NONE-"  # tag of traces and other leaves that are no words
# A leaf; else an opening bracket with its label, a closing one, or text outside of leaves. Only
# ASCII white space separates, and no part ever gives back what it took.
_PIECE = re.compile(
    r"\(\s*+(?P<tag>[^\s()]++)\s++(?P<word>[^\s()]++)\s*+\)"
    r"|\(\s*+(?P<label>[^\s()]*+)|(?P<close>\))|(?P<stray>[^\s()]++)",
    re.ASCII,
)
Leaf = tuple[str, str]  # word, tag


def read_trees(
    source: Source,
    vocabularies: dict[str, Vocabulary] | None = None,
    skip: Collection[str] = (),
) -> Corpus:
    """Read the leaves of all trees of a file: columns word and label.

    vocabularies: per column name, used and extended; missing ones are put in, so that one dict
        passed for all files makes them share. Default: new ones.
    skip: trees whose outermost bracket has one of these labels are left out.

    Leaves tagged EMPTY are left out, and trees of nothing else. Of an ambiguous tag (``JJ|NN``: the
    annotators did not decide) the first is taken. UserError with file and line for: a byte that is
    not UTF-8, NUL, a bracket that is not closed (the line where its tree starts) or not opened, a
    word without tag or a tag without word, text between trees; without line for no tree at all.
    """
    shared = {} if vocabularies is None else vocabularies
    words = shared.setdefault("word", Vocabulary())
    labels = shared.setdefault("label", Vocabulary())
    trees = list(_Trees(source_name(source), _text(source)).leaves())
    if not trees:
        raise UserError("no tree in the file", file=source_name(source), hint="copy it again")
    sentences = [kept for root, tree in trees if root not in skip and (kept := _words(tree))]
    leaves = [leaf for sentence in sentences for leaf in sentence]
    columns = {
        "word": Column(words, words.encode(word for word, _ in leaves)),
        "label": Column(labels, labels.encode(tag for _, tag in leaves)),
    }
    return Corpus(columns, np.cumsum([0, *map(len, sentences)]))


def _words(tree: list[Leaf]) -> list[Leaf]:
    return [(word, tag.split("|", 1)[0] or tag) for word, tag in tree if tag != EMPTY]


def _text(source: Source) -> str:
    """The file; UserError with the line of a byte that is not UTF-8 or is NUL."""
    data = read_bytes(source).removeprefix(b"\xef\xbb\xbf")
    try:
        text = data.decode()
        at = data.find(b"\0")
    except UnicodeDecodeError as error:
        text, at = "", error.start
    if at < 0:
        return text
    raise UserError(
        f"byte 0x{data[at]:02x} is not text in UTF-8",
        file=source_name(source),
        line=data.count(b"\n", 0, at) + 1,
        hint="the treebank's files are plain ASCII: copy this one again",
    )


@dataclass(frozen=True)
class _Trees:
    """The text of one file, and whom to blame."""

    file: str
    text: str = field(repr=False)

    def leaves(self) -> Iterator[tuple[str, list[Leaf]]]:
        """Outermost label and leaves of each tree. Depth is a number, so it has no limit."""
        depth, start, root, tree = 0, 0, "", list[Leaf]()
        opened: re.Match[str] | None = None  # the piece before, if that was an opening bracket
        for piece in _PIECE.finditer(self.text):
            kind, before, opened = piece.lastgroup, opened, None
            if kind == "word":
                tree.append((piece["word"], piece["tag"]))
            elif kind == "label":
                if not depth:
                    start, root = piece.start(), piece["label"]
                depth, opened = depth + 1, piece
            elif kind == "stray":
                raise self._stray(piece, depth)
            elif before is not None:
                raise self._childless(before)
            elif not depth:
                hint = "remove it, or open it before"
                raise self._refuse(piece, "a closing bracket that was never opened", hint)
            else:
                depth -= 1
            if not depth:
                yield root, tree
                root, tree = "", []
        if depth:
            message = f"{depth} bracket{'s' * (depth != 1)} of the tree that starts here not closed"
            raise self._refuse(start, message, "close them; is the file truncated?")

    def _stray(self, piece: re.Match[str], depth: int) -> UserError:
        if depth:
            return self._refuse(piece, f"{piece[0]!r} has no tag", "a leaf is written (TAG word)")
        message = f"{piece[0]!r} stands between trees"
        return self._refuse(piece, message, "there may be only bracketed trees in the file")

    def _childless(self, opened: re.Match[str]) -> UserError:
        label = opened["label"]
        message = f"({label}) is a word without tag or a tag without word" if label else "empty ()"
        return self._refuse(opened, message, "a leaf is written (TAG word)")

    def _refuse(self, at: re.Match[str] | int, message: str, hint: str) -> UserError:
        position = at if isinstance(at, int) else at.start()
        line = self.text.count("\n", 0, position) + 1
        return UserError(message, file=self.file, line=line, hint=hint)
