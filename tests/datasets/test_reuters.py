"""Reuters stories to tokenized sentences, on a small made-up file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sslbench.engine.corpus import Column, Corpus, CorpusShards, Vocabulary, write_shards
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome
from sslbench_datasets.conll00.info import CONLL2000, COUNTS
from sslbench_datasets.conll00.load import load
from sslbench_datasets.reuters import load as reuters
from sslbench_datasets.reuters.info import REUTERS
from sslbench_datasets.reuters.load import TaggedShards, bodies, read_stories, sentences
from sslbench_datasets.treebank.tokenizer import split_sentences, tokenize

SGML = """<!DOCTYPE lewis SYSTEM "lewis.dtd">
<REUTERS TOPICS="YES" NEWID="1">
<UNKNOWN>&#5;&#5;&#5;C T
&#22;&#22;&#1;f0704&#31;reute</UNKNOWN>
<TEXT>&#2;
<TITLE>NOT THE TITLE</TITLE>
<DATELINE>    PARIS, March 9 - </DATELINE><BODY>The &lt;Acme &amp; Sons Corp> board said Smith Inc
&lt;SMT.N> won't sell its well-
known unit.
    "We can't say," Mr. Jones said.  He left for the U.S. The
price was 7-1/2 dlrs.
    Shr 34 cts vs 1.19 dlrs
    Net 807,000 vs 2,858,000
    SALES ROSE STRONGLY AGAIN TODAY.
 Reuter
&#3;</BODY></TEXT>
</REUTERS>
<REUTERS NEWID="2"><TEXT TYPE="BRIEF"><TITLE>No body here.</TITLE></TEXT></REUTERS>
<REUTERS NEWID="3"><TEXT><BODY>Reuters said oil fell sharply.
 REUTER
&#3;</BODY></TEXT></REUTERS>
"""

EXPECTED = [
    r"The Acme & Sons Corp board said Smith Inc wo n't sell its well-known unit .",
    r"`` We ca n't say , '' Mr. Jones said .",
    r"He left for the U.S. .",
    r"The price was 7 1\/2 dlrs .",
    r"Reuters said oil fell sharply .",
]


def test_stories_become_sentences(tmp_path: Path) -> None:
    file = tmp_path / "a.sgm"
    file.write_text(SGML, encoding="latin-1")
    corpus = read_stories([file])
    assert list(map(" ".join, corpus.sentences("word"))) == EXPECTED


def test_bodies_lose_controls_and_signature_only() -> None:
    first, last = bodies(SGML)
    assert first.startswith("The <Acme & Sons Corp> board")
    assert first.endswith("AGAIN TODAY.")
    assert last == "Reuters said oil fell sharply."
    assert list(bodies("<BODY>A &#3;&#169; &amp;lt; B</BODY>")) == ["A  \u00a9 &lt; B"]


def test_a_file_without_stories_is_named(tmp_path: Path) -> None:
    file = tmp_path / "empty.sgm"
    file.write_text("<html>moved</html>")
    with pytest.raises(UserError, match=r"empty\.sgm"):
        read_stories([file])


def test_tables_headings_and_monsters_are_dropped() -> None:
    assert list(sentences("Too short.")) == []
    assert list(sentences("1.5 2.5 3.5 against 4.5 5.5 6.5.")) == []
    assert list(sentences("A heading without an end")) == []
    assert list(sentences("word " * 200 + "end.")) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mr. Smith of Acme Corp. said so. Then he left.", 2),
        ("He works at Acme Corp. The firm is old.", 2),
        ("It fell on Jan. 5 in Washington, D.C. by 1.5 pct.", 1),
        ("J. P. Morgan rose. U.S. Steel fell.", 2),
        ('"Is it?" he asked. "No!" she said.', 2),
        ("It rose 3.5 pct.", 1),
        ("", 0),
    ],
)
def test_sentence_borders(text: str, expected: int) -> None:
    assert len(split_sentences(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The company's $300-a-share bid.", "The company 's $ 300-a-share bid ."),
        ("It was 5% (or more).", "It was 5 % -LRB- or more -RRB- ."),
        ("Acme Inc.", "Acme Inc ."),
        ("in the U.S.", "in the U.S. ."),
        ("at 9 a.m. today, they'll go.", "at 9 a.m. today , they 'll go ."),
        ("U.S., Canada", "U.S. , Canada"),
        ("C$1,000.50 and US$2", "C$ 1,000.50 and US$ 2"),
        ("the banks' 16-3/4 1986/87", r"the banks ' 16 3\/4 1986\/87"),
        ("wait--what... cannot", "wait -- what ... can not"),
        ("he said 'no' in the '80s", "he said ` no ' in the '80s"),
        ('(he said "yes.")', "-LRB- he said `` yes . '' -RRB-"),
        ("isn't I'm we've DON'T", "is n't I 'm we 've DO N'T"),
        ("so, why?", "so , why ?"),
        ("Dr. No. 5", "Dr. No. 5"),
        ("AT&T", "AT&T"),
        ("", ""),
    ],
)
def test_tokens(text: str, expected: str) -> None:
    assert tokenize(text) == expected.split()


def test_no_character_is_lost() -> None:
    text = "\"The U.S. can't (yet) pay $1.5 bln,\" he said; nobody's surprised."
    plain = "".join(tokenize(text))
    for token, original in (("``", '"'), ("''", '"'), ("-LRB-", "("), ("-RRB-", ")")):
        plain = plain.replace(token, original)
    assert plain == text.replace(" ", "")


def upper_case_tagger(corpus: Corpus) -> Column:
    words = corpus.column("word")
    is_upper = np.array([word.isupper() for word in words.vocabulary.strings])
    return Column(Vocabulary(["low", "UP"]), is_upper[words.codes].astype(np.int32))


def test_tagged_shards_have_another_column() -> None:
    words = Vocabulary()
    codes = words.encode(["a", "B", "c", "D", "e"])
    plain = CorpusShards(Corpus({"word": Column(words, codes)}, np.array([0, 2, 5])), 2)
    tagged = TaggedShards(plain, upper_case_tagger)
    assert (tagged.n_sentences, tagged.n_tokens) == (2, 5)
    assert [shard.column("pos").strings() for shard in tagged] == [
        ["low", "UP"],
        ["low", "UP", "low"],
    ]


def test_text_is_tokenized_once_and_shares_the_vocabulary_of_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = DataHome(tmp_path, tmp_path / "cache", offline=True)
    files = []
    monkeypatch.setattr(DataHome, "path", lambda _, file: (files.append(file), tmp_path / "a")[1])
    (tmp_path / "a").write_text(SGML, encoding="latin-1")
    words = Vocabulary(["said", "train"])
    first = reuters.tokenized_text(home, {"word": words})
    again = reuters.tokenized_text(home, {"word": words})
    assert files == list(REUTERS)
    (shard,) = again
    assert shard.column("word").vocabulary is words
    assert (first.n_sentences, again.n_sentences) == (35, 35)
    assert shard.sentence(0, "word")[6] == "said" == words.strings[0]


def test_external_trains_a_tagger_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = DataHome(tmp_path, tmp_path / "cache", offline=True)
    monkeypatch.setattr(DataHome, "path", lambda *_: tmp_path / "a")
    (tmp_path / "a").write_text(SGML, encoding="latin-1")
    words, pos, label = Vocabulary(["said"]), Vocabulary(["low", "UP"]), Vocabulary(["O"])
    one = np.zeros(1, dtype=np.int32)
    columns = {"word": Column(words, one), "pos": Column(pos, one), "label": Column(label, one)}
    train = Corpus(columns, np.array([0, 1]))
    trained = []

    class Tagger:
        digest = "d"

        def tag(self, corpus: Corpus) -> Column:
            return Column(pos, upper_case_tagger(corpus).codes)

    def train_tagger(corpus: Corpus, column: str, templates: object) -> Tagger:
        assert "label" not in corpus.columns
        trained.append(column)
        return Tagger()

    monkeypatch.setattr("sslbench_datasets.reuters.column_tagger.train_tagger", train_tagger)
    for _ in range(2):
        shards = reuters.tagged_text(home, train, "0" * 64)
        (shard,) = shards
        assert set(shard.columns) == {"word", "pos"}
        assert shard.column("word").vocabulary is words
        assert shard.column("pos").vocabulary is pos
        assert shard.sentence(2, "pos")[4] == "UP"
    assert trained == ["pos"]


def test_words_of_the_user_replace_the_stories(tmp_path: Path) -> None:
    home = DataHome(tmp_path, tmp_path / "cache", offline=True)
    mine, words = tmp_path / "mine.txt", Vocabulary(["said"])
    for text, want in (("a\nsaid\n", [["a", "said"]]), ("b\n\nc\n", [["b"], ["c"]])):
        mine.write_text(text)
        (shard,) = reuters.tokenized_text(home, {"word": words}, str(mine))
        assert list(shard.sentences("word")) == want
    mine.write_text("two columns\n")
    with pytest.raises(UserError, match=r"mine\.txt"):
        reuters.tokenized_text(home, {"word": words}, str(mine))


@pytest.mark.corpus
def test_conll2000_has_the_published_counts() -> None:
    home = DataHome(offline=True)
    if home.state(CONLL2000) != "ok":
        pytest.skip(f"no {CONLL2000.path} in the data home {home.root}")
    data = load(home)
    assert data.encoding == "IOB2"
    assert data.splits["train"].n_tokens == COUNTS["train"][1]
    assert len(data.splits["train"].column("pos").vocabulary) == 44
    assert data.external is not None


@pytest.mark.corpus
def test_reuters_yields_prose() -> None:
    home = DataHome(offline=True)
    if any(home.state(file) != "ok" for file in REUTERS):
        pytest.skip(f"Reuters-21578 is not in the data home {home.root}")
    corpus = read_stories([home.path(file) for file in REUTERS])
    assert corpus.n_sentences == 34_465
    assert corpus.n_tokens == 898_429


def test_write_shards_is_what_the_cache_uses(tmp_path: Path) -> None:
    """A cache folder appears whole or not at all, so its existence is enough of a check."""
    words = Vocabulary()
    corpus = Corpus({"word": Column(words, words.encode(["a"]))}, np.array([0, 1]))

    def failing(_: Corpus) -> Column:
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        write_shards(tmp_path / "out", TaggedShards(CorpusShards(corpus), failing))
    assert list(tmp_path.iterdir()) == []
