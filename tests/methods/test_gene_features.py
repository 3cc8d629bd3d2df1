"""The gene tagger's features: each predicate on words, the windows, the number of templates."""

from __future__ import annotations

import numpy as np
import pytest

from sslbench import registry
from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainModel, HardLabels, Options, TrainingParams
from sslbench_methods.featurizers.genes import PREDICATES, gene2005, spelling
from support.texts import corpus_of

# Words for which a predicate holds, and words for which it does not.
EXAMPLES = {
    "InitCaps": (["P53", "Ab", "A", "A-", "Hox/"], ["p53", "", "-A", "5A", "Ä"]),
    "InitCapsAlpha": (["Abc", "A"], ["ABc", "A5", "abc", "Ab-", "Äb"]),
    "AllCaps": (["DNA", "A"], ["DnA", "DNA1", "D-A", "ÄB"]),
    "CapsMix": (["mRNA", "abc", "ABC"], ["m-RNA", "p53", "naïve"]),
    "HasDigit": (["p53", "5", "5-", "a5\n"], ["abc", "²", "IV", "٧"]),
    "SingleDigit": (["7"], ["77", "a7", "٧", "-7"]),
    "DoubleDigit": (["77", "00"], ["7", "777", "7a"]),
    "NaturalNumber": (["7", "77", "12345"], ["7.", "-7", "a7", "٧"]),
    "RealNumber": (["1.5", "-1,000.5", "-.5", "1.."], ["1", "1.", ".5", "1.5a", "+1.5"]),
    "AlphaNum": (["p53", "abc", "5"], ["p-53", "5.1", "ß"]),
    "Roman": (["IV", "iv", "I", "d"], ["Iv", "IV1", "ABC", "J"]),
    "HasDash": (["NF-kappa", "-", "-a", "a-"], ["ab", "a–b", "a_b"]),
    "InitDash": (["-a", "-"], ["a-", "a-b", "–a"]),
    "EndDash": (["a-", "-"], ["-a", "a-b"]),
    "Punctuation": ([",", ".", ";", ":", "?", "!", "-", "+", '"', "'"], ["..", "(", "/", "a", ""]),
}


def corpus(*sentences: list[str]) -> Corpus:
    return corpus_of(sentences)


def holding(word: str) -> set[str]:
    """The predicates that are 1 for a sentence of this word, by the columns of `spelling`."""
    row = spelling(corpus([word]))[0]
    assert not row[:15].any()
    assert not row[30:].any()
    return {name for name, value in zip(PREDICATES, row[15:30], strict=True) if value}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_predicate(name: str) -> None:
    yes, no = EXAMPLES[name]
    assert all(name in holding(word) for word in yes)
    assert not any(name in holding(word) for word in no)


def test_all_predicates_of_a_word() -> None:
    assert list(PREDICATES) == list(EXAMPLES)
    assert len(PREDICATES) == 15
    assert holding("p53") == {"HasDigit", "AlphaNum"}
    assert holding("IV") == {"InitCaps", "AllCaps", "CapsMix", "AlphaNum", "Roman"}
    assert holding("-") == {"HasDash", "InitDash", "EndDash", "Punctuation"}
    assert holding("gene") == {"CapsMix", "AlphaNum"}


def test_the_window_stays_inside_the_sentence() -> None:
    """Three words and then two: each row is that of the word before, the word, the one after."""
    words = ["p53", "-", "IV", "7", "Abc"]
    rows = spelling(corpus(words[:3], [], words[3:])).reshape(5, 3, 15)
    here = np.array([spelling(corpus([word]))[0, 15:30] for word in words])
    assert set(np.unique(rows)) == {0.0, 1.0}
    np.testing.assert_array_equal(rows[:, 1], here)
    zero = np.zeros(15)
    np.testing.assert_array_equal(rows[:, 0], [zero, here[0], here[1], zero, here[3]])
    np.testing.assert_array_equal(rows[:, 2], [here[1], here[2], zero, here[4], zero])
    assert spelling(corpus()).shape == (0, 45)


def test_the_templates() -> None:
    """A constant, a word and six affixes at three places, two pairs; and 45 columns."""
    featurizer = gene2005()
    texts = [str(template) for template in featurizer.templates]
    assert len(texts) == 1 + 3 * 7 + 2
    assert not any(template.edge for template in featurizer.templates)
    for k in (-1, 0, 1):
        affixes = [f"word.{kind}{n}[{k}]" for kind in ("prefix", "suffix") for n in (2, 3, 4)]
        assert {f"word[{k}]", *affixes} <= set(texts)
    assert {"word[-1]|word[0]", "word[0]|word[1]", "bias"} <= set(texts)
    attributes = featurizer.index(corpus(["p53", "gene"])).encode(corpus(["gene", "p53", "x"]))
    assert attributes.node.shape == (24, 3)
    assert attributes.dense is not None
    assert attributes.dense.shape == (3, 45)
    assert registry().featurizer("gene2005").load() is gene2005


def test_a_tagger_learns_to_spell() -> None:
    """Only a predicate of the neighboring word separates the unseen words."""
    rng = np.random.default_rng(0)

    def sentences(n: int, letter: str) -> tuple[Corpus, np.ndarray]:
        kinds = rng.integers(0, 2, n).astype(np.int32)
        words = [
            [f"w{letter}{letter}", str(i) if kind else f"{letter}{i}x"]
            for i, kind in enumerate(kinds, 10)
        ]
        return corpus(*words), np.repeat(kinds, 2).astype(np.int32)

    train, codes = sentences(40, "q")
    crf = ChainModel().prepare(gene2005(), train, codes, ["a", "b"])
    crf.train(
        [(crf.encode(train), HardLabels(codes))], TrainingParams(sigma2=10.0), options=Options()
    )
    other, wanted = sentences(30, "z")
    assert (crf.predict(other) == wanted).mean() == 1.0
