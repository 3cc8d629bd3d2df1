"""Features learned from text, under every method: attributes and dense columns, saved, restored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import sslbench
from sslbench import UserError, registry
from sslbench.engine.features.words import WordFeatures
from sslbench.experiment.inputs.text_features import FeaturedTagger
from sslbench.experiment.planning.description import describe
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.request.request import RunRequest
from sslbench.testing.toys import corpus_of

METHODS = [
    name for name, info in registry().methods.items() if "tagging" in info.tasks and not info.needs
]
FAST = {
    "rounds": 1,
    "max_iterations": 5,
    "joint_iterations": 3,
    "m_step_iterations": 3,
    "brown_clusters.clusters": 8,
    "brown_clusters.prefixes": [2, 4],
    "word_vectors.dimensions": 3,
}
LEARNERS = ("brown_clusters", "word_vectors")


def templates_in(folder: Path) -> str:
    path = folder / "few.txt"
    path.write_text("word[0]\nword.suffix1[0]\n")
    return str(path)


def trained(method: str, folder: Path, model: str, learners: tuple[str, ...] = LEARNERS) -> Any:
    known = describe(registry().method(method).load(), {}).params
    params = {key: value for key, value in FAST.items() if key in known}
    params |= {key: v for key, v in FAST.items() if key.partition(".")[0] in learners}
    return sslbench.train(
        method,
        "synth",
        labeled=15,
        unlabeled=30,
        featurizer=templates_in(folder),
        text_features=learners,
        model=model,
        params=params,
        threads=1,
    )


CASES = [
    (method, model)
    for method in METHODS
    for model in ("crf1", "crf2")
    if model == "crf1" or method in ("supervised", "jess_cm", "entropy_regularization", "gp_crf")
    if not registry().method(method).weak
    if registry().method(method).misfit("tagging", registry().model(model)) is None
]


@pytest.mark.parametrize(("method", "model"), CASES)
def test_every_method_runs_on_top(method: str, model: str, tmp_path: Path) -> None:
    own = {"word_vectors": "brown_clusters", "brown_clusters": "word_vectors"}
    learners = (own[method],) if method in own else LEARNERS
    tagger = trained(method, tmp_path, model, learners)
    assert isinstance(tagger.tagger, FeaturedTagger)
    tagger.save(tmp_path / "model")
    restored = sslbench.load_tagger(tmp_path / "model")
    test = tagger.trained.sample.dataset.splits["test"].between(0, 30)
    assert tagger.tag(test).tolist() == restored.tag(test).tolist()
    text = [["aaa", "bbb"], ["never"]]
    assert tagger.predict(text) == restored.predict(text)
    if hasattr(tagger.tagger.tagger, "predict_marginals"):
        for a, b in zip(tagger.predict_proba(text), restored.predict_proba(text), strict=True):
            assert a.tolist() == b.tolist()


def test_what_a_method_does_with_no_features_is_what_it_does_alone(tmp_path: Path) -> None:
    """Scaled to nothing, dense columns leave everything as it is."""
    params = {"word_vectors.vector_length": 1e-300, "word_vectors.dimensions": 2}
    common: dict[str, Any] = {"labeled": 15, "unlabeled": 30, "featurizer": templates_in(tmp_path)}
    with_none = sslbench.train(
        "self_training", "synth", text_features="word_vectors", params=params, **common
    )
    alone = sslbench.train("self_training", "synth", **common)
    test = alone.trained.sample.dataset.splits["test"]
    assert with_none.tag(test).tolist() == alone.tag(test).tolist()


def spec_of(**more: Any) -> Any:
    request = RunRequest(method=("supervised",), dataset=("synth",), labeled=15, **more)
    return plan(request, store=None, notice=lambda text: None)[0]


def test_identity_of_a_run(tmp_path: Path) -> None:
    plain = spec_of().spec
    assert "text_features" not in msgspec.to_builtins(plain)  # ids of other runs stay
    one = spec_of(text_features=("brown_clusters",))
    assert one.spec.learned["brown_clusters"]["clusters"] == 320
    assert one.spec.features == f"{plain.featurizer}+brown_clusters"
    assert "with brown_clusters" in one.code
    given = ("brown_clusters.clusters=320",)
    assert spec_of(text_features=("brown_clusters",), params=given).spec.run_id == one.spec.run_id
    given = ("brown_clusters.clusters=321",)
    assert spec_of(text_features=("brown_clusters",), params=given).spec.run_id != one.spec.run_id
    both = spec_of(text_features=("word_vectors", "brown_clusters")).spec
    assert both.run_id == spec_of(text_features=("brown_clusters", "word_vectors")).spec.run_id
    assert len({plain.run_id, one.spec.run_id, both.run_id}) == 3
    read = msgspec.json.decode(msgspec.json.encode(both), type=type(both))
    assert read.run_id == both.run_id


def test_the_content_of_a_file_is_a_part_of_the_identity(tmp_path: Path) -> None:
    path, ids = tmp_path / "vectors", set()
    for content in ("a 1 2\n", "a 1 3\n"):
        path.write_text(content)
        settings = (f"word_vectors.vector_file={path}",)
        ids.add(spec_of(text_features=("word_vectors",), params=settings).spec.run_id)
    assert len(ids) == 2
    path.unlink()
    with pytest.raises(UserError, match="cannot be read"):
        spec_of(text_features=("word_vectors",), params=settings)


@pytest.mark.parametrize(
    ("features", "settings", "message"),
    [
        (("brown_cluster",), (), "no text feature 'brown_cluster'"),
        (("brown_clusters",), ("brown_clusters.cluster=3",), "no parameter 'cluster'"),
        (("brown_clusters",), ("brown_clusters.clusters=0",), "clusters"),
        ((), ("brown_clusters.clusters=9",), "not part of this run"),
    ],
)
def test_mistakes(features: tuple[str, ...], settings: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        spec_of(text_features=features, params=settings)


def test_runs_are_stored_and_tuned(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "labeled": 15,
        "unlabeled": 30,
        "featurizer": templates_in(tmp_path),
        "store": tmp_path / "runs",
        "text_features": "brown_clusters",
        "params": {"max_iterations": 5},
    }
    (record,) = sslbench.run("supervised", "synth", tune=2, **options)
    assert record.error is None
    assert record.featurizer == "file-few.txt+brown_clusters"
    assert record.trace["brown_clusters"]["words"] > 0
    assert record.timing["fit"] >= 0
    (again,) = sslbench.run("supervised", "synth", tune=2, **options)
    assert again.created == record.created
    (untuned,) = sslbench.run("supervised", "synth", **{**options, "params": record.params})
    assert untuned.predictions_sha256 == record.predictions_sha256  # shared by trials or not


def test_saved_words_are_checked() -> None:
    good = WordFeatures("word", ["a", "b"], (0,), {"k": (["x"], np.zeros(2, np.int32))})
    arrays, facts = good.arrays()
    assert WordFeatures.from_arrays(arrays, facts).templates == ("k[0]",)
    wrong: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"class.k": np.array([0, 1], np.int32)}, {}),
        ({"class.k": np.zeros(3, np.int32)}, {}),
        ({}, {"words": ["a", "a"]}),
        ({"vectors": np.full((2, 1), np.nan, np.float32)}, {}),
        ({"vectors": np.zeros((3, 1), np.float32)}, {}),
    ]
    for array, fact in wrong:
        with pytest.raises(ValueError, match=r"."):
            WordFeatures.from_arrays({**arrays, **array}, {**facts, **fact})


def test_words_that_come_later_are_looked_up() -> None:
    features = WordFeatures("word", ["a", "b"], (0,), {"k": (["x", "y"], np.array([0, 1], "i4"))})
    text = corpus_of([[("a", "X"), ("c", "X")]])
    words = text.column("word").vocabulary
    assert features.annotate(text).sentence(0, "k") == ["x", ""]
    later = corpus_of([[("b", "X"), ("A", "X")]], words)
    assert features.annotate(later).sentence(0, "k") == ["y", "x"]
    shared = features.annotate(text).column("k").vocabulary
    assert features.annotate(later).column("k").vocabulary is shared
    assert replace(features, vectors=None).dense_columns == ()
