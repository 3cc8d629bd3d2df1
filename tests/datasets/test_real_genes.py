"""The real files of gene mentions: their counts, their gold, the texts they share."""

from __future__ import annotations

from collections import Counter

import pytest

from sslbench.engine.corpus import Corpus
from sslbench_datasets.genes import load as genes
from sslbench_datasets.genes.genetag import read_tagged
from sslbench_datasets.genes.info import BC2GM, GENETAG
from support.chunks import spans_of
from support.gene_files import gold_names, sentences
from support.real_files import real_home

# --- the real files -----------------------------------------------------------------------------


@pytest.mark.corpus
def test_real_bc2gm() -> None:
    data = genes.load_bc2gm(real_home(BC2GM.values()))
    for split, corpus in data.splits.items():
        labels = sentences(corpus)
        n_spans = sum(len(spans_of(tags, "IOB2")) for tags in labels)
        assert n_spans == genes.BC2GM_COUNTS[split][2]  # no I- without its B-
    assert data.splits["train"].column("label").vocabulary.strings == ["O", "B-GENE", "I-GENE"]
    first = " ".join(data.splits["train"].sentence(0, "word"))
    assert first.startswith("Immunohistochemical staining was positive for")


@pytest.mark.corpus
def test_real_genetag() -> None:
    data = genes.load_genetag(real_home(GENETAG.values()))
    train, _, test = data.splits.values()
    assert train.sentence(0, "word")[:3] == ["Cervicovaginal", "foetal", "fibronectin"]
    assert train.sentence(0, "label")[:4] == ["O", "B-GENE", "I-GENE", "O"]
    assert test.sentence(519, "word")[-2:] == ["groups", "."]  # the one item without a tag
    assert train.column("label").vocabulary.strings == ["O", "B-GENE", "I-GENE"]


@pytest.mark.corpus
def test_real_texts_of_the_two_corpora_are_the_same() -> None:
    """By their letters and digits, 14,866 of 15,093 sentences of bc2gm are also in GENETAG."""
    ours = genes.load_bc2gm(real_home(BC2GM.values())).splits
    theirs = genes.load_genetag(real_home(GENETAG.values())).splits
    known = {text for corpus in theirs.values() for text in letters(corpus)}
    texts = letters(ours["train"]) + letters(ours["dev"])
    assert (len(texts), sum(text in known for text in texts)) == (15_093, 14_866)
    assert sum(text in known for text in letters(ours["test"])) == 60


def letters(corpus: Corpus) -> list[str]:
    """The text of each sentence without what tokenizers and cases change."""
    texts = ("".join(words).lower() for words in sentences(corpus, "word"))
    return ["".join(filter(str.isalnum, text)) for text in texts]


# Names in the text, in Gold.format, in both; then how those that are in one alone come about.
GOLD = {
    "train": (8_881, 8_935, 8_826, {"joined": 49, "other borders": 6, "not tagged": 3}),
    "dev": (2_986, 2_987, 2_985, {"joined": 1}),
    "test": (5_949, 5_949, 5_949, {}),
}


@pytest.mark.corpus
@pytest.mark.parametrize("split", GOLD)
def test_real_names_agree_with_gold_but_for_those_joined_in_the_text(split: str) -> None:
    path = real_home(GENETAG.values()).locate(GENETAG[split])
    gold_path = path.with_name("Gold.format")
    if not gold_path.is_file():
        pytest.skip(f"no {gold_path}")
    gold = gold_names(gold_path)
    corpus = read_tagged(path, {})
    names = [line.split()[0] for line in path.read_text(encoding="ascii").splitlines()]
    n_text, n_both, why = 0, 0, Counter[str]()
    for name, labels in zip(names, sentences(corpus), strict=True):
        text = {(start, end - 1) for start, end, _ in spans_of(labels, "IOB2")}
        listed = gold.pop(name, set())
        n_text += len(text)
        n_both += len(text & listed)
        others = listed - text
        for first, last in text - listed:
            inside = {(a, b) for a, b in others if a <= last and b >= first}
            assert inside
            why["joined" if len(inside) > 1 else "other borders"] += 1
            others -= inside
        why["not tagged"] += len(others)
    assert not gold
    n_gold = len(gold_path.read_text(encoding="ascii").splitlines())
    assert (n_text, n_gold, n_both, dict(+why)) == GOLD[split]
