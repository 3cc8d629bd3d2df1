"""The encoder: a tiny model of the test, its vectors by numpy, its cache, and broken folders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sslbench
from sslbench import RunContext, UserError
from sslbench.engine.compilation.threads import using_threads
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.request.request import RunRequest
from sslbench.testing import check_method
from sslbench.testing.toys import corpus_of
from sslbench_methods.encoder.method import EncodedWords, Encoder, Source
from sslbench_methods.encoder.model import Transformer, model_digest
from sslbench_methods.encoder.store import VectorStore
from sslbench_methods.neural.tokenizer import windows
from support.tiny_encoder import expected, write_encoder, write_model
from support.tiny_transformer import CONFIG, last_layer, weights_of, write_transformer
from support.waiting import HANG

for library in ("onnxruntime", "tokenizers", "onnx"):
    pytest.importorskip(library, reason=f"{library} is not installed")

TEXT = [
    [("ab", "X"), ("Cd", "Y"), ("7", "X")],
    [("e", "X")],
    [("ab", "X"), ("Cd", "Y"), ("7", "X")],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("models") / "tiny")


def opened(folder: Path, pooling: Any = "mean", pieces: int = 512) -> Transformer:
    return Transformer.open(str(folder), pieces, pooling)


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_vectors_are_those_of_the_pieces(folder: Path, pooling: Any) -> None:
    found = opened(folder, pooling).vectors(["ab", "Cd", "7", "abc"])
    assert found.dtype == np.float32
    layer = expected(["[CLS]", "ab", "c", "##d", "ab", "##c", "[SEP]"])
    assert found[0] == pytest.approx(layer[1], abs=1e-6)
    assert found[1] == pytest.approx(layer[2:4].mean(axis=0) if pooling == "mean" else layer[2])
    assert found[2].tolist() == [0.0] * 5  # it yields no piece
    assert found[3] == pytest.approx(layer[4:6].mean(axis=0) if pooling == "mean" else layer[4])


def test_sentences_without_any_piece(folder: Path) -> None:
    assert opened(folder).vectors(["7", "8"]).tolist() == [[0.0] * 5] * 2


def test_windows() -> None:
    assert windows([1, 1, 1], 3) == [range(3)]
    assert windows([1] * 6, 4) == [range(4), range(2, 6)]
    assert windows([9, 1, 1], 2) == [range(1), range(1, 3)]
    assert windows([0, 0], 1) == [range(2)]
    rng = np.random.default_rng(0)
    for _ in range(200):
        counts = rng.integers(0, 5, rng.integers(1, 30)).tolist()
        room = int(rng.integers(1, 9))
        found = windows(counts, room)
        assert sorted({word for part in found for word in part}) == list(range(len(counts)))
        assert all(len(part) == 1 or sum(counts[k] for k in part) <= room for part in found)


def test_long_sentences_are_read_in_windows(folder: Path) -> None:
    """Each word's vector is that of the window in whose middle it is."""
    words = [*"abcdef"]
    found = opened(folder, pieces=6).vectors(words)  # four words and both ends
    ends = ["[CLS]", "[SEP]"]
    first = expected([ends[0], *words[:4], ends[1]])[1:-1]
    second = expected([ends[0], *words[2:], ends[1]])[1:-1]
    assert np.allclose(found[:3], first[:3])  # between both: the first one
    assert np.allclose(found[3:], second[1:])
    by_configuration = write_encoder(folder.parent / "short", positions=6)
    assert opened(by_configuration).vectors(words).tolist() == found.tolist()


def test_a_folder_without_onnx(tmp_path: Path) -> None:
    """It has the weights themselves."""
    for library in ("jax", "safetensors"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    folder = write_transformer(tmp_path / "plain")
    found = opened(folder).vectors(["ab", "7", "abc"])
    layer = last_layer(["[CLS]", "ab", "ab", "##c", "[SEP]"])
    wanted = [layer[1], np.zeros(8), layer[2:4].mean(axis=0)]
    np.testing.assert_allclose(found, wanted, atol=2e-5)
    assert opened(folder).limit == 40
    before = model_digest(str(folder))
    write_transformer(folder, weights=weights_of(CONFIG, seed=4))
    assert model_digest(str(folder)) != before
    write_model(folder)
    with_both = model_digest(str(folder))
    write_transformer(folder)
    assert model_digest(str(folder)) == with_both  # the file of ONNX is read


def test_words_that_are_too_long_are_cut(folder: Path) -> None:
    found = opened(folder, pieces=4).vectors(["x", "cdefgh", "y"])
    assert np.allclose(found[1], expected(["[CLS]", "c", "##d", "[SEP]"])[1:3].mean(axis=0))


def test_byte_level_tokenizers_read_a_space_before_each_word(tmp_path: Path) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel

    folder = write_encoder(tmp_path / "bytes")
    tokenizer = Tokenizer(BPE({"a": 0, "Ġ": 1, "Ġa": 2}, [("Ġ", "a")]))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.save(str(folder / "tokenizer.json"))
    ((ids, _),) = opened(folder).cutter.windows(["a", "a"])
    assert ids.tolist() == [2, 2]


class Counting:
    """A model that counts its sentences."""

    def __init__(self, model: Transformer) -> None:
        self.model, self.read = model, []
        self.size = model.size

    def vectors(self, words: Any) -> Any:
        self.read.append(list(words))
        return self.model.vectors(words)


def source_of(folder: Path, cache: Path | None) -> tuple[Source, Counting]:
    source = Source(str(folder), model_digest(str(folder)), "mean", 512, cache)
    model, store = source._opened()
    counting: Any = Counting(model)
    source._open[:] = [(counting, store)]
    return source, counting


def test_a_text_is_computed_once_in_all_runs(folder: Path, tmp_path: Path) -> None:
    corpus = corpus_of(TEXT)
    source, model = source_of(folder, tmp_path)
    found = source.vectors(corpus, "word")
    assert len(model.read) == 2  # the same sentence twice
    assert found.tolist() == source.vectors(corpus, "word").tolist()
    assert len(model.read) == 2
    other, again = source_of(folder, tmp_path)
    assert other.vectors(corpus_of([TEXT[1], TEXT[0]]), "word").tolist() == [
        *found[3:4].tolist(), *found[:3].tolist(),
    ]  # fmt: skip
    assert not again.read
    assert isinstance(other._open[0][1].get(next(iter(other._open[0][1]._found))), np.memmap)
    nothing, computed = source_of(folder, None)
    for _ in range(2):
        assert nothing.vectors(corpus, "word").tolist() == found.tolist()
    assert len(computed.read) == 4


def test_vectors_do_not_depend_on_threads(folder: Path) -> None:
    rng = np.random.default_rng(1)
    text = [[("".join(rng.choice([*"abcd"], 3)), "X") for _ in range(5)] for _ in range(40)]
    found = []
    for threads in (1, 3):
        with using_threads(threads):
            found.append(source_of(folder, None)[0].vectors(corpus_of(text), "word").tolist())
    assert found[0] == found[1]


def test_long_texts_are_kept_in_parts(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = [[(word, "X")] for word in ("a", "b", "c", "d", "e")]
    whole = source_of(folder, None)[0].vectors(corpus_of(text), "word").tolist()
    monkeypatch.setattr("sslbench_methods.encoder.method._PART", 9)  # two words
    source, _ = source_of(folder, tmp_path)
    assert source.vectors(corpus_of(text), "word").tolist() == whole
    assert len(list(tmp_path.rglob("*.index"))) == 3
    source, model = source_of(folder, tmp_path)
    assert source.vectors(corpus_of(text), "word").tolist() == whole
    assert not model.read


def test_damaged_files_of_the_cache_are_made_again(folder: Path, tmp_path: Path) -> None:
    corpus = corpus_of(TEXT)
    found = source_of(folder, tmp_path)[0].vectors(corpus, "word").tolist()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".f4", ".index"}
    for path in files:
        whole = path.read_bytes()
        for damaged in (b"", whole[:-1], whole[:-3] + b"xyz", b"\xff" * len(whole)):
            path.write_bytes(damaged)
            source, model = source_of(folder, tmp_path)
            assert source.vectors(corpus, "word").tolist() == found
            assert model.read
            source, model = source_of(folder, tmp_path)
            assert source.vectors(corpus, "word").tolist() == found
            assert not model.read  # and kept again


def test_store_of_parts(tmp_path: Path) -> None:
    rows = [np.full((n, 2), n, np.float32) for n in (1, 3, 2)]
    keys = [bytes([n]) * 32 for n in range(3)]
    store = VectorStore(tmp_path, 2)
    parts = dict(zip(keys, rows, strict=True))
    store.add({key: parts[key] for key in keys[:2]})
    store.add({keys[2]: rows[2]})
    store.add({})
    for each in (store, VectorStore(tmp_path, 2)):
        for key, own in zip(keys, rows, strict=True):
            assert np.array_equal(each.get(key), own)  # type: ignore[arg-type]
    assert VectorStore(tmp_path, 3).get(keys[0]) is None
    assert VectorStore(tmp_path / "none", 2).get(keys[0]) is None


def learned(folder: Path, **params: Any) -> EncodedWords:
    problem: Any = type("Problem", (), {"labeled": corpus_of(TEXT)})
    return Encoder().learn(problem, Encoder.Params(folder=str(folder), **params), RunContext())


def test_columns_are_centered_and_have_the_length_of_the_scale(folder: Path) -> None:
    features, corpus = learned(folder, scale=2.0), corpus_of(TEXT)
    found = features.dense(corpus)
    assert found.shape == (7, 5)
    known = [0, 1, 3, 4, 5]
    assert not found[[2, 6]].any()  # words without pieces
    assert np.allclose(found[known].mean(axis=0), 0)
    assert np.allclose(found[known].std(axis=0), 2.0 / np.sqrt(5))
    assert features.dense_columns == tuple(f"word:{d}" for d in range(5))
    raw = features.source.vectors(corpus, "word")[known].astype(np.float64)
    expected_values = (raw - raw.mean(axis=0)) / raw.std(axis=0) * 2.0 / np.sqrt(5)
    assert np.allclose(found[known], expected_values)


def test_saved_features(folder: Path) -> None:
    features, corpus = learned(folder), corpus_of(TEXT)
    arrays, facts = features.arrays()
    restored = Encoder.restore(arrays, facts)
    assert restored.dense(corpus).tolist() == features.dense(corpus).tolist()
    for wrong, fact in (
        ({"mean": np.full(5, np.nan)}, {}),
        ({"factor": np.zeros(4)}, {}),
        ({}, {"pooling": "most"}),
    ):
        with pytest.raises(ValueError, match=r"."):
            Encoder.restore({**arrays, **wrong}, {**facts, **fact})
    with pytest.raises(UserError, match="another one"):
        Encoder.restore(arrays, {**facts, "digest": "0"}).dense(corpus)
    with pytest.raises(UserError, match="another one"):
        Encoder.restore(arrays, {**facts, "folder": "/none"}).dense(corpus)
    other = replace(restored, mean=restored.mean[:3])
    with pytest.raises(UserError, match="vectors of 5 numbers, 3 at the training"):
        other.dense(corpus)


@pytest.mark.parametrize("name", ["model.onnx_data", "weights.bin", "./w", "w" * 200])
def test_weights_in_a_file_that_the_model_names(name: str, tmp_path: Path) -> None:
    """The cache has no vectors of the weights of before; a saved tagger notices other weights."""
    folder, cache = write_encoder(tmp_path / "tiny"), tmp_path / "cache"
    write_model(folder, weights=name)
    corpus = corpus_of(TEXT)
    first = source_of(folder, cache)[0].vectors(corpus, "word")
    saved = learned(folder).arrays()
    weights = folder / name
    weights.write_bytes((np.frombuffer(weights.read_bytes(), np.float32) * 2).tobytes())
    assert np.allclose(source_of(folder, cache)[0].vectors(corpus, "word"), 2 * first)
    with pytest.raises(UserError, match="another one"):
        Encoder.restore(*saved).dense(corpus)


@pytest.mark.parametrize("name", ["../weights_", "sub/weights", ".my_weights"])
def test_weights_that_are_not_beside_the_model_are_refused(name: str, tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "tiny")
    write_model(folder, weights="the_weights")
    model = folder / "model.onnx"
    model.write_bytes(model.read_bytes().replace(b"the_weights", name.encode()))
    assert model_digest(str(folder))  # there is no such file: the model cannot be opened
    (folder / "sub").mkdir()
    (folder / name).touch()
    with pytest.raises(UserError, match="its weights are in"):
        model_digest(str(folder))


def damaged(folder: Path, what: str) -> None:
    if what == "inputs":
        write_model(folder, inputs=("input_ids", "pixel_values"))
    elif what == "shape":
        write_model(folder, flat=True)
    elif what == "infinite":
        write_model(folder, scale=np.inf)
    elif what == "few rows":
        (folder / "tokenizer.json").write_text(
            (folder / "tokenizer.json").read_text().replace('"ab": 56', '"ab": 999')
        )
    else:
        name, _, content = what.partition(":")
        (folder / name).unlink()
        if content:
            (folder / name).write_text(content)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("model.onnx", "no model.onnx in it"),
        ("tokenizer.json", "no tokenizer.json in it"),
        ("model.onnx:{}", "no model"),
        ("tokenizer.json:{}", "no tokenizer"),
        ("tokenizer.json:[]", "no tokenizer"),
        ("tokenizer.json:x", "no tokenizer"),
        ("config.json:x", "no configuration"),
        ("config.json:[]", "no configuration"),
        ('config.json:{"max_position_embeddings": 2}', "no room for words in 2 pieces"),
        ("inputs", "it reads input_ids, pixel_values, expected"),
        ("shape", r"output has shape \(1, 5\), expected \(1, 1, dimensions\)"),
        ("infinite", "not finite"),
        ("few rows", "the model fails"),
    ],
)
def test_broken_folders(what: str, message: str, tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "model")
    damaged(folder, what)
    with pytest.raises(UserError, match=message):
        opened(folder).vectors(["ab"])


def test_without_a_folder() -> None:
    with pytest.raises(UserError, match="no model"):
        learned(Path(""))
    with pytest.raises(UserError, match=r"no model\.onnx"):
        learned(Path("/none"))


def spec_of(folder: Path, **more: Any) -> Any:
    settings = (f"encoder.folder={folder}",)
    request = RunRequest(dataset=("synth",), labeled=15, params=settings, **more)
    return plan(request, store=None, notice=lambda text: None)[0].spec


def test_the_files_of_the_model_are_part_of_the_identity(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "model")
    ids = []
    for _ in range(2):
        for more in ({"method": ("encoder",)}, {"text_features": ("encoder",)}):
            spec = spec_of(folder, **{"method": ("supervised",), **more})
            names = {Path(path).name for path in spec.inputs}
            assert names == {"model.onnx", "tokenizer.json", "config.json"}
            ids.append(spec.run_id)
        write_model(folder, scale=2.0)
    assert len(set(ids)) == 4


def test_a_run_without_a_folder_is_skipped() -> None:
    request = RunRequest(method=("encoder",), dataset=("synth",), labeled=15)
    (task,) = plan(request, store=None, notice=lambda text: None)
    assert task.skip_reason == "without its parameter folder: give --set encoder.folder=..."


def test_methods_run_on_top(folder: Path, tmp_path: Path) -> None:
    tagger = sslbench.train(
        "self_training",
        "synth",
        labeled=15,
        unlabeled=20,
        text_features="encoder",
        params={"encoder.folder": str(folder), "rounds": 1},
    )
    tagger.save(tmp_path / "model")
    restored = sslbench.load_tagger(tmp_path / "model")
    assert tagger.predict([["ab", "cd"]]) == restored.predict([["ab", "cd"]])


def test_the_method_keeps_the_rules(folder: Path) -> None:
    results = check_method(
        "encoder", params={"folder": str(folder), "max_iterations": 50}, seconds=HANG
    )
    assert {result.status for result in results} <= {"ok", "skipped"}
