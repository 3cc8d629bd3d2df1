"""CoNLL-U files and the ten part-of-speech corpora made of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.corpus import Corpus, RawBytes, Vocabulary, read_conllu
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.inputs.protocol import unlabeled_text
from sslbench.experiment.records.record import ProtocolSpec
from sslbench_datasets.ud import load as ud
from sslbench_datasets.ud.info import DATASETS, TREEBANKS, Treebank
from sslbench_datasets.upstream import Upstream

Sentence = list[tuple[str, str]]


def row(number: object, form: str = "w", upos: str = "X") -> str:
    return "\t".join([str(number), form, "lemma", upos, *"______"])


def text_of(sentences: Iterable[Sentence]) -> str:
    """A file as upstream writes it: a comment first, a blank line behind each sentence."""
    lines = []
    for sentence in sentences:
        lines += ["# text = t", *(row(i, *word) for i, word in enumerate(sentence, 1)), ""]
    return "\n".join([*lines, ""])


def read(text: str | bytes, **options: object) -> Corpus:
    data = text.encode() if isinstance(text, str) else text
    return read_conllu(RawBytes("f.conllu", data), **options)  # type: ignore[arg-type]


def sentences_of(corpus: Corpus, tag: str = "upos") -> list[Sentence]:
    columns = [
        (corpus.sentence(i, "word"), corpus.sentence(i, tag)) for i in range(len(corpus.lengths))
    ]
    return [list(zip(*columns_of, strict=True)) for columns_of in columns]


RICH = "\n".join(
    [
        "# newpar",
        "# text = Vamonos t ex #1",
        row("0.1", "ghost", "_"),
        row("1-2", "Vámonos", "_"),
        row(1, "Vamos", "VERB"),
        row("1.1", "ghost", "VERB"),
        row("1.2", "ghost", "_"),
        row(2, "nos", "PRON"),
        row(3, "t ex", "ADV"),
        row(4, "#", "SYM"),
        "",
        "# a comment between",
        row(1, "_", "PUNCT"),
        "",
        "",
    ]
)
WORDS = [
    [("Vamos", "VERB"), ("nos", "PRON"), ("t ex", "ADV"), ("#", "SYM")],
    [("_", "PUNCT")],
]


@pytest.mark.parametrize(
    "text",
    [
        RICH,
        RICH.rstrip("\n"),
        RICH.replace("\n", "\r\n"),
        "\ufeff" + RICH,
        "\n\n" + RICH.replace("\n\n", "\n\n\n") + "\n\n",
        RICH.replace("\n\n", "\n\n# alone\n\n"),
    ],
    ids=["plain", "unended", "crlf", "bom", "blanks", "comments"],
)
def test_words_without_ranges_and_empty_nodes(text: str) -> None:
    assert sentences_of(read(text)) == WORDS


def bad(*rows: str) -> str:
    """A good sentence (lines 1 to 3), then these rows from line 4 on."""
    return "\n".join(["# c", row(1), "", *rows, ""])


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (bad(row(1), row(2).removesuffix("\t_")), 5, "9 columns"),
        (bad(row(1) + "\t_"), 4, "11 columns"),
        (bad(row(1), " "), 5, "1 column where"),
        (bad(row(1).replace("\t", " ")), 4, "1 column where"),
        (bad(row(1), row(2, form="")), 5, "FORM is empty"),
        (bad(row(1)[:-1]), 4, "MISC is empty"),
        (bad(row("")), 4, "ID is empty"),
        (bad(row(2)), 4, "ID 2 is malformed or out of sequence"),
        (bad(row(1), row(3)), 5, "ID 3 is"),
        (bad(row(1), row(1)), 5, "ID 1 is"),
        (bad(row("1a")), 4, "ID 1a is"),
        (bad(row("-1")), 4, "ID -1 is"),
        (bad(row("\u0661")), 4, "ID \u0661 is"),
        (bad(row("01")), 4, "ID 01 is"),
        (bad(row("9" * 30)), 4, "ID 9999"),
        (bad(row(1), row("1-2"), row(2)), 5, "ID 1-2 is"),
        (bad(row("2-1"), row(1), row(2)), 4, "ID 2-1 is"),
        (bad(row(1), row("2.1"), row(2)), 5, "ID 2.1 is"),
        (bad(row("1.1"), row(1)), 4, "ID 1.1 is"),
        (bad(row("0.1"), "", row(1)), 4, "a sentence without a word"),
        (bad(row(1), "", row("1-2")), 6, "a sentence without a word"),
        (bad(row("1-2", upos="_"), row(1, upos="_")), 5, "a word without UPOS"),
        (bad(row(1), row(2, upos="CONJ")), 5, "unknown UPOS 'CONJ'"),
        (bad(row(1), row(2, form="\udcff")), 5, "byte 0xff is not utf-8"),
    ],
)
def test_a_bad_row_is_named(text: str, line: int, message: str) -> None:
    with pytest.raises(UserError) as caught:
        read(text.encode(errors="surrogateescape"), tags=("X", "NOUN"))
    assert (caught.value.file, caught.value.line) == ("f.conllu", line)
    assert message in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n# comments\n"])
def test_a_file_without_words_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"f\.conllu: no word"):
        read(text)


def test_tags_are_not_checked_unless_they_are_given() -> None:
    assert sentences_of(read(bad(row(1, upos="zz"))))[1] == [("w", "zz")]


field = st.text(
    st.characters(exclude_characters="\t\n\r", exclude_categories=("Cs",)), min_size=1, max_size=4
)
tag = st.sampled_from(sorted(ud.TAG_OF))


@given(st.lists(st.lists(st.tuples(field, tag), min_size=1, max_size=4), min_size=1, max_size=5))
def test_what_was_written_is_read(sentences: list[Sentence]) -> None:
    corpus = read(text_of(sentences), tags=ud.TAG_OF)
    assert sentences_of(corpus) == sentences
    assert corpus.offsets.tolist() == [0, *np.cumsum([len(s) for s in sentences])]


def test_files_share_vocabularies() -> None:
    vocabularies: dict[str, Vocabulary] = {}
    first = read(text_of([[("a", "X")]]), vocabularies=vocabularies)
    second = read(text_of([[("b", "X"), ("a", "NOUN")]]), vocabularies=vocabularies)
    assert second.column("word").codes.tolist() == [1, 0]
    for name in ("word", "upos"):
        assert first.column(name).vocabulary is second.column(name).vocabulary


def test_seventeen_tags_become_twelve() -> None:
    expected = dict(
        pair.split("=")
        for pair in (
            *("ADJ=ADJ", "ADP=ADP", "ADV=ADV", "AUX=VERB", "CCONJ=CONJ", "DET=DET", "INTJ=X"),
            *("NOUN=NOUN", "NUM=NUM", "PART=PRT", "PRON=PRON", "PROPN=NOUN", "PUNCT=."),
            *("SCONJ=CONJ", "SYM=X", "VERB=VERB", "X=X"),
        )
    )
    assert len(set(ud.UNIVERSAL_TAGS)) == 12
    corpus = read(text_of([[("w", name) for name in expected]]), tags=ud.TAG_OF)
    labels = Vocabulary(ud.UNIVERSAL_TAGS)
    actual = ud.with_universal_tags(corpus, labels)
    assert actual.sentence(0, "label") == list(expected.values())
    assert actual.column("label").vocabulary is labels
    assert set(actual.columns) == {"word", "label"}


def little_treebank(root: Path, monkeypatch: pytest.MonkeyPatch, **sizes: int) -> Treebank:
    """A treebank of one-word sentences, registered as Danish; word = split and number."""
    files, counts = {}, {}
    for split, size in sizes.items():
        data = text_of([[(f"{split}{i}", "AUX")] for i in range(size)]).encode()
        path = root / "UD_Danish-DDT" / f"da_ddt-ud-{split}.conllu"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        files[split] = Upstream(path.parent.name, "", "").file(path.name, len(data), digest)
        counts[split] = (size, size)
    bank = Treebank("da", "Danish", "DDT", "c0ffee", "CC BY-SA 4.0", files, counts)
    monkeypatch.setattr(
        ud.load, "da", lambda home, **options: ud.load_treebank(bank, home, **options)
    )
    return bank


def load(root: Path, **options: object) -> Dataset:
    data = ud.load.da(DataHome(root, root / "cache", offline=True), **options)
    assert isinstance(data, Dataset)
    return data


def words(corpus: Corpus) -> list[str]:
    return corpus.column("word").strings()


def test_all_but_the_test_file_is_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    little_treebank(tmp_path, monkeypatch, train=2, dev=2, test=1)
    data = load(tmp_path)
    assert (data.name, data.task, data.metric, data.encoding) == (
        "ud_da",
        "tagging",
        "accuracy",
        None,
    )
    assert set(data.splits) == {"train", "test"}
    assert words(data.splits["train"]) == ["train0", "train1", "dev0", "dev1"]
    assert words(data.splits["test"]) == ["test0"]
    assert data.splits["test"].sentence(0, "label") == ["VERB"]
    for name in ("word", "label"):
        vocabularies = {id(corpus.column(name).vocabulary) for corpus in data.splits.values()}
        assert len(vocabularies) == 1
    assert data.external is None


def test_draws_are_disjoint_and_the_rest_is_test_and_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    little_treebank(tmp_path, monkeypatch, dev=600, test=450)
    seen: set[str] = set()
    numbers: dict[int, str] = {}
    for seed in range(10):
        data = load(tmp_path, seed=seed, draws=True)
        train, test = words(data.splits["train"]), words(data.splits["test"])
        assert len(train) == 100
        assert not seen & set(train)
        seen |= set(train)
        for split, actual in (("train", train), ("test", test)):
            for number, word in zip(data.sentence_ids[split].tolist(), actual, strict=True):
                assert numbers.setdefault(number, word) == word
        assert len(set(train) | set(test)) == len(train) + len(test) == 1050
        (shard,) = unlabeled_text(data, ProtocolSpec(labeled="all", text="external"))
        assert words(shard) == test
        assert set(shard.columns) == {"word"}
        assert data.transductive
    assert len(set(numbers.values())) == len(numbers) == 1050
    assert not load(tmp_path).transductive
    small = load(tmp_path, seed=2, draws=True, size=50).splits
    assert [part.n_sentences for part in small.values()] == [50, 1000]
    second = load(tmp_path, seed=1, draws=True)
    assert set(words(small["train"])) < set(words(second.splits["train"]))
    with pytest.raises(UserError, match="1050"):
        load(tmp_path, seed=2, draws=True, size=350)
    # Random sets come from all files.
    assert 300 < sum(word.startswith("dev") for word in seen) < 700
    assert words(load(tmp_path, seed=9, draws=True).splits["train"]) == train


def test_punctuation_may_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    little_treebank(tmp_path, monkeypatch, dev=1, test=1)
    assert load(tmp_path).label_constraint is None
    assert load(tmp_path, punct_constraint=True).label_constraint == ud.PUNCTUATION


@pytest.mark.parametrize("options", [{"draws": True, "seed": 10}, {"draws": 1}, {"draw": 1}])
def test_bad_options_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, int]
) -> None:
    little_treebank(tmp_path, monkeypatch, dev=1, test=1)
    with pytest.raises(UserError, match=r"ud_da.*draw"):
        load(tmp_path, **options)


def test_other_counts_than_upstreams_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = little_treebank(tmp_path, monkeypatch, dev=1, test=2)
    bank.counts["test"] = (2, 3)
    with pytest.raises(UserError, match=r"da_ddt-ud-test.* 2 tokens; expected .* 3 tokens"):
        load(tmp_path)


def test_registrations_load_and_differ() -> None:
    codes = ("da", "de", "el", "en", "es", "it", "nl", "pt", "sl", "sv")
    assert [info.name for info in DATASETS] == [f"ud_{code}" for code in codes]
    files = [file for info in DATASETS for file in info.files]
    assert (
        len(files)
        == len({file.sha256 for file in files})
        == len({file.path for file in files})
        == 21
    )
    for info in DATASETS:
        assert callable(info.load())
        assert [file.path.split("-")[-1] for file in info.files][-1] == "test.conllu"
    assert {info.name for info in DATASETS if "NC" in info.licence} == {"ud_el", "ud_it"}


def naive(path: Path) -> list[Sentence]:
    """Another reading of a well-formed file: line by line, with nothing in common."""
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    rows = [[line.split("\t") for line in block.split("\n") if line[0] != "#"] for block in blocks]
    return [[(row[1], row[3]) for row in block if row[0].isdigit()] for block in rows]


@pytest.mark.corpus
@pytest.mark.parametrize("bank", TREEBANKS, ids=lambda bank: bank.code)
def test_real_treebanks(bank: Treebank) -> None:
    home = DataHome(offline=True)
    if any(home.state(file) != "ok" for file in bank.files.values()):
        pytest.skip(f"UD_{bank.language}-{bank.name} is not in the data home {home.root}")
    data = getattr(ud.load, bank.code)(home)
    expected = {split: naive(home.path(file)) for split, file in bank.files.items()}
    test = expected.pop("test")
    train = [sentence for split in expected.values() for sentence in split]
    for split, rows in (("train", train), ("test", test)):
        mapped = [[(word, ud.TAG_OF[name]) for word, name in sentence] for sentence in rows]
        assert sentences_of(data.splits[split], "label") == mapped
    n_sentences = sum(sentences for sentences, _ in bank.counts.values())
    assert n_sentences >= ud.N_DRAWS * ud.DRAW_SENTENCES
