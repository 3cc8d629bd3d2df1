"""How far a text is from the training text, by its unknown words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sslbench.engine.corpus.tokens import corpus_of
from sslbench.engine.crf import ChainModel
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.run.saved import SavedTagger
from sslbench.tagging.familiarity import Familiarity
from support.command import sslbench


def tagger(sentences: list[list[str]], templates: list[str], min_count: int = 1) -> SavedTagger:
    corpus = corpus_of(sentences, ["word"])
    codes = np.zeros(corpus.n_tokens, np.int32)
    crf = ChainModel().prepare(
        TemplateFeaturizer(templates), corpus, codes, ["O"], min_count=min_count
    )
    return SavedTagger(crf, None)


def zipf(n: int, shift: int, seed: int) -> list[list[str]]:
    """Sentences of ten words; few words are frequent, many rare."""
    words = np.random.default_rng(seed).zipf(1.3, size=(n, 10)) % 100_000
    return [[f"w{word + shift}" for word in row] for row in words.tolist()]


def test_the_share_is_estimated_from_words_that_occur_once() -> None:
    saved = tagger([["a", "b", "a"], ["c", "a"]], ["word[0]", "word[-1]|word[0]"])
    known = Familiarity.of(saved)
    assert known is not None
    assert known.expected == 2 / 5  # b and c, of five tokens
    known.add(corpus_of([["a", "x"], ["y", "b"]], ["word"]))
    assert (known.tokens, known.unknown) == (4, 2)
    assert known.warning() is None  # too few tokens to judge


def test_the_estimate_holds_for_more_text_of_the_same_kind() -> None:
    saved = tagger(zipf(200, 0, seed=0), ["word[0]"])
    near, far = Familiarity.of(saved), Familiarity.of(saved)
    assert near is not None
    assert far is not None
    near.add(corpus_of(zipf(300, 0, seed=1), ["word"]))
    assert abs(near.unknown / near.tokens - near.expected) < 0.03
    assert near.warning() is None
    far.add(corpus_of(zipf(300, 2000, seed=1), ["word"]))
    warning = far.warning()
    assert warning is not None
    assert f"{far.unknown / far.tokens:.0%} of the words are unknown" in warning


@pytest.mark.parametrize(
    ("templates", "min_count"), [(["word.suffix2[0]"], 1), (["word[0]", "bias"], 2)]
)
def test_no_estimate_without_the_rare_words(templates: list[str], min_count: int) -> None:
    saved = tagger([["a", "b", "a"], ["c", "a"]], templates, min_count)
    assert Familiarity.of(saved) is None


def test_the_command_warns(tmp_path: Path) -> None:
    def write(name: str, sentences: list[list[str]], label: str) -> Path:
        rows = ["".join(f"{word}{label}\n" for word in sentence) for sentence in sentences]
        (tmp_path / name).write_text("\n".join(rows))
        return tmp_path / name

    data, model = write("train.txt", zipf(50, 0, seed=0), " O"), tmp_path / "m"
    given = ["--data", str(data), "--columns", "word,label", "--save", str(model)]
    result = sslbench("train", "--method", "supervised", *given)
    assert result.exit_code == 0, result.output
    for name, shift in (("near", 0), ("far", 500_000)):
        text = write(name, zipf(50, shift, seed=1), "")
        result = sslbench("tag", model, text)
        assert result.exit_code == 0, result.output
        assert ("of the words are unknown to the tagger" in result.stderr) == (name == "far")
