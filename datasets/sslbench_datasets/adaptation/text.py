"""Readers of the texts of domain adaptation: question sets and biomedical abstracts.

Words follow the conventions of the Penn Treebank, which is the labeled source: -LRB- and -RRB-,
`` and '', ``1\\/2``. The form of a word never depends on its label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from sslbench.engine.corpus import Corpus, RawBytes, Vocabulary, read_bytes, read_conll
from sslbench.engine.corpus.files import COPY_AGAIN, Source, source_name
from sslbench.engine.errors import UserError
from sslbench_datasets.treebank.tokenizer import split_sentences, tokenize
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

# QuestionBank, in the order of use. Brackets have no tag; six leaves are empty where no word is
# missing; apostrophes are "<"; slashes are not escaped; ? ! ` ' are tagged as themselves in the
# second half and a few other lines, where the Wall Street Journal has . `` ''.
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
_QUESTION_CLASS = re.compile(r"[A-Z]+:[a-z]+")
# PennBioIE writes (NN:[12..14] word); lines that start with a semicolon hold the text of the tree.
_CHARACTER_SPAN = re.compile(rb"(?<=[^\s()]):\[[0-9.,]+\](?=\s)")
_COMMENT = re.compile(rb"(?m)^[ \t]*;[^\n]*$")
_NOT_SENTENCES = ("SEC", "ORPH")


def ptb_words(words: Iterable[str]) -> Sentence:
    """The tokens of one sentence as the Penn Treebank writes them; their number is the same.

    Double quotation marks open and close alternately.
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
    """Read the trees of QuestionBank, with known errors corrected; columns word and label.

    UserError as `read_trees`.
    """
    data = read_bytes(source)
    for pattern, replacement in _QUESTIONBANK_REPAIRS:
        data = pattern.sub(replacement, data)
    return read_trees(RawBytes(source_name(source), data), vocabularies)


def read_simple_questions(source: Source) -> list[Sentence]:
    """Questions of SimpleQuestions, tokenized: the fourth of four tab-separated columns.

    UserError with the line for another number of columns and a byte that is not UTF-8.
    """
    questions = []
    for number, line in _lines(source, ("utf-8",)):
        cells = line.split("\t")
        if len(cells) != 4 or not cells[3].strip():
            message = "expected subject, property, object and question, separated by tabs"
            raise _error(source, number, message)
        questions.append(tokenize(cells[3].translate(_TYPOGRAPHIC)))
    return questions


def read_trivia(source: Source) -> list[Sentence]:
    """Sentences of the questions of OpenTriviaQA: from ``#Q`` to the line ``^ answer``.

    Each line is UTF-8 or Windows-1252. UserError with the line for an answer without question and a
    question without answer.
    """
    sentences: list[Sentence] = []
    question: list[str] = []
    start = 0  # line of the question that has no answer yet
    for number, line in (*_lines(source, ("utf-8", "cp1252", "latin-1")), (0, "#Q")):
        if line.startswith("#Q"):
            if start:
                raise _error(source, start, "question without a line '^ answer'")
            question, start = [line[2:]], number
        elif line.startswith("^"):
            if not start:
                raise _error(source, number, "answer without a line '#Q question'")
            text = " ".join(question).translate(_TYPOGRAPHIC)
            sentences.extend(filter(None, map(tokenize, split_sentences(text))))
            start = 0
        elif start:
            question.append(line)
    return sentences


def read_question_classes(source: Source) -> list[Sentence]:
    """Questions of the TREC question classification set: ``COARSE:fine word word ...`` per line.

    UserError with the line for one that does not begin with a class.
    """
    questions = []
    for number, line in _lines(source, ("latin-1",)):
        question_class, *words = line.split()
        if not _QUESTION_CLASS.fullmatch(question_class) or not words:
            message = f"{line[:40]!r} is not a class (COARSE:fine) and a question"
            raise _error(source, number, message)
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
            raise _error(source, number, f"the line is not {encodings[-1]}")
        if line.strip():
            yield number, line


def _error(source: Source, line: int, message: str) -> UserError:
    return UserError(message, file=source_name(source), line=line, hint=COPY_AGAIN)


# --- biomedical text ----------------------------------------------------------------------------


def read_genia(source: Source, vocabularies: dict[str, Vocabulary]) -> Corpus:
    """Read GENIA without the field marks of MEDLINE; columns word and label.

    ``UI - 95333264`` is not a sentence, and ``TI -`` and ``AB -`` are not part of title and
    abstract. The tags ( and ) become -LRB- and -RRB-. UserError as `read_conll`.
    """
    corpus = read_conll(source, ("word", "label"), {}, separator="\t", skip=())
    words, tags = [], []
    for forms, labels in zip(corpus.sentences("word"), corpus.sentences("label"), strict=True):
        marked = forms[1:2] == ["-"] and forms[0] in _FIELD_MARKS
        start = (len(forms) if forms[0] == "UI" else 2) if marked else 0
        if start < len(forms):
            words.append(ptb_words(forms[start:]))
            tags.append([_GENIA_TAGS.get(label, label) for label in labels[start:]])
    return Corpus.from_sentences({"word": words, "label": tags}, vocabularies)


def read_ebm(source: Source) -> list[Sentence]:
    """Sentences of EBM-NLP: the first of four columns. UserError as `read_conll`."""
    return list(map(ptb_words, read_conll(source, ("word", "_", "_", "_")).sentences("word")))


def read_biotrees(source: Source, vocabularies: dict[str, Vocabulary]) -> Corpus:
    """Read a .mrg file of PennBioIE; columns word and label.

    Its leaves have the position of the word behind the tag, ``(NN:[12..14] word)``. Its trees are
    SENT, SEC or ORPH; SEC and ORPH are not sentences (lists of authors and the like) and are left
    out. Lines that start with a semicolon are comments. UserError as `read_trees`.
    """
    data = _COMMENT.sub(b"", read_bytes(source))
    text = RawBytes(source_name(source), _CHARACTER_SPAN.sub(b"", data))
    corpus = read_trees(text, skip=_NOT_SENTENCES)
    words = [ptb_words(sentence) for sentence in corpus.sentences("word")]
    return Corpus.from_sentences({"word": words, "label": corpus.sentences("label")}, vocabularies)
