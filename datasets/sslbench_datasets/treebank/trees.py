"""Bracketed trees of the Penn Treebank, read for their words and part-of-speech tags.

Source: A. Bies et al., Bracketing guidelines for Treebank II style Penn Treebank project, 1995.
``( (S (NP (DT the) (NN board)) ...) )``: the outermost bracket may lack a label, white space is
free, a file has any number of trees. A leaf is ``(TAG word)``, brackets in the text are -LRB- and
-RRB-. Each outermost bracket is one sentence. Words are not normalized (``1\\/2``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from sslbench.engine.corpus import Corpus, Vocabulary
from sslbench.engine.corpus.files import COPY_AGAIN, Source, read_text, source_name
from sslbench.engine.errors import UserError

EMPTY = "-NONE-"  # tag of traces and other leaves that are not words
# A leaf; else an opening bracket with its label, a closing bracket, or text outside of leaves. Only
# ASCII white space separates. Possessive quantifiers prevent backtracking.
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
    """Read the leaves of all trees of a file; columns word and label.

    Leaves tagged EMPTY are left out, and trees without other leaves. Of an ambiguous tag
    (``JJ|NN``: the annotators did not decide) the first is used.

    vocabularies: vocabularies by column; they are extended, so that splits share them. Default:
        new ones.
    skip: outermost labels of trees to leave out.
    UserError with file and line for: a byte that is not UTF-8, NUL, a bracket that is not closed
    (the line where its tree starts) or not opened, a word without tag or a tag without word, text
    between trees; without line for a file without trees.
    """
    trees = list(_Trees(source_name(source), _read(source)).leaves())
    if not trees:
        raise UserError("no tree in the file", file=source_name(source), hint=COPY_AGAIN)
    sentences = [words for root, tree in trees if root not in skip and (words := _words(tree))]
    columns = {
        "word": [[word for word, _ in sentence] for sentence in sentences],
        "label": [[tag for _, tag in sentence] for sentence in sentences],
    }
    return Corpus.from_sentences(columns, vocabularies)


def _words(tree: list[Leaf]) -> list[Leaf]:
    return [(word, tag.split("|", 1)[0] or tag) for word, tag in tree if tag != EMPTY]


def _read(source: Source) -> str:
    text = read_text(source)
    if (position := text.find("\0")) >= 0:
        line = text.count("\n", 0, position) + 1
        raise UserError("NUL byte", file=source_name(source), line=line, hint=COPY_AGAIN)
    return text


@dataclass(frozen=True)
class _Trees:
    """The text of one file; `file` is its name in messages."""

    file: str
    text: str = field(repr=False)

    def leaves(self) -> Iterator[tuple[str, list[Leaf]]]:
        """Outermost label and leaves of each tree. There is no recursion: trees may be deep."""
        depth, start, root, tree = 0, 0, "", list[Leaf]()
        opened: re.Match[str] | None = None  # the previous piece if it is an opening bracket
        for piece in _PIECE.finditer(self.text):
            kind, before, opened = piece.lastgroup, opened, None
            if kind == "word":
                tree.append((piece["word"], piece["tag"]))
            elif kind == "label":
                if not depth:
                    start, root = piece.start(), piece["label"]
                depth, opened = depth + 1, piece
            elif kind == "stray":
                raise self._stray_error(piece, depth)
            elif before is not None:
                raise self._leaf_error(before)
            elif not depth:
                message = "a closing bracket that was never opened"
                raise self._error(piece, message, "remove it, or open it before")
            else:
                depth -= 1
            if not depth:
                yield root, tree
                root, tree = "", []
        if depth:
            message = f"{depth} bracket{'s' * (depth != 1)} of the tree that starts here not closed"
            raise self._error(start, message, "close them; is the file truncated?")

    def _stray_error(self, piece: re.Match[str], depth: int) -> UserError:
        if depth:
            return self._error(piece, f"{piece[0]!r} has no tag", "a leaf is written (TAG word)")
        message = f"{piece[0]!r} stands between trees"
        return self._error(piece, message, "the file may hold bracketed trees only")

    def _leaf_error(self, opened: re.Match[str]) -> UserError:
        label = opened["label"]
        message = f"({label}) is a word without tag or a tag without word" if label else "empty ()"
        return self._error(opened, message, "a leaf is written (TAG word)")

    def _error(self, at: re.Match[str] | int, message: str, hint: str) -> UserError:
        position = at if isinstance(at, int) else at.start()
        line = self.text.count("\n", 0, position) + 1
        return UserError(message, file=self.file, line=line, hint=hint)
