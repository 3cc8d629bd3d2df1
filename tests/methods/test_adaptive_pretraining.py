"""Masked words: log-probabilities by an oracle, derivatives, what is masked, and the method."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sslbench import Corpus, UserError
from sslbench.engine.crf import HardLabels, MaskedWords, Progress, TrainingParams
from sslbench.engine.types import F32, F64
from sslbench_methods.neural.folder import GUESSER
from sslbench_methods.neural.masked import Guesser, Masked, _Masked
from sslbench_methods.neural.transformer import Transformer, TransformerModel, TransformerParams
from support.command import sslbench
from support.tiny_encoder import WITH_MASK as PIECES
from support.tiny_transformer import CONFIG as PLAIN
from support.tiny_transformer import last_layer, weights_of, write_transformer

for library in ("jax", "safetensors", "tokenizers"):
    pytest.importorskip(library, reason=f"{library} is not installed")

TEXT = [["ab", "Cd", "7", "abc"], ["e"], ["ab", "f", "gh"], ["8"]]
V = len(PIECES)
CONFIG = {**PLAIN, "vocab_size": V}
D = CONFIG["hidden_size"]
PARAMS = TrainingParams(sigma2=100)


def guesser_weights(seed: int = 3) -> dict[str, F32]:
    """Random weights of what guesses, by the names of BERT's files."""
    rng, sizes = np.random.default_rng(seed), {"D": D, "V": V}
    return {
        f"cls.predictions.{name}": rng.normal(size=[sizes[a] for a in axes]).astype(np.float32)
        for axes, name, _ in GUESSER.values()
    }


@pytest.fixture(scope="module", params=["without", "with"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder without and with weights of what guesses."""
    more = guesser_weights() if request.param == "with" else {}
    path = tmp_path_factory.mktemp("models") / request.param
    return write_transformer(path, weights={**weights_of(CONFIG), **more}, vocab_size=V)


def model_of(folder: Path, **params: Any) -> tuple[Transformer, Any]:
    made = TransformerModel(TransformerParams(folder=str(folder), dropout=0.0, **params), 0)
    labels = [["X"] * len(words) for words in TEXT]
    text = Corpus.from_sentences({"word": TEXT, "label": labels})
    codes = text.column("label").codes.astype(np.int32)
    given: dict[str, Any] = {"transition_mask": None, "label_constraint": None}
    model = made.prepare(None, text, codes, ("X", "Y"), **given)
    return model, model.encode(text)


def normed(x: F64, scale: Any, shift: Any) -> F64:
    centered = x - x.mean()
    spread = math.sqrt(float(np.mean(centered**2)) + float(str(CONFIG["layer_norm_eps"])))
    return np.asarray(centered / spread * scale + shift)


def log_probabilities(folder: Path, text: Any) -> Callable[[list[str]], F64]:
    """Loops over a window's pieces: float64[n, V], of all pieces at each place."""
    if folder.name == "with":
        kernel, bias, scale, shift, free = guesser_weights().values()
    else:
        kernel, bias, scale, shift = np.eye(D), np.zeros(D), np.ones(D), np.zeros(D)
        count = np.array([1.0 + np.sum(text.content.content.ids == k) for k in range(V)])
        free = np.log(count / count.sum())
    table = weights_of(CONFIG)["embeddings.word_embeddings.weight"].astype(np.float64)

    def of_window(pieces: list[str]) -> F64:
        rows = []
        for last in last_layer(pieces, vocab_size=V):
            inner = kernel.astype(np.float64) @ last + bias
            inner = np.array([z * 0.5 * (1 + math.erf(z / math.sqrt(2))) for z in inner])
            scores = table @ normed(inner, scale, shift) + free
            rows.append(scores - scores.max() - math.log(np.exp(scores - scores.max()).sum()))
        return np.array(rows)

    return of_window


def test_the_objective_is_that_of_the_oracle(folder: Path) -> None:
    model, text = model_of(folder)
    guesser = Guesser.of(model, [text], 0.5)
    objective = _Masked(guesser, 7)
    pieces, (batch,) = text.content.content, text.batches
    assert objective.n_tokens == np.sum(pieces.token >= 0) == 10
    of_window = log_probabilities(folder, text)
    for step in range(4):
        noise = np.random.default_rng([7, step])
        masked = Masked.drawn(pieces, batch, 0.5, PIECES.index("[MASK]"), V, noise)
        assert len(masked.places) == 5
        values: list[float] = []
        for begin, end in zip(pieces.windows[:-1], pieces.windows[1:], strict=True):
            rows = of_window([PIECES[k] for k in masked.ids[begin:end]])
            own = (masked.places >= begin) & (masked.places < end)
            values += [
                rows[place - begin, target]
                for place, target in zip(masked.places[own], masked.target[own], strict=True)
            ]
        assert objective.at(step)[0] == pytest.approx(-np.mean(values), abs=2e-5)


def test_derivatives_against_differences(folder: Path) -> None:
    model, text = model_of(folder)
    guesser = Guesser.of(model, [text], 0.5)
    objective, rng = _Masked(guesser, 7), np.random.default_rng(0)
    gradient = objective.at(0)[1].copy()
    start, size = guesser.parameters.copy(), len(model.parameters)
    heads = slice(model.center.nonzero()[0].max() + 1, size)
    assert not gradient[heads].any()  # scores of labels
    for part in (slice(0, heads.start), slice(size, None)):
        direction = np.zeros_like(start)
        direction[part] = rng.normal(size=direction[part].shape)
        values = []
        for sign in (1, -1):
            guesser.parameters = start + sign * 1e-3 * direction
            values.append(objective.at(0)[0])
        found = -(values[0] - values[1]) / 2e-3 * objective.n_tokens
        assert found == pytest.approx(float(gradient @ direction), rel=2e-2, abs=2e-2)


def test_what_is_masked(folder: Path) -> None:
    model, _ = model_of(folder)
    text = model.encode(Corpus.from_sentences({"word": [["ab", "c", "defg", "7"]] * 1000}))
    mask, pieces, batches = PIECES.index("[MASK]"), text.content.content, text.batches
    found = [
        (batch, Masked.drawn(pieces, batch, 0.15, mask, V, np.random.default_rng(batch.lo)))
        for batch in batches
    ]
    places = np.concatenate([pieces.of(batch).start + each.places for batch, each in found])
    assert len(np.unique(places)) == len(places)
    assert (pieces.token[places] >= 0).all()
    target = np.concatenate([each.target for _, each in found])
    np.testing.assert_array_equal(target, pieces.ids[places])
    read = np.concatenate([each.ids for _, each in found])
    assert len(places) / np.sum(pieces.token >= 0) == pytest.approx(0.15, abs=0.005)
    left = np.ones(len(read), bool)
    left[places] = False
    np.testing.assert_array_equal(read[left], pieces.ids[left])
    assert np.mean(read[places] == mask) == pytest.approx(0.8, abs=0.05)
    assert np.mean(read[places] == target) == pytest.approx(0.1, abs=0.04)


def test_training_guesses_better_and_leaves_the_scores_of_labels(folder: Path) -> None:
    model, text = model_of(folder, steps=100, rate=3e-3, head_rate=3e-3)
    before = _Masked(Guesser.of(model, [text], 0.5), 7)
    first = np.mean([before.at(step)[0] for step in range(8)])
    result = model.train([(text, MaskedWords(0.5))], PARAMS)
    assert (result.iterations, result.status) == (100, "steps")
    assert -result.objective / before.n_tokens < first - 0.5
    assert np.abs(model.parameters - model.center).max() > 0.01
    weights = model.weights()
    assert not weights["head.weight"].any()
    assert not weights["transitions"].any()
    assert result.n_weights == len(before.guesser.parameters)
    codes = np.zeros(text.offsets[-1], np.int32)
    with pytest.raises(TypeError, match="beside another term"):
        model.train([(text, MaskedWords(0.5)), (text, HardLabels(codes))], PARAMS)


def test_a_new_head_has_the_rate_of_heads_and_a_pretrained_one_that_of_layers(folder: Path) -> None:
    model, text = model_of(folder, rate=1e-9, head_rate=1e-2)
    guesser, size = Guesser.of(model, [text], 0.5), len(model.parameters)
    guesser.train(PARAMS, 3)
    moved = np.abs(guesser.parameters - guesser.center)
    assert 0 < moved[:size].max() < 1e-8
    assert (moved[size:].max() > 1e-3) == (folder.name == "without")


def test_a_killed_training_ends_with_the_same_bits(folder: Path) -> None:
    states: list[dict[str, Any]] = []

    def keep(state: Any) -> None:
        states.append({k: np.copy(v) if k in "x first second" else v for k, v in state().items()})

    ends = []
    for progress in (Progress(None, keep), None):
        model, text = model_of(folder, steps=9)
        given = progress or Progress(states[4], lambda state: None)
        model.train([(text, MaskedWords(0.5))], PARAMS, progress=given)
        ends.append(model.parameters)
    np.testing.assert_array_equal(*ends)


def test_folders_that_do_not_fit(tmp_path: Path) -> None:
    wrong = {**guesser_weights(), "cls.predictions.bias": np.zeros(V + 1, np.float32)}
    folder = write_transformer(
        tmp_path / "m", weights={**weights_of(CONFIG), **wrong}, vocab_size=V
    )
    model, text = model_of(folder)
    with pytest.raises(
        UserError, match=r"cls\.predictions\.bias is float32\[59\], expected floats, 58"
    ):
        model.train([(text, MaskedWords(0.5))], PARAMS)
    tokenizer = folder / "tokenizer.json"
    given = json.loads(tokenizer.read_text(encoding="utf-8"))
    del given["model"]["vocab"]["[MASK]"]
    tokenizer.write_text(json.dumps(given), encoding="utf-8")
    model, text = model_of(folder)
    with pytest.raises(UserError, match="no piece for masked words"):
        model.train([(text, MaskedWords(0.5))], PARAMS)


@pytest.mark.parametrize("unlabeled", [60, 0])
def test_both_trainings_take_the_steps_of_the_model(folder: Path, unlabeled: int) -> None:
    words = ("run", "--model", "transformer", "--set", f"transformer.folder={folder}")
    words += ("--set", "transformer.steps=24", "--dataset", "synth", "--labeled", "20", "--tune")
    words += ("0", "--method", "adaptive_pretraining", "--unlabeled", str(unlabeled), "--format")
    (record,) = json.loads(sslbench(*words, "json").stdout)
    assert record["status"] == "ok", record
    trace = json.loads(Path("runs", f"{record['run_id']}.json").read_text())["trace"]
    assert trace["effort"] == {"steps": [24], "trainings": [3 if unlabeled else 2]}
