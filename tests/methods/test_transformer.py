"""The transformer as a model: its scores by an oracle, windows, the folder's files, the rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sslbench import Corpus, UserError
from sslbench.engine.crf import HardLabels, TrainingParams, read_model
from sslbench.testing import MODEL_CHECKS, check_model
from sslbench_methods.neural.transformer import Transformer, TransformerModel, TransformerParams
from support.tiny_transformer import CONFIG, last_layer, weights_of, write_transformer

for library in ("jax", "safetensors", "tokenizers"):
    pytest.importorskip(library, reason=f"{library} is not installed")

TEXT = [
    [("ab", "X"), ("Cd", "Y"), ("7", "X"), ("abc", "X")],
    [("e", "X")],
    [("ab", "X"), ("f", "Y")],
]
LABELS = ("X", "Y")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_transformer(tmp_path_factory.mktemp("models") / "tiny")


def corpus(sentences: Any = TEXT) -> Corpus:
    words, labels = ([[token[i] for token in each] for each in sentences] for i in (0, 1))
    return Corpus.from_sentences({"word": words, "label": labels})


def model_of(folder: Path, text: Corpus | None = None, **params: Any) -> Transformer:
    text = text or corpus()
    made = TransformerModel(TransformerParams(folder=str(folder), **params), 0)
    codes = text.column("label").codes.astype(np.int32)
    model = made.prepare(
        None, text, codes, LABELS, transition_mask=None, label_constraint=None, text=()
    )
    rng = np.random.default_rng(1)
    model.parameters = model.parameters.copy()
    size = model.source.pretrained.config.hidden_size * 2 + 2 + 6
    model.parameters[-size:] = rng.normal(size=size)
    return model


def nodes(model: Transformer, text: Corpus) -> Any:
    model.parameters[-6:] = 0.0  # no transitions: row L is added to first tokens
    return np.concatenate([each.node for each in model.potentials(model.encode(text))])


def head(model: Transformer, vectors: Any) -> Any:
    weights = model.weights()
    return vectors @ weights["head.weight"].astype(np.float64) + weights["head.bias"]


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize("prefix", ["", "bert."])
def test_scores_are_those_of_the_oracle(tmp_path: Path, kind: str, prefix: str) -> None:
    folder = write_transformer(tmp_path / "m", prefix=prefix, model_type=kind, pad_token_id=1)
    model = model_of(folder)
    found = nodes(model, corpus())
    first = 2 if kind == "roberta" else 0
    read = [
        ["[CLS]", "ab", "c", "##d", "ab", "##c", "[SEP]"],
        ["[CLS]", "e", "[SEP]"],
        ["[CLS]", "ab", "f", "[SEP]"],
    ]
    scores = [head(model, last_layer(pieces, first)) for pieces in read]
    expected = [
        scores[0][1],
        scores[0][2:4].mean(axis=0),
        np.zeros(2),  # it yields no piece
        scores[0][4:6].mean(axis=0),
        scores[1][1],
        *scores[2][1:3],
    ]
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_a_long_sentence_is_read_in_windows(folder: Path) -> None:
    """Each word is scored in the window in whose middle it is."""
    text = corpus([[(letter, "X") for letter in "abcdef"]])
    model = model_of(folder, pieces=6)  # four words and both ends
    first, second = (
        head(model, last_layer(["[CLS]", *part, "[SEP]"])[1:-1]) for part in ("abcd", "cdef")
    )
    np.testing.assert_allclose(nodes(model, text), [*first[:3], *second[1:]], atol=2e-5)


def test_scores_do_not_depend_on_other_sentences(folder: Path) -> None:
    rng = np.random.default_rng(0)
    sentences = [
        [("abcdefgh"[k], "XY"[k % 2]) for k in rng.integers(0, 8, rng.integers(1, 30))]
        for _ in range(60)
    ]
    model = model_of(folder)
    together = nodes(model, corpus(sentences))
    alone = np.concatenate([nodes(model, corpus([sentence])) for sentence in sentences])
    np.testing.assert_allclose(together, alone, atol=2e-5)


def test_the_rules_of_models_hold(folder: Path) -> None:
    results = check_model("transformer", params={"folder": str(folder), "steps": 5})
    statuses = {result.check: result.status for result in results}
    assert statuses.pop("features") == "skipped"
    assert len(statuses) == len(MODEL_CHECKS) - 1
    assert set(statuses.values()) == {"ok"}


def test_training_learns_and_takes_the_steps_that_it_gets(folder: Path) -> None:
    text = corpus(TEXT * 20)
    model = model_of(folder, text, steps=60, dropout=0.0)
    codes = text.column("label").codes.astype(np.int32)
    part = model.encode(text), HardLabels(codes)
    params = TrainingParams()
    before = model.objective([part], params)
    result = model.train([part], params)
    assert (result.iterations, result.status, result.converged) == (60, "steps", True)
    assert model.objective([part], params) > before / 2
    none = model.train([part], params, options=params.options(max_iterations=0))
    assert none.iterations == 0


def test_a_saved_model_needs_its_folder(folder: Path, tmp_path: Path) -> None:
    other = write_transformer(tmp_path / "other")
    model = model_of(other)
    model.save(tmp_path / "m.model")
    _, arrays, metadata = read_model(tmp_path / "m.model")
    again = TransformerModel.restore(arrays, metadata)
    np.testing.assert_array_equal(
        again.predict_marginals(corpus()), model.predict_marginals(corpus())
    )
    for harm in ({"labels": ["X"]}, {"labels": ["X", "Y", "Z"]}):
        with pytest.raises(ValueError):
            TransformerModel.restore(arrays, {**metadata, **harm})
    write_transformer(tmp_path / "other", weights=weights_of(CONFIG, seed=5))
    with pytest.raises(UserError, match="another one than at the training"):
        TransformerModel.restore(arrays, metadata)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        ({"model_type": "gpt2"}, "'gpt2'; known are bert"),
        ({"hidden_act": "tanh"}, "no activation 'tanh'"),
        ({"num_attention_heads": 3}, "cannot be shared by 3 heads"),
        ({"position_embedding_type": "relative_key"}, "only absolute"),
        ({"hidden_size": "many"}, "no configuration of a model"),
        ({"num_hidden_layers": 3}, r"no encoder\.layer\.2"),
        ({"intermediate_size": 13}, r"intermediate\.dense\.weight is float32\[12 x 8\].*13 x 8"),
        ({"num_hidden_layers": 0}, "a size is not positive"),
        ({"max_position_embeddings": 2}, "no room for positions"),
    ],
)
def test_a_wrong_configuration_is_named(folder: Path, harm: Any, message: str) -> None:
    copy = folder.parent / "wrong"
    write_transformer(copy)
    (copy / "config.json").write_text(json.dumps({**CONFIG, **harm}), encoding="utf-8")
    with pytest.raises(UserError, match=message):
        model_of(copy)


def test_wrong_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no folder"):
        TransformerModel(TransformerParams(), 0).prepare(
            None, corpus(), np.zeros(0, np.int32), LABELS,
            transition_mask=None, label_constraint=None,
        )  # fmt: skip
    folder = write_transformer(tmp_path / "m")
    good = (folder / "model.safetensors").read_bytes()
    for bad in (b"", b"{}", good[:1000], b"\xff" * 1000):
        (folder / "model.safetensors").write_bytes(bad)
        with pytest.raises(UserError, match="no weights"):
            model_of(folder)
    weights = weights_of(CONFIG)
    weights["encoder.layer.1.output.dense.bias"][3] = np.nan
    write_transformer(folder, weights=weights)
    with pytest.raises(UserError, match="not finite"):
        model_of(folder)
    write_transformer(
        folder, weights={n: x.astype(np.int32) for n, x in weights_of(CONFIG).items()}
    )
    with pytest.raises(UserError, match="expected floats"):
        model_of(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"no model\.safetensors in it; save it with transformers"):
        model_of(folder)
