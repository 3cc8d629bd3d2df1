"""Domain adaptation of part-of-speech tagging: the readers of questions and of abstracts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sslbench.engine.corpus import RawBytes, Vocabulary
from sslbench.engine.errors import UserError
from sslbench_datasets.adaptation.load import letters
from sslbench_datasets.adaptation.text import (
    Sentence,
    ptb_words,
    read_biotrees,
    read_ebm,
    read_genia,
    read_question_classes,
    read_questionbank,
    read_simple_questions,
    read_trivia,
)
from support.adaptation_fakes import (
    BANK,
    BANK_PAIRS,
    GENIA_PAIRS,
    GENIA_TEXT,
    TRIVIA_SENTENCES,
    TRIVIA_TEXT,
    pairs,
)


def raw(text: str | bytes) -> RawBytes:
    return RawBytes("f.txt", text if isinstance(text, bytes) else text.encode())


def test_questionbank_is_repaired() -> None:
    assert pairs(read_questionbank(raw(BANK), {})) == BANK_PAIRS


def test_questionbank_errors_name_the_line_of_the_file() -> None:
    with pytest.raises(UserError, match=r"f\.txt:4: .*not closed"):
        read_questionbank(raw(BANK + "(S (NN ( )"), {})


def test_simple_questions_are_tokenized() -> None:
    text = "Q1\tR2\tQ3\twho's the author of warner bros.\r\nQ1\tR2\tQ3\tIs “it” (so)?\n\n"
    assert read_simple_questions(raw(text)) == [
        ["who", "'s", "the", "author", "of", "warner", "bros", "."],
        ["Is", "``", "it", "''", "-LRB-", "so", "-RRB-", "?"],
    ]


def test_trivia_questions_run_on_and_mix_encodings() -> None:
    assert read_trivia(raw(TRIVIA_TEXT)) == TRIVIA_SENTENCES


def test_question_classes_are_taken_off() -> None:
    text = 'DESC:def What is " caf\xe9 / bar " ( s ) ?\nHUM:ind Who ?\n'
    assert read_question_classes(raw(text.encode("latin-1"))) == [
        ["What", "is", "``", "café", r"\/", "bar", "''", "-LRB-", "s", "-RRB-", "?"],
        ["Who", "?"],
    ]


def test_genia_loses_field_marks_only() -> None:
    assert pairs(read_genia(raw(GENIA_TEXT), {})) == GENIA_PAIRS


def test_words_do_not_depend_on_labels() -> None:
    """Quotation marks open and close in turn, whatever their tags are."""
    texts = (GENIA_TEXT, GENIA_TEXT.replace("``", "X").replace("''", "Y"))
    first, second = (read_genia(raw(text), {}).sentences("word") for text in texts)
    assert first == second


def test_ptb_words() -> None:
    assert ptb_words(['"', r"1\/2", "1/2", "{", "}", '"', "'", '"']) == (
        ["``", r"1\/2", r"1\/2", "-LCB-", "-RCB-", "''", "'", "``"]
    )


def test_ebm_has_words_alone() -> None:
    text = "-DOCSTART- (10037531)\n\n( NN O I-INT\nXylitol NN O O\n\n\n-DOCSTART- (1)\n\nA NN O O\n"
    assert read_ebm(raw(text)) == [["-LRB-", "Xylitol"], ["A"]]


BIO = """\
;sentence 0 Span:0..20 (with a bracket

(SENT (NP (NN:[0..5] IL-2/x) (HYPH:[5..6] -) (::[6..7,9..10] ;) (-NONE-:[7..7] *P*))
  ;(not a leaf)
  (AFX:[8..9] co)(. .))
(SEC (FRAG (NNP:[10..13] Doe)))
(ORPH (NN:[14..15] y))
(SENT (VB:[15..16] z:[1..2]))
"""


def test_pennbioie_spans_comments_and_sections_go() -> None:
    vocabularies: dict[str, Vocabulary] = {}
    corpus = read_biotrees(raw(BIO), vocabularies)
    assert pairs(corpus) == [r"IL-2\/x_NN -_HYPH ;_: co_AFX ._.", "z:[1..2]_VB"]
    assert "Doe" not in vocabularies["word"]
    with pytest.raises(UserError, match=r"f\.txt:7: .*NN.* is a word without tag"):
        read_biotrees(raw(BIO.replace("(NN:[14..15] y)", "(NN:[14..15])")), {})


@pytest.mark.parametrize(
    ("reader", "text", "expected"),
    [
        (read_simple_questions, b"a\tb\tc\twhat\nno tabs\n", r"f\.txt:2: expected subject"),
        (read_simple_questions, b"a\tb\tc\t \n", r"f\.txt:1: expected subject"),
        (read_simple_questions, b"a\tb\tc\t\xff\n", r"f\.txt:1: .*not utf-8"),
        (read_trivia, b"#Q a\n\n#Q b\n^ c\n", r"f\.txt:1: question without"),
        (read_trivia, b"#Q a\n^ b\n#Q c\n", r"f\.txt:3: question without"),
        (read_trivia, b"#Q a\n^ b\n^ c\n", r"f\.txt:3: answer without"),
        (read_question_classes, b"DESC:def Why ?\nWhy ?\n", r"f\.txt:2: 'Why \?' is not a class"),
        (read_question_classes, b"DESC:def\n", r"f\.txt:1: .* is not a class"),
    ],
)
def test_a_bad_line_is_named(
    reader: Callable[[RawBytes], list[Sentence]], text: bytes, expected: str
) -> None:
    with pytest.raises(UserError, match=expected) as caught:
        reader(raw(text))
    assert caught.value.hint


def test_letters_forget_case_punctuation_and_tokens() -> None:
    assert letters(["Who", "'s", "U.S.", "\xf0", "?"]) == letters(["who", "s", "us"]) == "whosus"
