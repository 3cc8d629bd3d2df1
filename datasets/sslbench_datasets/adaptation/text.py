"""Readers of the texts of domain adaptation: question sets and biomedical abstracts.

All words come out in the conventions of the Penn Treebank, which is the labeled source: -LRB- and
-RRB-, `` and '', ``1\\/2``. What a word becomes never depends on its label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

import numpy as np

from sslbench.corpus import Column, Corpus, RawBytes, Vocabulary, read_bytes, read_conll
from sslbench.corpus.files import Source, source_name
from sslbench.errors import UserError
from sslbench_datasets.treebank.text import split_sentences, tokenize
from sslbench_datasets.treebank.trees import read_trees

Sentence = list[str]

_SLASH = re.compile(r"(?<!\\)/")
_BRACKETS = {
    **dict.fromkeys("([", "-LRB-"),
    **dict.fromkeys(")]", "-RRB-"),
    "{": "-LCB-",
    "}": "-RCB-",
}
_TYPOGRAPHIC = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'"})

# QuestionBank, in the order of use. The apostrophe of its words was lost to "<"; brackets have no
# tag; six empty leaves stand where no word is missing; marks are tagged as themselves, in the
# second half and in a few other lines, where the Wall Street Journal has "." and, for single
# quotes, "``" and "''".
_QUESTIONBANK_REPAIRS = (
    (re.compile(rb"\( -([LR]RB)-\)"), rb"(-\1- -\1-)"),
    (re.compile(rb"\( *\)"), b""),
    (re.compile(rb"<"), b"'"),
    (re.compile(rb"(?<!\\)/"), rb"\\/"),
    (re.compile(rb"\([?!] "), b"(. "),
    (re.compile(rb"\(` "), b"(`` "),
    (re.compile(rb"\(' "), b"('' "),
)
_FIELD_MARKS = ("UI", "TI", "AB")
_GENIA_TAGS = {"(": "-LRB-", ")": "-RRB-"}
_CLASS_OF_QUESTION = re.compile(r"[A-Z]+:[a-z]+")
# PennBioIE writes (NN:[12..14] word); lines that start with a semicolon hold the text of the tree.
_SPAN = re.compile(rb"(?<=[^\s()]):\[[0-9.,]+\](?=\s)")
_COMMENT = re.compile(rb"(?m)^[ \t]*;[^\n]*$")
_NOT_BODY = ("SEC", "ORPH")


def corpus_of(
    sentences: Sequence[Sentence],
    vocabularies: dict[str, Vocabulary],
    labels: Sequence[Sentence] | None = None,
) -> Corpus:
    """Sentences as columns "word" and, if there are any, "label"; vocabularies are extended."""
    columns = {"word": sentences} if labels is None else {"word": sentences, "label": labels}
    coded = {}
    for name, strings in columns.items():
        vocabulary = vocabularies.setdefault(name, Vocabulary())
        coded[name] = Column(vocabulary, vocabulary.encode(chain.from_iterable(strings)))
    return Corpus(coded, np.cumsum([0, *map(len, sentences)], dtype=np.int64))


def sentences_of(corpus: Corpus, column: str = "word") -> list[Sentence]:
    """One column of a corpus as text."""
    strings, borders = corpus.column(column).strings(), corpus.offsets.tolist()
    return [strings[a:b] for a, b in pairwise(borders)]


def ptb_words(words: Iterable[str]) -> Sentence:
    """The tokens of one sentence as the Penn Treebank writes them; their number stays.

    Double quotation marks open and close in turn.
    """
    written, opening = [], True
    for word in words:
        if word == '"':
            written.append("``" if opening else "''")
            opening = not opening
        else:
            written.append(_BRACKETS.get(word) or _SLASH.sub(r"\\/", word))
    return written


# --- questions ----------------------------------------------------------------------------------


def read_questionbank(source: Source, vocabularies: dict[str, Vocabulary]) -> Corpus:
    """Read the trees of QuestionBank with its known damage repaired; columns word and label.

    UserError as of `read_trees`.
    """
    data = read_bytes(source)
    for pattern, replacement in _QUESTIONBANK_REPAIRS:
        data = pattern.sub(replacement, data)
    return read_trees(RawBytes(source_name(source), data), vocabularies)


def read_simple_questions(source: Source) -> list[Sentence]:
    """Questions of SimpleQuestions: the fourth of four tab-separated columns, tokenized.

    UserError with the line of one that has not four columns, or is not UTF-8.
    """
    questions = []
    for number, line in _lines(source, ("utf-8",)):
        cells = line.split("\t")
        if len(cells) != 4 or not cells[3].strip():
            raise UserError(
                "not subject, property, object and question, separated by tabs",
                file=source_name(source),
                line=number,
                hint="take the file as upstream has it",
            )
        questions.append(tokenize(cells[3].translate(_TYPOGRAPHIC)))
    return questions


def read_trivia(source: Source) -> list[Sentence]:
    """Sentences of the questions of OpenTriviaQA: from ``#Q`` to the line ``^ answer``.

    Lines are UTF-8 or, where they cannot be, Windows-1252. UserError with the line of an answer
    without question, or a question without answer.
    """
    sentences: list[Sentence] = []
    question: list[str] = []
    asked = 0
    for number, line in (*_lines(source, ("utf-8", "cp1252", "latin-1")), (0, "#Q")):
        if line.startswith("#Q"):
            if asked:
                raise _trivia_error(source, asked, "question without a line '^ answer'")
            question, asked = [line[2:]], number
        elif line.startswith("^"):
            if not asked:
                raise _trivia_error(source, number, "answer without a line '#Q question'")
            text = " ".join(question).translate(_TYPOGRAPHIC)
            sentences.extend(filter(None, map(tokenize, split_sentences(text))))
            asked = 0
        elif asked:
            question.append(line)
    return sentences


def _trivia_error(source: Source, line: int, message: str) -> UserError:
    hint = "take the file as upstream has it"
    return UserError(message, file=source_name(source), line=line, hint=hint)


def read_question_classes(source: Source) -> list[Sentence]:
    """Questions of the TREC question classification set: ``COARSE:fine word word ...`` per line.

    UserError with the line of one that does not begin with a class.
    """
    questions = []
    for number, line in _lines(source, ("latin-1",)):
        kind, *words = line.split()
        if not _CLASS_OF_QUESTION.fullmatch(kind) or not words:
            raise UserError(
                f"{line[:40]!r} is not a class (COARSE:fine) and a question",
                file=source_name(source),
                line=number,
                hint="take the file as upstream has it",
            )
        questions.append(ptb_words(words))
    return questions


def _lines(source: Source, encodings: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Number and text of the lines that are not blank, each in the first encoding that fits."""
    for number, raw in enumerate(read_bytes(source).split(b"\n"), 1):
        for encoding in encodings:
            try:
                line = raw.decode(encoding)
                break
            except UnicodeDecodeError:
                continue
        else:
            raise UserError(
                f"the line is not {encodings[-1]}",
                file=source_name(source),
                line=number,
                hint="take the file as upstream has it",
            )
        if line.strip():
            yield number, line


# --- biomedical text ----------------------------------------------------------------------------


def read_genia(source: Source) -> tuple[list[Sentence], list[Sentence]]:
    """Words and tags of GENIA without the field marks of MEDLINE.

    ``UI - 95333264`` is no sentence, and ``TI -`` and ``AB -`` are no part of title and abstract.
    The tags ( and ) become -LRB- and -RRB-. UserError as of `read_conll`.
    """
    corpus = read_conll(source, ("word", "label"), {}, separator="\t", skip=())
    words, tags = [], []
    both = zip(sentences_of(corpus), sentences_of(corpus, "label"), strict=True)
    for forms, labels in both:
        marked = forms[1:2] == ["-"] and forms[0] in _FIELD_MARKS
        start = (len(forms) if forms[0] == "UI" else 2) if marked else 0
        if start < len(forms):
            words.append(ptb_words(forms[start:]))
            tags.append([_GENIA_TAGS.get(label, label) for label in labels[start:]])
    return words, tags


def read_ebm(source: Source) -> list[Sentence]:
    """Sentences of EBM-NLP: the first of four columns. UserError as of `read_conll`."""
    return list(map(ptb_words, sentences_of(read_conll(source, ("word", "_", "_", "_"), {}))))


def read_biotrees(source: Source, vocabularies: dict[str, Vocabulary]) -> Corpus:
    """Read a .mrg file of PennBioIE; columns word and label.

    Its leaves carry the place of the word behind the tag, ``(NN:[12..14] word)``, and its trees
    are SENT, SEC or ORPH: only the last two are no sentences (lists of authors and the like) and
    left out. Lines that start with a semicolon are comments. UserError as of `read_trees`.
    """
    data = _COMMENT.sub(b"", read_bytes(source))
    text = RawBytes(source_name(source), _SPAN.sub(b"", data))
    own: dict[str, Vocabulary] = {}
    corpus = read_trees(text, own, skip=_NOT_BODY)
    words = [ptb_words(sentence) for sentence in sentences_of(corpus)]
    return corpus_of(words, vocabularies, sentences_of(corpus, "label"))
