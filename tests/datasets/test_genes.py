"""Gene mentions: the reader of GENETAG, the cut of Jiao et al., the real files and their gold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench import registry
from sslbench.engine.corpus import Column, Corpus, RawBytes, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.genes import load as genes
from sslbench_datasets.genes.genetag import read_tagged
from sslbench_datasets.genes.info import ALTERNATIVES, BC2GM, DATASETS, GENETAG
from sslbench_datasets.genes.load import JIAO_WORDS, jiao_sets
from support.chunks import spans_of
from support.gene_files import ANSWERS, TAGGED, sentences, tagged
from support.placed_files import place
from support.real_files import real_home

TAGGED_WORDS = [
    ["the", "a/b", "p53", "gene", "HOX", "A1", "/", "-", "GATA"],
    ["Myc", "is", "/", "Fos", "."],
]
TAGGED_LABELS = [
    ["O", "O", "B-GENE", "I-GENE", "B-GENE", "B-GENE", "I-GENE", "O", "B-GENE"],
    ["B-GENE", "O", "O", "B-GENE", "O"],
]
IOB = "RNA\tO\nof\tO\np53\tB-GENE\ngene\tI-GENE\n\nMyc\tB-GENE\n"


def n_mentions(corpus: Corpus) -> int:
    return sum(label == "B-GENE" for label in corpus.column("label").strings())


# --- the reader ---------------------------------------------------------------------------------


def test_touching_names_are_told_apart_and_the_last_slash_separates() -> None:
    corpus = tagged(TAGGED)
    assert list(corpus.columns) == ["word", "label"]  # a tag of speech would tell where names are
    assert sentences(corpus, "word") == TAGGED_WORDS
    assert sentences(corpus) == TAGGED_LABELS


def test_line_ends_and_vocabularies() -> None:
    vocabularies: dict[str, Vocabulary] = {}
    first = read_tagged(RawBytes("a", TAGGED.encode()), vocabularies)
    crlf = TAGGED.replace("\n", "\r\n").rstrip().encode()
    second = read_tagged(RawBytes("b", crlf), vocabularies)
    for name in ("word", "label"):
        assert sentences(first, name) == sentences(second, name)
        assert first.column(name).vocabulary is second.column(name).vocabulary


@given(st.lists(st.lists(st.sampled_from([0, 1, 2]), min_size=1, max_size=8), min_size=1))
def test_names_are_the_runs_of_equal_name_tags(kinds: list[list[int]]) -> None:
    tags = ("NN", "NEWGENE", "NEWGENE1")
    lines = [
        f"@@{number} " + " ".join(f"w/{tags[kind]}" for kind in line)
        for number, line in enumerate(kinds)
    ]
    corpus = tagged("\n".join(lines))
    for line, labels in zip(kinds, sentences(corpus), strict=True):
        expected, start = [], 0
        for at in range(1, len(line) + 1):
            if at == len(line) or line[at] != line[start]:
                expected += [(start, at)] if line[start] else []
                start = at
        assert [(start, end) for start, end, _ in spans_of(labels, "IOB2")] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@@1 a/NN\nb/NN c/NN\n", r"^corpus\.txt:2: 'b/NN' is not a sentence name; each line"),
        ("@@1 a/NN\n@@x b/NN\n", r"^corpus\.txt:2: '@@x' is not a sentence name"),
        ("@@1 a/NN\n\n@@1 b/NN\n", r"^corpus\.txt:3: sentence @@1 is also in line 1"),
        ("@@1 a/NN\n@@2\n", r"^corpus\.txt:2: sentence @@2 has no word"),
        ("@@1 a/NN b\n", r"^corpus\.txt:1: 'b' is not word/TAG"),
        ("@@1 a/NN\n@@2 /NN\n", r"^corpus\.txt:2: '/NN' is not word/TAG"),
        ("@@1 a/NN\n@@2 b/NEWGENE2\n", r"^corpus\.txt:2: unknown tag 'NEWGENE2'; .*NEWGENE1"),
        ("@@1 a/newgene\n", r"^corpus\.txt:1: unknown tag 'newgene'"),
        ("@@1 a/NN\n@@2 caf\u00e9/NN\n", r"^corpus\.txt:2: byte 0xc3 is not ascii"),
        ("\n\n", r"^corpus\.txt: no sentence in the file"),
    ],
)
def test_a_bad_line_is_named(text: str, expected: str) -> None:
    with pytest.raises(UserError) as caught:
        tagged(text)
    assert caught.match(expected)


# --- loading small files ------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataHome:
    """A data home with small files and counts to match."""
    monkeypatch.setattr(genes, "BC2GM", place(tmp_path, BC2GM, IOB))
    monkeypatch.setattr(genes, "GENETAG", place(tmp_path, GENETAG, TAGGED))
    monkeypatch.setattr(genes, "ALTERNATIVES", place(tmp_path, ALTERNATIVES, ANSWERS))
    monkeypatch.setattr(genes, "ALTERNATIVES_COUNTS", dict.fromkeys(ALTERNATIVES, (4,)))
    monkeypatch.setattr(genes, "BC2GM_COUNTS", dict.fromkeys(BC2GM, (2, 5, 2)))
    monkeypatch.setattr(genes, "GENETAG_COUNTS", dict.fromkeys(GENETAG, (2, 14, 6)))
    return DataHome(tmp_path, tmp_path / "cache", offline=True)


def test_small_files_are_read_into_splits_with_shared_vocabularies(small: DataHome) -> None:
    bc2gm, genetag = genes.load_bc2gm(small), genes.load_genetag(small)
    assert sentences(bc2gm.splits["dev"]) == [["O", "O", "B-GENE", "I-GENE"], ["B-GENE"]]
    assert sentences(genetag.splits["dev"]) == TAGGED_LABELS
    for data, metric in ((bc2gm, "f1"), (genetag, "alt_f1")):
        assert (data.task, data.metric, data.encoding) == ("spans", metric, "IOB2")
        assert list(data.splits) == ["train", "dev", "test"]
        assert data.external is None
        train = data.splits["train"]
        for corpus in data.splits.values():
            assert list(corpus.columns) == ["word", "label"]
            for name, column in corpus.columns.items():
                assert column.vocabulary is train.column(name).vocabulary


def test_genetag_has_its_alternative_answers(
    small: DataHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = genes.load_genetag(small)
    for split in data.splits:
        actual = data.alternatives[split]
        assert (actual.first.tolist(), actual.last.tolist()) == ([2, 2, 9, 12], [2, 5, 10, 13])
        assert f"sha256_alternatives_{split}" in data.metadata
    assert not genes.load_bc2gm(small).alternatives
    monkeypatch.setitem(genes.ALTERNATIVES_COUNTS, "dev", (5,))
    with pytest.raises(UserError, match="dev has 4 alternative answers; expected 5") as caught:
        genes.load_genetag(small)
    assert caught.value.file == str(small.locate(ALTERNATIVES["dev"]))


@pytest.mark.parametrize("name", ["bc2gm", "genetag"])
@pytest.mark.parametrize("split", ["train", "dev", "test"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_wrong_counts_are_refused(
    small: DataHome, monkeypatch: pytest.MonkeyPatch, name: str, split: str, which: int
) -> None:
    table = f"{name.upper()}_COUNTS"
    numbers = list(getattr(genes, table)[split])
    numbers[which] += 1
    monkeypatch.setitem(getattr(genes, table), split, tuple(numbers))
    with pytest.raises(UserError, match=rf"{split} has .* expected") as caught:
        getattr(genes, f"load_{name}")(small)
    assert caught.value.file == str(small.locate(getattr(genes, name.upper())[split]))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("of\tO", "of O", r"train\.tsv:2: "),
        ("I-GENE", "S-GENE", r"train\.tsv:4: .*'S-GENE'"),
    ],
)
def test_a_bad_line_of_bc2gm_is_named(
    small: DataHome, monkeypatch: pytest.MonkeyPatch, old: str, new: str, expected: str
) -> None:
    monkeypatch.setattr(genes, "BC2GM", place(small.root, BC2GM, IOB.replace(old, new)))
    with pytest.raises(UserError) as caught:
        genes.load_bc2gm(small)
    assert caught.match(expected)


# --- the cut of Jiao et al. ---------------------------------------------------------------------

LOADERS = {"genetag": genes.load_genetag_jiao, "bc2gm": genes.load_bc2gm_jiao}
CUTS = pytest.mark.parametrize("corpus", LOADERS)


def random_corpus(n_tokens: int) -> Corpus:
    lengths = np.random.default_rng(3).integers(2, 60, size=n_tokens // 20)
    ends = np.cumsum(lengths)
    offsets = np.concatenate([[0], ends[ends < n_tokens], [n_tokens]])
    codes = np.zeros(n_tokens, dtype=np.int32)
    return Corpus({"word": Column(Vocabulary(["w"]), codes)}, offsets)


def test_sets_are_disjoint_and_have_the_words_of_the_paper() -> None:
    assert sum(JIAO_WORDS.values()) == 184_903  # as the paper says of the whole corpus
    corpus = random_corpus(196_620)
    sets = jiao_sets(corpus, 0)
    assert list(sets) == list(JIAO_WORDS)
    numbers = np.concatenate(list(sets.values()))
    assert len(np.unique(numbers)) == len(numbers) < corpus.n_sentences
    for name, part in sets.items():
        assert (np.diff(part) > 0).all()
        # Each border is off by at most half a sentence of 59 words.
        assert abs(corpus.select(part).n_tokens - JIAO_WORDS[name]) < 60
    assert np.ptp(sets["A"]) > corpus.n_sentences / 2  # drawn at random, not cut off in front


def test_sets_depend_on_the_seed_alone() -> None:
    corpus = random_corpus(190_000)
    first, again, other = (jiao_sets(corpus, seed) for seed in (4, 4, 5))
    for name in JIAO_WORDS:
        assert np.array_equal(first[name], again[name])
        assert not np.array_equal(first[name], other[name])


def test_too_small_a_corpus_is_refused() -> None:
    assert len(jiao_sets(random_corpus(184_903), 0)["E"])
    with pytest.raises(ValueError, match="184902 words are not enough"):
        jiao_sets(random_corpus(184_902), 0)


def many_sentences() -> str:
    return "".join(f"@@{i} w{i}/NN g{i}/NEWGENE\n" for i in range(20))


@pytest.fixture
def small_jiao(small: DataHome, monkeypatch: pytest.MonkeyPatch) -> DataHome:
    """20 sentences of 2 words, of which 2, 1, 2, 4 and 9 belong to A to E; in both corpora."""
    columns = "".join(f"w{i}\tO\ng{i}\tB-GENE\n\n" for i in range(20))
    monkeypatch.setattr(genes, "GENETAG", place(small.root, GENETAG, many_sentences()))
    monkeypatch.setattr(genes, "GENETAG_COUNTS", {"train": (20, 40, 20)})
    monkeypatch.setattr(genes, "BC2GM", place(small.root, BC2GM, columns))
    monkeypatch.setattr(genes, "BC2GM_COUNTS", {"train": (20, 40, 20)})
    sizes = dict(zip("ABCDE", (4, 2, 4, 8, 18), strict=True))
    monkeypatch.setattr(genes, "JIAO_WORDS", sizes)
    return small


def external_words(data: Dataset) -> list[str]:
    assert data.external is not None
    shards = list(data.external())
    assert all(list(shard.columns) == ["word"] for shard in shards)
    return [word for shard in shards for word in shard.column("word").strings()]


@CUTS
@pytest.mark.parametrize(("name", "n_words"), [("B", 2), ("C", 4), ("D", 8)])
def test_jiao_external_text_is_the_set_asked_for(
    small_jiao: DataHome, corpus: str, name: str, n_words: int
) -> None:
    data = LOADERS[corpus](small_jiao, unlabeled=name, seed=1)
    assert (data.name, data.metric) == (f"{corpus}_jiao", "f1")
    train, test = (set(data.splits[split].column("word").strings()) for split in ("train", "test"))
    text = external_words(data)
    assert (len(train), len(text), len(test)) == (4, n_words, 18)
    assert not train & set(text)
    assert not train & test
    assert not test & set(text)
    assert [data.metadata[f"{part}_words"] for part in "ABCDE"] == [4, 2, 4, 8, 18]
    for split, numbers in data.sentence_ids.items():  # sentence i is "wi gi"
        words = data.splits[split].column("word").strings()
        assert words[::2] == [f"w{number}" for number in numbers]
    assert set(data.sentence_ids) == set(data.splits)
    assert data.metadata["E_sentences"] == 9
    own = data.splits["transductive"]
    assert own.column("word").strings() == text
    assert n_mentions(own) == n_words // 2
    assert set(data.splits) == {"train", "test", "transductive"}


@CUTS
@pytest.mark.parametrize("bad", [{"unlabeled": "E"}, {"sets": 2}])
def test_jiao_refuses_bad_options(
    small_jiao: DataHome, corpus: str, bad: dict[str, object]
) -> None:
    name = f"{corpus}_jiao"
    with pytest.raises(UserError, match=rf"dataset {name}: .*; sslbench show {name}"):
        LOADERS[corpus](small_jiao, **bad)


def test_both_corpora_are_cut_alike(small_jiao: DataHome) -> None:
    cuts = [load(small_jiao, unlabeled="D", seed=4) for load in LOADERS.values()]
    for split in ("train", "test", "transductive"):
        words = [cut.splits[split].column("word").strings() for cut in cuts]
        assert words[0] == words[1]
    other = genes.load_genetag_jiao(small_jiao, unlabeled="D", seed=5).splits["test"]
    assert other.column("word").strings() != cuts[0].splits["test"].column("word").strings()


# --- registration -------------------------------------------------------------------------------


def test_the_registration_fits_its_loader() -> None:
    tables = {"bc2gm": genes.BC2GM_COUNTS, "genetag": genes.GENETAG_COUNTS}
    for info in DATASETS:
        assert info.load() is getattr(genes, f"load_{info.name}")
        assert registry().dataset(info.name) is info
        featurizer = registry().featurizer(info.featurizer)
        assert set(featurizer.columns) <= {"word"}
        for numbers in tables.get(info.name, {}).values():
            assert all(f"{number:,}" in info.protocol for number in numbers)
        for file in info.files:
            assert file.urls[0].endswith(file.path.partition("/")[2])
    for info in DATASETS[2:]:
        assert all(f"{n_words:,}" in info.protocol for n_words in JIAO_WORDS.values())
    files = (*BC2GM.values(), *GENETAG.values(), *ALTERNATIVES.values())
    assert len({file.sha256 for file in files}) == 9
    assert [info.metric for info in DATASETS] == ["f1", "alt_f1", "f1", "f1"]


# --- the real files -----------------------------------------------------------------------------


@pytest.mark.corpus
@pytest.mark.parametrize(("corpus", "low"), [("genetag", 0.044), ("bc2gm", 0.041)])
@pytest.mark.parametrize("seed", range(3))
def test_real_sets_are_near_the_words_of_the_paper(corpus: str, low: float, seed: int) -> None:
    home = real_home({"genetag": GENETAG, "bc2gm": BC2GM}[corpus].values())
    data = LOADERS[corpus](home, seed=seed, unlabeled="D")
    for name, n_words in JIAO_WORDS.items():
        assert abs(int(data.metadata[f"{name}_words"]) - n_words) < 60
    assert data.splits["train"].n_tokens == data.metadata["A_words"]
    assert data.splits["test"].n_tokens == data.metadata["E_words"]
    # The paper's corpus has 0.0538 names per word in E: another corpus.
    density = n_mentions(data.splits["test"]) / data.splits["test"].n_tokens
    assert low < density < low + 0.003
