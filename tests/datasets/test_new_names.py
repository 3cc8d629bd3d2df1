"""Biomedical names, Wikipedia, tweets, PICO: counts, sources, damaged files."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sslbench import registry
from sslbench.engine.corpus import RawBytes
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.bond import load as bond
from sslbench_datasets.bond.info import TWITTER, WIKIGOLD, BondCorpus
from sslbench_datasets.genes.info import BC2GM
from sslbench_datasets.mtl.info import CORPORA
from sslbench_datasets.mtl.load import load_collected
from sslbench_datasets.pico import load as pico
from support.chunks import spans_of
from support.placed_files import place, placed
from support.real_files import real_home

COLLECTED = {corpus.name: corpus for corpus in CORPORA}
FIRST = ("bc5cdr", "linnaeus", "anatem", "bionlp13cg")


def real(name: str, **options: object) -> Dataset:
    info = registry().dataset(name)
    dataset: Dataset = info.load()(real_home(info.files), **options)
    return dataset


def mentions(dataset: Dataset, split: str) -> Counter[str]:
    """Mentions by type, by another reading of the labels."""
    labels = dataset.splits[split].sentences("label")
    return Counter(kind for tags in labels for _, _, kind in spans_of(tags, "IOB2"))


# --- the collection of biomedical names -----------------------------------------------------------


def test_the_whole_collection_has_names_and_three_files_each() -> None:
    assert len(COLLECTED) == 30
    assert set(FIRST) <= set(COLLECTED)
    files = [file for corpus in CORPORA for file in corpus.files.values()]
    assert len({file.sha256 for file in (*files, *BC2GM.values())}) == 93
    for corpus in CORPORA:
        info = registry().dataset(corpus.name)
        assert list(corpus.files) == ["train", "dev", "test"]
        assert [Path(file.path).name for file in info.files] == [
            "train.tsv",
            "devel.tsv",
            "test.tsv",
        ]
        for counts in corpus.counts.values():
            assert all(f"{number:,}" in info.protocol for number in counts)
        assert info.family in ("genes", "species", "biomedical concepts")


def test_parts_by_type_have_the_text_and_the_family_of_the_whole() -> None:
    whole = COLLECTED["bc5cdr"]
    parts = [COLLECTED["bc5cdr_chem"], COLLECTED["bc5cdr_disease"]]
    for split, (n_sentences, n_tokens, n_mentions) in whole.counts.items():
        assert all(part.counts[split][:2] == (n_sentences, n_tokens) for part in parts)
        assert sum(part.counts[split][2] for part in parts) == n_mentions
    for part in parts:
        assert (part.source, part.family) == ("BC5CDR", whole.family)
    assert COLLECTED["ncbi_disease"].source == "NCBI-disease"
    assert "CC BY-SA 3.0" in registry().dataset("bionlp13cg_ggp").licence
    assert "3.0" not in registry().dataset("craft_ggp").licence


# Mentions in the papers of the corpora, and by how many the conversion has more (Crichton et al.
# 2017, "Additional file 1"): annotations that a sentence border cuts count twice.
PUBLISHED = {
    # J. Li et al. 2016
    "bc5cdr": ({"Chemical": 5_203 + 5_347 + 5_385, "Disease": 4_182 + 4_244 + 4_424}, 2),
    "linnaeus": ({"Species": 4_259}, 4),  # M. Gerner et al. 2010
    "anatem": ({"Anatomy": 13_701}, 0),  # S. Pyysalo, S. Ananiadou 2014
}


@pytest.mark.corpus
@pytest.mark.parametrize("name", PUBLISHED)
def test_real_mentions_are_the_published_ones(name: str) -> None:
    dataset = real(name)
    total = sum((mentions(dataset, split) for split in dataset.splits), Counter[str]())
    published, more = PUBLISHED[name]
    assert total.keys() == published.keys()
    assert total.total() == sum(published.values()) + more


@pytest.mark.corpus
def test_real_cancer_genetics_has_16_types_in_each_split() -> None:
    """99.07 % of the annotations of the source are in the conversion (Crichton et al. 2017)."""
    dataset = real("bionlp13cg")
    by_type = {split: mentions(dataset, split) for split in dataset.splits}
    assert [len(types) for types in by_type.values()] == [16, 16, 16]
    assert by_type["test"]["Gene_or_gene_product"] == 2_520
    assert [types.total() for types in by_type.values()] == [10_826, 3_616, 6_881]


def test_a_small_collected_corpus_and_a_bad_line(tmp_path: Path) -> None:
    text = "mouse\tB-Species\nliver\tO\n\nof\tO\nE.\tB-Species\ncoli\tI-Species\n"
    home = DataHome(tmp_path, tmp_path / "cache", offline=True)

    def load(text: str, counts: tuple[int, int, int]) -> Dataset:
        files = place(tmp_path, COLLECTED["linnaeus"].files, text)
        small = replace(COLLECTED["linnaeus"], files=files, counts=dict.fromkeys(files, counts))
        return load_collected(small, home)

    dataset = load(text, (2, 5, 2))
    assert dataset.splits["dev"].sentences("label")[1] == ["O", "B-Species", "I-Species"]
    assert not dataset.external
    with pytest.raises(UserError, match=r"train\.tsv: train has .* 2 mentions; expected .* 3 men"):
        load(text, (2, 5, 3))
    with pytest.raises(UserError, match=r"train\.tsv:2: "):
        load(text.replace("liver\tO", "liver O"), (2, 5, 2))
    with pytest.raises(UserError, match=r"train\.tsv:6: .*'S-Species'"):
        load(text.replace("I-Species", "S-Species"), (2, 5, 2))


# --- Wikipedia and tweets -------------------------------------------------------------------------

TAGS = {"O": 0, "B-PER": 1, "I-PER": 2}
# The second sentence begins with I-; the third is empty.
ENTRIES: list[dict[str, Any]] = [
    {"str_words": ["Ann", "Lee", "ran"], "tags": [1, 2, 0], "chars": [[1]]},
    {"str_words": ["Bob"], "tags": [2]},
    {"str_words": [], "tags": []},
]


def small(tmp_path: Path, corpus: BondCorpus) -> BondCorpus:
    """The corpus with small files; the text is the gold's."""
    data = json.dumps(ENTRIES).encode()
    return replace(
        corpus,
        tags=placed(tmp_path, corpus.tags, json.dumps(TAGS).encode()),
        text=placed(tmp_path, corpus.text, data),
        gold={split: placed(tmp_path, file, data) for split, file in corpus.gold.items()},
        counts=dict.fromkeys(corpus.gold, (2, 4, 2)),
        text_counts=(2, 4),
    )


def test_gold_is_read_and_train_gives_words_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bond, "WIKIGOLD", small(tmp_path, WIKIGOLD))
    dataset = bond.load_wikigold(DataHome(tmp_path, tmp_path / "cache", offline=True))
    assert list(dataset.splits) == ["train", "test"]
    for corpus in dataset.splits.values():
        assert corpus.sentences("label") == [["B-PER", "I-PER", "O"], ["B-PER"]]
        for name, column in corpus.columns.items():
            assert column.vocabulary is dataset.splits["train"].column(name).vocabulary
    assert dataset.joined
    assert dataset.external is not None
    (text,) = dataset.external()
    assert list(text.columns) == ["word"]
    assert text.sentences("word") == [["Ann", "Lee", "ran"], ["Bob"]]


def test_other_counts_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = small(tmp_path, TWITTER)
    home = DataHome(tmp_path, tmp_path / "cache", offline=True)
    more = dict.fromkeys(corpus.gold, (2, 4, 3))
    monkeypatch.setattr(bond, "TWITTER", replace(corpus, counts=more))
    with pytest.raises(UserError, match=r"dev\.json: train has .* 2 mentions; expected"):
        bond.load_twitter(home)
    monkeypatch.setattr(bond, "TWITTER", replace(corpus, text_counts=(2, 5)))
    external = bond.load_twitter(home).external
    assert external is not None
    with pytest.raises(UserError, match=r"train\.json: text has .* 4 tokens; expected"):
        external()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            '[{"str_words": ["a"], "tags": [0]},\n {"str_words": ["b"], "tags": [0, 1]}]',
            "sentence 2",
        ),
        ('[{"str_words": ["a"], "tags": [3]}]', "sentence 1 has the tag 3, not 0 to 2"),
        ('[{"str_words": ["a"], "tags": [-1]}]', "sentence 1 has the tag -1"),
        ('[{"str_words": ["a b"], "tags": [0]}]', "sentence 1 has the word 'a b'"),
        ('[{"str_words": [""], "tags": [0]}]', "sentence 1 has the word ''"),
        ('[{"str_words": ["a"], "tags": ["O"]}]', r"Expected `int`, got `str` - at `\$\[0\]"),
        ('[{"str_words": ["a"]}]', "missing required field `tags`"),
        ('[{"str_words": ["a"], "tags": [0]}', "not the JSON of BOND"),
        ("[" * 100_000, "not the JSON of BOND"),
        ("[]", "no sentence in the file"),
    ],
)
def test_a_bad_sentence_is_named(data: str, message: str) -> None:
    with pytest.raises(UserError, match=rf"^x\.json: .*{message}"):
        bond.read_entries(RawBytes("x.json", data.encode()), 3)


@pytest.mark.parametrize("data", ["{}", '{"O": 1}', '{"O": 0, "B-X": 0}', '{"O": 0, "X": 1}', "[]"])
def test_a_bad_list_of_tags_is_refused(data: str) -> None:
    with pytest.raises(UserError, match=r"^x\.json: "):
        bond.read_tags(RawBytes("x.json", data.encode()))


@pytest.mark.corpus
def test_real_wikigold_has_the_published_size() -> None:
    """1,696 sentences, 39,007 tokens (D. Balasuriya et al. 2009)."""
    dataset = real("wikigold")
    assert dataset.external is not None
    parts = [*dataset.splits.values(), dataset.external()]
    assert sum(part.n_sentences for part in parts) == 1_696
    assert sum(part.n_tokens for part in parts) == 39_007
    assert mentions(dataset, "test") == {"LOC": 165, "MISC": 129, "ORG": 179, "PER": 140}


@pytest.mark.corpus
def test_real_tweets_lack_their_last_token() -> None:
    """The shared task has 2,394, 1,000 and 3,850 tweets; its files, 46,469, 16,261, 61,908 tokens.

    One, one and six tweets of one token begin the next tweet in BOND (B. Strauss et al. 2016).
    """
    dataset = real("twitter")
    assert dataset.external is not None
    parts = (dataset.external(), dataset.splits["train"], dataset.splits["test"])
    tweets, tokens = (2_394, 1_000, 3_850), (46_469, 16_261, 61_908)
    for part, n_tweets, n_tokens, n_joined in zip(parts, tweets, tokens, (1, 1, 6), strict=True):
        assert part.n_sentences == n_tweets - n_joined
        assert part.n_tokens == n_tokens - part.n_sentences
    assert len(mentions(dataset, "train")) == 10
    assert mentions(dataset, "test")["person"] == 480
    assert dataset.splits["test"].sentence(0, "word")[:3] == ["New", "Orleans", "Mother"]


@pytest.mark.corpus
def test_real_labels_from_dictionaries_are_weak() -> None:
    dataset = real("wikigold_distant")
    assert dataset.external is not None
    (text,) = dataset.external()
    begins = [label for label in text.column("weak:dictionary").strings() if label[0] == "B"]
    assert len(begins) == 2_282
    assert "label" not in text.columns
    assert set(dataset.splits["train"].column("weak:dictionary").strings()) == {""}
    assert "weak:dictionary" not in dataset.splits["test"].columns


# --- PICO -----------------------------------------------------------------------------------------

EBM = """\
-DOCSTART- (1)

Xylitol NN O I-INT
for NN O O
otitis NN O I-PAR
media NN O I-OUT

Ok NN O O

-DOCSTART- (2)

Pain NN O I-OUT
score NN O I-OUT

-DOCSTART- (3)

None NN O O
"""


def use_small_pico(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> DataHome:
    monkeypatch.setattr(pico, "EBM", placed(tmp_path, pico.EBM, text.encode()))
    monkeypatch.setattr(pico, "N_DOCUMENTS", 3)
    monkeypatch.setattr(pico, "DOCUMENTS", {"train": (0, 0), "dev": (1, 1), "test": (2, 2)})
    counts = {"train": (2, 5, 3), "dev": (1, 2, 1), "test": (1, 1, 0)}
    monkeypatch.setattr(pico, "COUNTS", counts)
    return DataHome(tmp_path, tmp_path / "cache", offline=True)


def test_abstracts_are_not_divided_and_types_become_iob2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = use_small_pico(tmp_path, monkeypatch, EBM)
    splits = pico.load(home).splits
    assert list(splits["train"].columns) == ["word", "label"]
    assert splits["train"].sentences("label") == [["B-INT", "O", "B-PAR", "B-OUT"], ["O"]]
    assert splits["dev"].sentences("label") == [["B-OUT", "I-OUT"]]
    splits = pico.load(home, documents=True).splits
    assert [corpus.sentence(0, "document")[0] for corpus in splits.values()] == ["1", "2", "3"]
    with pytest.raises(UserError, match="dataset ebm_nlp"):
        pico.load(home, folds=3)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("for NN O O", "for NN O", r"dev\.txt:4: "),
        ("I-PAR", "E-PAR", r"dev\.txt:5: .*'E-PAR'"),
        ("-DOCSTART- (2)\n", "", "the file has 2 abstracts; expected 3 abstracts"),
        ("Ok NN O O", "Ok NN O I-INT", "train has .* 4 mentions; expected"),
    ],
)
def test_a_damaged_file_of_pico(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    home = use_small_pico(tmp_path, monkeypatch, EBM.replace(old, new))
    with pytest.raises(UserError, match=message):
        pico.load(home)


@pytest.mark.corpus
def test_real_pico_is_a_fifth_of_the_published_training_data() -> None:
    """960 of the 4,802 abstracts that crowds labeled (B. Nye et al. 2018), with their names."""
    home = real_home([pico.EBM])
    lines = home.locate(pico.EBM).read_text(encoding="ascii").split("\n")
    marks = [line for line in lines if line.startswith("-DOCSTART-")]
    assert len(set(marks)) == len(marks) == 960 == round(4_802 / 5)
    dataset = pico.load(home, documents=True)
    names = [set(part.column("document").strings()) for part in dataset.splits.values()]
    assert [len(part) for part in names] == [640, 160, 160]
    assert len(set.union(*names)) == 960
    total = sum((mentions(dataset, split) for split in dataset.splits), Counter[str]())
    # Runs of a type, counted from the lines.
    before, runs = "O", Counter[str]()
    for line in lines:
        tag = line.split(" ")[3] if line.count(" ") == 3 else "O"
        if tag not in ("O", before):
            runs[tag[2:]] += 1
        before = tag
    assert total == runs == {"OUT": 6_577, "INT": 6_332, "PAR": 3_652}
