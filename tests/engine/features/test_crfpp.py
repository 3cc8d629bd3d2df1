"""Template files of CRF++ and Wapiti."""

from __future__ import annotations

import pytest

from sslbench.engine.errors import UserError
from sslbench.engine.features import Template, load_featurizer, load_template_file

COLUMNS = ("word", "pos")

# the shape of the file that comes with CRF++ for base noun phrases
CRFPP = """# Unigram
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U05:%x[-1,0]/%x[0,0]

U10:%x[-2,1]
U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U99

# Bigram
B
B05:%x[0,1]
"""

WAPITI = r"""
*                        # transitions and a constant
u:wrd 1:%X[ 0,0]         # folded
*:pos:%x[-1,1]
u:pre-2:%m[0,0,"^.?.?"]
u:suf-3:%m[ 1,0,"...$"]
U:pre:%M[0,0,"^.."]
u:tail:%m[0,0,".?.?.?$"]
u:upper:%t[0,0,"^\u"]/%t[-1,0,"^\u*$"]
u:digit:%t[0,0,"\d"]
b:punct:%t[0,0,"\p$"]
"""


def texts(tmp_path, text, load=load_template_file):
    path = tmp_path / "template"
    path.write_text(text)
    return list(map(str, load(path, COLUMNS).templates))


def test_crfpp_file(tmp_path):
    assert texts(tmp_path, CRFPP) == [
        *("word[-2]", "word[-1]", "word[0]", "word[-1]|word[0]", "pos[-2]"),
        *("pos[-2]|pos[-1]|pos[0]", "bias"),
        "edge: pos[0]",
    ]


def test_wapiti_file(tmp_path):
    assert texts(tmp_path, WAPITI) == [
        "bias",
        "word.lower[0]",
        "pos[-1]",
        "edge: pos[-1]",
        *("word.head2[0]", "word.suffix3[1]", "word.prefix2.lower[0]", "word.tail3[0]"),
        *("word.first_upper[0]|word.all_upper[-1]", "word.has_digit[0]"),
        "edge: word.last_punct[0]",
    ]


def test_form_is_recognized(tmp_path):
    assert texts(tmp_path, CRFPP, load_featurizer)[0] == "word[-2]"
    assert texts(tmp_path, "word[-1]\nB[0]|pos[0]\n".replace("B", "word"), load_featurizer) == [
        "word[-1]",
        "word[0]|pos[0]",
    ]
    with pytest.raises(UserError, match="only the transition template"):
        texts(tmp_path, "B\n", load_featurizer)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("U01:%x[0,2]", "there is no column 2; columns count from 0: word, pos"),
        ("U01:%x[0]", "cannot parse a macro"),
        ("U01:%y[0,0]", "cannot parse %y[0,0]"),
        ("U01:%x[@1,0]", "absolute and indirect positions"),
        ("U01:%x[*0,0]", "absolute and indirect positions"),
        ('U01:%m[0,0,"a**"]', "'*' repeats nothing in the expression 'a**'"),
        ("U01:%t[0,0]", "cannot parse %t[0,0]"),
        ('U01:%x[0,0,"^."]', "cannot parse %x"),
        ("X01:%x[0,0]", "begins with U"),
        ("U00:%x[1,0]", "has the identifier of line 1"),
        ("U02:%x[0,0]/%x[0,", "cannot parse a macro in '%x[0,'"),
    ],
)
def test_errors_name_file_and_line(tmp_path, line, message):
    with pytest.raises(UserError) as caught:
        texts(tmp_path, f"U00:%x[0,0]\n\n{line}\n")
    assert str(caught.value).startswith(f"{tmp_path / 'template'}:3: ")
    assert message in str(caught.value)


def test_a_repeated_template_counts_once(tmp_path):
    with pytest.warns(UserWarning, match=r"template:2: 'U02:%x\[0,0\]' repeats line 1"):
        assert texts(tmp_path, "U00:%x[0,0]\nU02:%x[0,0]\nB\n") == ["word[0]"]


def test_any_expression_is_a_column(tmp_path):
    """Names of other expressions hold their UTF-8 as hex digits."""
    (text,) = texts(tmp_path, r'U1:%t[0,0,".\p."]/%M[-1,1,"n*"]' + "\n")
    assert text == "word.test-2e5c702e[0]|pos.match-6e2a.lower[-1]"
    assert bytes.fromhex("2e5c702e") == rb".\p."
    assert str(Template.parse(text)) == text


def test_the_file_that_comes_with_wapiti(tmp_path):
    """The lines of its dat/nppattern.txt that differ in kind."""
    lines = r"""
*
U:wrd-1LL=%X[-2,0]
*:Pos-1 X=%x[ 0,1]
*:Suf-2 X=%m[ 0,0,".?.?$"]
*:AllC? X=%t[ 0,0,"^\u*$"]
*:InsP? X=%t[ 0,0,".\p."]
"""
    assert len(texts(tmp_path, lines)) == 10
