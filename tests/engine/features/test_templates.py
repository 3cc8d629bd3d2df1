"""Template text, template files, derived columns, the template sets of the paper."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.corpus.strings import pack_strings, unpack_strings
from sslbench.engine.errors import UserError
from sslbench.engine.features import (
    Atom,
    Template,
    coded_column,
    load_featurizer,
    load_templates,
    word_type,
)
from sslbench.engine.features.derived import operation
from sslbench_methods.featurizers.suzuki2008 import basic, chunk39, ner79, pos47

atoms = st.builds(Atom, st.sampled_from(["word", "pos", "word.suffix3", "a-b"]), st.integers(-9, 9))
plain = st.builds(Template, st.lists(atoms, min_size=1, max_size=4).map(tuple), st.booleans())
bags = st.builds(
    lambda edge, low, width: Template((Atom("word", 0),), edge, (low, low + width)),
    *(st.booleans(), st.integers(-5, 5), st.integers(0, 3)),
)


@given(plain | bags | st.just(Template(())))
def test_text_round_trip(template):
    assert Template.parse(str(template)) == template


def test_text_forms():
    assert str(Template.parse(" word[-1] | word[+0] ")) == "word[-1]|word[0]"
    assert Template.parse("1") == Template.parse("bias") == Template(())
    assert Template.parse("bag: edge: word[1..4]") == Template((Atom("word", 0),), True, (1, 4))
    assert Template.parse("bag:word[-4..-1]").offsets == (-4, -3, -2, -1)
    assert Template.parse("word[1]|pos[-1]").pattern == (Atom("word", 2), Atom("pos", 0))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("word", "write word[0]"),
        ("word[-1]|pos[x]", "'pos[x]'"),
        ("word[-1", "'word[-1'"),
        ("word[0]||pos[0]", "cannot parse ''"),
        ("", "cannot parse ''"),
        ("egde: pos[0]", "'egde:'"),
        ("edge: edge: pos[0]", "'edge:'"),
        ("edge: bias", "leave it out"),
        ("bag: bias", "a column and a window"),
        ("bag: word[0]", "'word[0]'"),
        ("word[-4..-1]", "bag: word[-4..-1]"),
        ("bag: word[3..1]", "left end first"),
        ("word[1000]", "beyond 100"),
        ("word[0]|pso[0]", "'pso'; did you mean pos?"),
        ("wrd.suffix2[0]", "did you mean word.suffix2?"),
        ("lemma[0]", "columns: word, pos"),
    ],
)
def test_parse_errors_name_the_part(text, part):
    with pytest.raises(UserError) as caught:
        Template.parse(text, ("word", "pos"))
    assert part in str(caught.value)


def test_column_names_that_cannot_be_written():
    for name in ("", "a b", "a[0]", "a|b", "a:b"):
        with pytest.raises(UserError, match="column name"):
            Atom(name, 0)


def test_template_file(tmp_path):
    path = tmp_path / "templates.txt"
    path.write_text("# chunking\n\nword[0]  # this word\nedge: pos[0]\r\n")
    assert list(map(str, load_templates(path))) == ["word[0]", "edge: pos[0]"]
    path.write_text("word[0]\npos[0]\n word[0]\n")
    with pytest.raises(UserError, match=r"templates.txt:3: 'word\[0\]' repeats line 1"):
        load_templates(path)
    path.write_text("word[0]\n\nword[0\n")
    with pytest.raises(UserError, match=r"templates.txt:3: .*cannot parse"):
        load_templates(path)
    path.write_text("# nothing\n")
    with pytest.raises(UserError, match="no template"):
        load_templates(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="not utf-8"):
        load_templates(path)
    with pytest.raises(UserError, match=r"missing.txt: no such file"):
        load_templates(tmp_path / "missing.txt")


WTP = """the 0000, The 0003, IBM 0005, U.S. 0501, McDonald 0009, 1,000 0050, -1.5 0050, 1996 0030,
... 0080, . 4000, Mr. 0101, J. 0d01, A 3007, a 1000, % 0000, mid-1990s 0210, F-16 0211, `` 0000,
" 8000, CD4+ 0011, iPod 0000"""


def test_word_type_table():
    """docs/specs/jess_cm.md, oracle 15."""
    table = [entry.split(" ") for entry in WTP.replace("\n", " ").split(", ")]
    assert len(table) == 21
    assert {word: word_type(word) for word, _ in table} == dict(table)
    assert word_type("") == "0000"
    assert word_type("É") == "1007"  # upper-case letter, not ASCII
    assert word_type("١") == "0000"  # a digit, not ASCII
    assert word_type("a-b-c") == "0000"  # second hyphen
    assert word_type("-a") == "0000"


def test_operations():
    words = ["Ab", "abcd", "x", "É1-"]
    table = {
        "lower": ["ab", "abcd", "x", "é1-"],
        "prefix2": ["Ab", "ab", "<short>", "É1"],
        "compressed": ["Aa", "a", "a", "A0-"],
        "suffix3": ["<short>", "bcd", "<short>", "É1-"],
        "head3": ["Ab", "abc", "x", "É1-"],
        "tail3": ["Ab", "bcd", "x", "É1-"],
        "first_upper": ["true", "false", "false", "true"],
        "last_punct": ["false", "false", "false", "true"],
        "has_dash": ["false", "false", "false", "true"],
        "has_digit": ["false", "false", "false", "true"],
        "all_lower": ["false", "true", "true", "false"],
    }
    for name, values in table.items():
        assert list(map(operation(name), words)) == values, name


def test_a_period_is_one_character_and_a_dash_any() -> None:
    words = ["U.S.", "…", "a-b", "a\N{EN DASH}b", ""]
    assert list(map(operation("has_period"), words)) == ["true", *["false"] * 4]
    assert list(map(operation("has_dash"), words)) == ["false", "false", "true", "true", "false"]


def test_derived_once_per_vocabulary_entry():
    vocabulary = Vocabulary(["Ab", "ab", "x"])
    corpus = Corpus({"word": Column(vocabulary, [0, 1, 2, 0])}, [0, 4])
    lower = coded_column(corpus, "word.lower")
    assert lower.strings() == ["ab", "ab", "x", "ab"]
    assert coded_column(corpus, "word.lower").vocabulary is lower.vocabulary
    assert coded_column(corpus, "word.lower.prefix2").strings() == ["ab", "ab", "<short>", "ab"]
    own = corpus.with_column("word.lower", Column(Vocabulary(["own"]), [0, 0, 0, 0]))
    assert coded_column(own, "word.lower").strings() == ["own"] * 4


def test_strings_survive_packing():
    strings = ["", "é", "a\nb", "\ud800", "", "𝔘"]
    assert unpack_strings(*pack_strings(strings)) == strings
    assert unpack_strings(*pack_strings([])) == []


@pytest.mark.parametrize(
    ("make", "state", "arc"), [(pos47, 37, 10), (chunk39, 24, 15), (ner79, 45, 34)]
)
def test_template_counts_of_the_paper(make, state, arc):
    """docs/specs/jess_cm.md, oracle 13; the paper also counts [y_{s-1:s}], no template here."""
    templates = make().templates
    edges = sum(t.edge for t in templates)
    assert (len(templates) - edges, edges + 1) == (state, arc)
    assert Template(()) in templates
    assert all(-2 <= a.offset <= 2 for t in templates for a in t.atoms)


def test_basic_needs_words_only():
    assert {a.column.split(".")[0] for t in basic().templates for a in t.atoms} == {"word"}
    assert not any(t.edge for t in basic().templates)


def test_templates_in_toml(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text(
        '# features\ntemplates = [\n  "bias", "a[0]|word[0]",\n  \'word[0]\',  # word\n]\n'
    )
    assert list(map(str, load_templates(path))) == ["bias", "a[0]|word[0]", "word[0]"]
    assert load_featurizer(path, ["word", "a"]).templates == load_templates(path)
    with pytest.raises(UserError, match=r"my\.toml:3: .*no column 'a'"):
        load_featurizer(path, ["word"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('templates = [\n "word[0]",\n "word[1]", "word[0]"]', r":3: 'word\[0\]' repeats line 2"),
        ('templates = ["a[0]|word[0]",\n"word[0"]', r":2: .*cannot parse 'word\[0'"),
        ('templates = [\n"word[0]"', "no TOML: Unclosed array"),
        ('templates = ["word[0]"]\nwindow = 2', "unknown key 'window'"),
        ('templates = [\n"a" "b"]', r"my\.toml:2: no TOML"),
        ('templates = "word[0]"', "no array of texts"),
        ("templates = [1]", "no array of texts"),
        ("templates = []", "no template in this file"),
        ("", "no array of texts"),
        ("a = " + "[" * 5000, "no TOML"),
    ],
)
def test_damaged_toml(tmp_path, text, message):
    (tmp_path / "my.toml").write_text(text)
    with pytest.raises(UserError) as caught:
        load_templates(tmp_path / "my.toml")
    assert re.search(message, str(caught.value)), str(caught.value)
