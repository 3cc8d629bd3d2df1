"""The CRF as a thing to keep: supports, saving, and files that are no saved model."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.crf import (
    STRICT,
    ChainCRF,
    ChainModel,
    HardLabels,
    InfeasibleSentenceError,
    Objective,
    Options,
    TrainingParams,
    read_model,
    write_model,
)
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import I32, Bool
from support.crf_oracle import same_up_to
from support.weights_oracle import places

LABELS = ("N", "V", "ADP")
TEMPLATES = ("word[0]", "word[-1]|word[0]", "bag: word[-2..-1]", "word.suffix2[0]", "edge: word[0]")


def sentences(seed: int, n: int, vocabulary: Vocabulary) -> tuple[Corpus, I32]:
    rng = np.random.default_rng(seed)
    offsets = np.cumsum([0, *rng.integers(1, 8, n)])
    words = rng.integers(0, 40, offsets[-1])
    noise = rng.random(len(words)) < 0.1
    labels = np.where(noise, rng.integers(0, 3, len(words)), words % 3).astype(np.int32)
    codes = vocabulary.encode(f"w{w}" for w in words)
    return Corpus({"word": Column(vocabulary, codes)}, offsets), labels


VOCABULARY = Vocabulary()
TRAIN, Y = sentences(0, 40, VOCABULARY)
TEST, _ = sentences(1, 30, VOCABULARY)


def allowed() -> Bool:
    """All transitions that the labels use, and a few of the others."""
    previous = np.roll(Y, 1)
    previous[TRAIN.offsets[:-1]] = 3
    transition_mask = np.zeros((4, 3), bool)
    transition_mask[previous, Y] = True
    transition_mask[2, 2] = False
    return transition_mask


def labels_without_two_adpositions() -> I32:
    labels = Y.copy()
    for i in range(1, len(labels)):
        if i not in TRAIN.offsets and labels[i - 1] == labels[i] == 2:
            labels[i] = 0
    return labels


def trained(**options: object) -> ChainCRF:
    labels = labels_without_two_adpositions()
    crf = ChainModel().prepare(TemplateFeaturizer(TEMPLATES), TRAIN, labels, LABELS, **options)
    crf.train(
        [(crf.encode(TRAIN), HardLabels(labels))],
        TrainingParams(sigma2=2.0),
        options=Options(max_iterations=30),
    )
    return crf


VARIANTS = {
    "all": {},
    "observed": {"state_support": "observed"},
    "mask": {"transition_mask": allowed()},
    "rare": {"min_count": 2, "state_support": "observed", "transition_mask": allowed()},
    "all transitions, bare": {"transition_support": "all", "use_start": False, "use_stop": False},
}


def restored(path: Path) -> ChainCRF:
    kind, arrays, metadata = read_model(path)
    assert kind == "chain_crf"
    return ChainCRF.from_arrays(arrays, metadata)


@pytest.mark.parametrize("name", VARIANTS)
def test_save_and_load(name: str, tmp_path: Path) -> None:
    crf = trained(**VARIANTS[name])
    crf.save(tmp_path / "deep" / "er" / "model.bin")  # any name, folders on the way
    assert [p.name for p in (tmp_path / "deep" / "er").iterdir()] == ["model.bin"]
    again = restored(tmp_path / "deep" / "er" / "model.bin")
    assert again.labels == crf.labels == LABELS
    np.testing.assert_array_equal(again.weights, crf.weights)
    assert again.layout.size == crf.layout.size
    assert again.layout.bounds.tolist() == crf.layout.bounds.tolist()
    assert places(again.layout) == places(crf.layout)
    assert (again.transition_mask is None) == (crf.transition_mask is None)
    for corpus in (TRAIN, TEST):
        np.testing.assert_array_equal(again.predict(corpus), crf.predict(corpus))
        before, after = crf.marginals(crf.encode(corpus)), again.marginals(again.encode(corpus))
        np.testing.assert_array_equal(before, after)
    assert len(set(crf.predict(TEST).tolist())) == 3
    again.save(tmp_path / "second")
    first = (tmp_path / "deep" / "er" / "model.bin").read_bytes()
    kind, arrays, metadata = read_model(tmp_path / "second")
    other = read_model(tmp_path / "deep" / "er" / "model.bin")
    assert (kind, metadata) == (other[0], other[2])
    assert arrays.keys() == other[1].keys()
    assert len(first) == (tmp_path / "second").stat().st_size


def test_predictions_on_text_with_its_own_vocabulary(tmp_path: Path) -> None:
    """A restored model tags text that was coded in another process."""
    crf = trained()
    crf.save(tmp_path / "m")
    again = restored(tmp_path / "m")
    fresh = Vocabulary(["unheard", "of"])
    codes = fresh.encode(TEST.column("word").strings())
    elsewhere = Corpus({"word": Column(fresh, codes)}, TEST.offsets)
    np.testing.assert_array_equal(again.predict(elsewhere), crf.predict(TEST))


def test_training_goes_on_after_loading(tmp_path: Path) -> None:
    crf = trained(**VARIANTS["observed"])
    crf.save(tmp_path / "m")
    again = restored(tmp_path / "m")
    labels = labels_without_two_adpositions()
    results = [
        c.train(
            [(c.encode(TRAIN), HardLabels(labels))], TrainingParams(sigma2=2.0), options=Options()
        )
        for c in (crf, again)
    ]
    assert results[0] == results[1]
    np.testing.assert_array_equal(crf.weights, again.weights)


# -- files that are no model -----------------------------------------------------------------------


def small(path: Path) -> bytes:
    write_model(path, "toy", {"a": np.arange(5.0), "b": np.arange(3)}, {"x": [1, "é"]})
    return path.read_bytes()


def test_arrays_and_metadata_round_trip(tmp_path: Path) -> None:
    small(tmp_path / "m")
    kind, arrays, metadata = read_model(tmp_path / "m")
    assert (kind, metadata, sorted(arrays)) == ("toy", {"x": [1, "é"]}, ["a", "b"])
    np.testing.assert_array_equal(arrays["a"], np.arange(5.0))


def npz(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def header(text: str) -> dict[str, object]:
    return {"header.json": np.frombuffer(text.encode(), np.uint8)}


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(3))
    return file.getvalue()


GOOD = {"format": "sslbench-model", "version": 2, "kind": "a", "metadata": {}, "arrays": []}


def without(key: str) -> str:
    return json.dumps({k: v for k, v in GOOD.items() if k != key})


FOREIGN = {
    "empty": b"",
    "text": b"word NN\n",
    "one array": npy(),
    "archive": npz(a=np.arange(3)),
    "list": npz(**header("[1, 2]")),
    "number": npz(**header("3")),
    "nothing in it": npz(**header("{}")),
    **{f"no {key}": npz(**header(without(key))) for key in GOOD},
    "other format": npz(**header(json.dumps({**GOOD, "format": "x"}))),
    "array missing": npz(**header(json.dumps({**GOOD, "arrays": ["w"]}))),
    "not json": npz(**header('{"format": "sslb')),
    "not text": npz(**{"header.json": np.array([255, 254], np.uint8)}),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files(name: str, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(FOREIGN[name])
    with pytest.raises(UserError, match="not a saved sslbench model"):
        read_model(tmp_path / "m")


def test_missing_file_folder_and_other_version(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_model(tmp_path / "nothing")
    with pytest.raises(UserError):
        read_model(tmp_path)
    newer = {"format": "sslbench-model", "version": 99}  # whatever else it holds
    (tmp_path / "m").write_bytes(npz(**header(json.dumps(newer))))
    with pytest.raises(UserError, match=r"version 99.*train it again"):
        read_model(tmp_path / "m")


def test_models_of_format_version_1_are_read(tmp_path: Path) -> None:
    """They have the metadata under the name "facts"."""
    old = {"format": "sslbench-model", "version": 1, "kind": "a", "facts": {"x": 1}, "arrays": []}
    (tmp_path / "m").write_bytes(npz(**header(json.dumps(old))))
    assert read_model(tmp_path / "m") == ("a", {}, {"x": 1})


class Trap:
    """Unpickling this is noticed."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("unpickled!",)


def test_pickles_are_never_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trap = np.array([Trap()], dtype=object)
    files = [
        pickle.dumps(Trap()),
        npz(a=trap, **header(json.dumps({**GOOD, "arrays": ["a"]}))),
        npz(**{"header.json": trap}),
    ]
    for content in files:
        (tmp_path / "m").write_bytes(content)
        with pytest.raises(UserError):
            read_model(tmp_path / "m")
    assert "unpickled" not in capsys.readouterr().out
    write_model(tmp_path / "n", "a", {"a": trap}, {})
    with pytest.raises(UserError):
        read_model(tmp_path / "n")


def test_cut_and_damaged_files(tmp_path: Path) -> None:
    """Every prefix is refused; with a changed byte it is refused or reads as before."""
    whole = small(tmp_path / "m")
    for length in range(0, len(whole), 3):
        (tmp_path / "m").write_bytes(whole[:length])
        with pytest.raises(UserError):
            read_model(tmp_path / "m")
    rng = np.random.default_rng(0)
    refused = 0
    for i in range(len(whole)):
        damaged = bytearray(whole)
        damaged[i] ^= int(rng.integers(1, 256))
        (tmp_path / "m").write_bytes(damaged)
        try:
            kind, arrays, metadata = read_model(tmp_path / "m")
        except UserError:
            refused += 1
            continue
        assert (kind, metadata, sorted(arrays)) == ("toy", {"x": [1, "é"]}, ["a", "b"])
        np.testing.assert_array_equal(arrays["a"], np.arange(5.0))
        np.testing.assert_array_equal(arrays["b"], np.arange(3))
    assert refused > len(whole) // 2


def test_weights_that_do_not_fit(tmp_path: Path) -> None:
    arrays, metadata = trained().arrays()
    with pytest.raises(ValueError, match="array weights"):
        ChainCRF.from_arrays({**arrays, "weights": arrays["weights"][:-1]}, metadata)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    old = small(tmp_path / "m")

    class Broken:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            raise MemoryError

    with pytest.raises(MemoryError):
        write_model(tmp_path / "m", "toy", {"a": np.arange(3), "b": Broken()}, {})
    assert (tmp_path / "m").read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


# -- supports --------------------------------------------------------------------------------------


def with_both_supports(labels: I32) -> dict[str, ChainCRF]:
    featurizer = TemplateFeaturizer(TEMPLATES)
    return {
        s: ChainModel().prepare(featurizer, TRAIN, labels, LABELS, state_support=s)
        for s in ("all", "observed")
    }


def test_observed_support_has_the_pairs_that_occur() -> None:
    labels = labels_without_two_adpositions()
    crf = with_both_supports(labels)
    every, seen = crf["all"].layout, crf["observed"].layout
    assert np.diff(every.bounds)[1:].tolist() == np.diff(seen.bounds)[1:].tolist()
    assert every.bounds[1] == every.n_node * len(LABELS)
    pairs = places(seen).state
    assert len(pairs) == seen.bounds[1] < every.bounds[1]
    attributes = crf["all"].index.encode(TRAIN).node
    shown = {
        (int(a), int(y))
        for column, y in zip(attributes.T, labels, strict=True)
        for a in column
        if a >= 0
    }
    assert set(pairs) == shown


def test_observed_support_is_the_optimum_over_fewer_weights() -> None:
    labels = labels_without_two_adpositions()
    crf, values = with_both_supports(labels), {}
    every, seen = crf["all"].layout, crf["observed"].layout
    for name, tagger in crf.items():
        parts = [(tagger.encode(TRAIN), HardLabels(labels))]
        values[name] = tagger.train(parts, TrainingParams(sigma2=2.0), options=STRICT).objective
    assert values["observed"] < values["all"]
    # the same objective, seen from the larger layout with the other weights at 0
    at, pairs = places(every).state, places(seen).state
    full = np.zeros(every.size)
    for pair, i in pairs.items():
        full[at[pair]] = crf["observed"].weights[i]
    full[every.bounds[1] :] = crf["observed"].weights[seen.bounds[1] :]
    gradient = np.empty(every.size)
    objective = Objective(every, [(crf["all"].encode(TRAIN), HardLabels(labels))], 2.0)
    value = objective.value_and_gradient(full, gradient)
    assert value == pytest.approx(values["observed"], rel=1e-12)
    free = np.ones(every.size, bool)
    free[: every.bounds[1]] = False
    free[[at[pair] for pair in pairs]] = True
    assert abs(gradient[free]).max() < 1e-6 < abs(gradient[~free]).max()
    crf["all"].weights[:] = full
    np.testing.assert_array_equal(crf["all"].predict(TEST), crf["observed"].predict(TEST))
    same_up_to(
        crf["all"].marginals(crf["all"].encode(TEST)),
        crf["observed"].marginals(crf["observed"].encode(TEST)),
        1e-12,
    )


def test_mask_rules_training_and_decoding() -> None:
    crf = trained(transition_mask=allowed())
    path = crf.predict(TEST)
    inside = np.setdiff1d(np.arange(1, TEST.n_tokens), TEST.offsets)
    assert crf.transition_mask[path[inside - 1], path[inside]].all()
    assert crf.transition_mask[3, path[TEST.offsets[:-1]]].all()
    with pytest.raises(InfeasibleSentenceError, match="break the constraints"):
        crf.train(
            [(crf.encode(TRAIN), HardLabels(np.full_like(Y, 2)))],
            TrainingParams(sigma2=2.0),
            options=Options(),
        )
    crf.transition_mask = np.zeros((4, 3), bool)
    crf.transition_mask[3] = True  # a first token, and nothing after it
    first_long = int(np.argmax(TEST.lengths > 1))
    with pytest.raises(InfeasibleSentenceError, match=rf"sentence {first_long}\b"):
        crf.predict(TEST)


def test_a_corpus_without_sentences() -> None:
    crf = trained()
    nothing = TEST.select(np.empty(0, np.int64))
    assert crf.predict(nothing).tolist() == []
    assert crf.marginals(crf.encode(nothing)).shape == (0, 3)
