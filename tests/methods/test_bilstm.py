"""The BiLSTM as a model: its scores by an oracle, its words, the rules of models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sslbench import Corpus
from sslbench.engine.crf import read_model
from sslbench.testing import MODEL_CHECKS, check_model
from sslbench_methods.neural.bilstm import BiLSTM, BiLSTMModel, BiLSTMParams, Words
from sslbench_methods.neural.pieces import in_rows

pytest.importorskip("jax", reason="jax is not installed")

LABELS = ("X", "Y")


def corpus(sentences: Any) -> Corpus:
    words, labels = ([[token[i] for token in each] for each in sentences] for i in (0, 1))
    return Corpus.from_sentences({"word": words, "label": labels})


TEXT = corpus(
    [
        [("ab", "X"), ("Cd", "Y"), ("abracadabra", "X")],
        [("e", "X")],
        [("AB", "X"), ("x", "Y"), ("bad", "X"), ("cab", "Y")],
    ]
)


def model_of(text: Corpus = TEXT, seed: int = 0, **params: Any) -> BiLSTM:
    made = BiLSTMModel(BiLSTMParams(units=5, **params), seed)
    codes = text.column("label").codes.astype(np.int32)
    model = made.prepare(
        None, text, codes, LABELS, transition_mask=None, label_constraint=None, text=()
    )
    rng = np.random.default_rng(1)
    model.parameters = model.parameters + 0.3 * rng.normal(size=len(model.parameters))
    model.parameters[-6:] = 0.0  # no transitions
    return model


def nodes(model: BiLSTM, text: Corpus) -> Any:
    return np.concatenate([each.node for each in model.potentials(model.encode(text))])


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def oracle(model: BiLSTM, sentence: list[str]) -> Any:
    """float64[n, L]: word by word, gate by gate."""
    w = {name: value.astype(np.float64) for name, value in model.weights().items()}
    words, characters = list(model.known.counts), model.known.characters
    units, inputs = 5, []
    for word in sentence:
        number = 2 + words.index(word.lower()) if word.lower() in words else 1
        shown = word if len(word) <= 16 else word[:8] + word[-8:]
        codes = [2 + characters.index(c) if c in characters else 1 for c in shown]
        codes += [0] * (16 - len(codes))
        vectors = [w["character"][c] for c in codes]
        nothing = np.zeros(25)
        best = np.full(30, -np.inf)
        for i in range(16):
            left = vectors[i - 1] if i else nothing
            right = vectors[i + 1] if i < 15 else nothing
            window = np.concatenate([left, vectors[i], right])
            best = np.maximum(best, np.tanh(window @ w["filter"]))
        inputs.append(np.concatenate([w["word"][number], best]))
    states = []
    for direction in (0, 1):
        hidden, memory, given = np.zeros(units), np.zeros(units), []
        for x in inputs if direction == 0 else inputs[::-1]:
            gates = x @ w["input"][direction] + hidden @ w["state"][direction]
            gates = gates + w["bias"][direction]
            i, f, o, u = (gates[k * units : (k + 1) * units] for k in range(4))
            memory = sigmoid(f) * memory + sigmoid(i) * np.tanh(u)
            hidden = sigmoid(o) * np.tanh(memory)
            given.append(hidden)
        states.append(given if direction == 0 else given[::-1])
    both = np.concatenate([np.array(states[0]), np.array(states[1])], axis=1)
    return both @ w["head.weight"] + w["head.bias"]


def test_scores_are_those_of_the_oracle() -> None:
    model = model_of()
    other = [["never", "ab", "seenseenseenseenseen"], ["e"], ["ab"] * 70, ["cab", "x"] * 20]
    text = Corpus.from_sentences({"word": other})
    expected = np.concatenate([oracle(model, sentence) for sentence in other])
    np.testing.assert_allclose(nodes(model, text), expected, atol=2e-5)


def test_words_and_characters_that_are_known() -> None:
    known = Words.of((TEXT, TEXT), "word")
    assert known.counts["ab"] == 4
    assert list(known.counts) == sorted(known.counts)
    assert known.characters == "ABCabcdrex" or set(known.characters) == set("ABCabcdrex")
    assert "z" not in known.characters
    assert Words.of((corpus([[("q", "X")]]),), "word").characters == ""  # it occurs once


@pytest.mark.parametrize("length", [4, 7, 100])
def test_rows(length: int) -> None:
    rng = np.random.default_rng(length)
    sizes = rng.integers(1, 5, 40)
    row, column, part = in_rows(sizes, length)
    assert len(part) % 4 == 0
    assert part.shape[1] == length
    assert len(set(zip(row.tolist(), column.tolist(), strict=True))) == sizes.sum()
    assert (part >= 0).sum() == sizes.sum()
    number = np.repeat(np.arange(40), sizes)
    np.testing.assert_array_equal(part[row, column], number)
    same = number[1:] == number[:-1]
    assert (row[1:][same] == row[:-1][same]).all()
    assert (column[1:][same] == column[:-1][same] + 1).all()


def test_the_rules_of_models_hold() -> None:
    results = check_model("bilstm", params={"steps": 5, "units": 5})
    statuses = {result.check: result.status for result in results}
    assert statuses.pop("features") == "skipped"
    assert len(statuses) == len(MODEL_CHECKS) - 1
    assert set(statuses.values()) == {"ok"}


def test_noise_hides_rare_words_and_drops_numbers() -> None:
    model = model_of()
    text = model.encode(TEXT)
    batch = text.batches[0]
    plain, same = (model.open(text, batch)[0].node for _ in range(2))
    np.testing.assert_array_equal(plain, same)
    noisy = [model.open(text, batch, np.random.default_rng(seed))[0].node for seed in (0, 0, 1)]
    np.testing.assert_array_equal(noisy[0], noisy[1])
    assert not np.array_equal(noisy[0], noisy[2])
    still = model_of(dropout=0.0)
    drawn = {
        still.open(text, batch, np.random.default_rng(s))[0].node[0].tobytes() for s in range(9)
    }
    assert len(drawn) > 1  # words are hidden


def test_the_seed_gives_the_start() -> None:
    one, same, other = (model_of(seed=seed).parameters for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_a_saved_model_is_restored(tmp_path: Any) -> None:
    model = model_of()
    model.save(tmp_path / "m.model")
    _, arrays, metadata = read_model(tmp_path / "m.model")
    again = BiLSTMModel.restore(arrays, metadata)
    np.testing.assert_array_equal(again.predict_marginals(TEXT), model.predict_marginals(TEXT))
    for harm in ({"labels": ["X"]}, {"counts": {"a": 1}}, {"characters": "abc"}):
        with pytest.raises(ValueError):
            BiLSTMModel.restore(arrays, {**metadata, **harm})
