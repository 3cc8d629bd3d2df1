"""Segment, then tag."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainModel, read_model, write_model
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem, without_labels
from sslbench.experiment.run.saved import load_tagger
from sslbench.plugins import registry
from sslbench_datasets.chinese.text import characters
from sslbench_methods.chinese.pipeline_st import Pipeline, PipelineST
from sslbench_methods.chinese.words import BORDERS, border_mask
from support.chunks import spans_of
from support.texts import corpus_of
from support.word_fakes import as_words, problem_of, right, sentences, splits

TWO = [[("1998年", "CD"), ("大上", "NR"), ("看", "VV"), ("x", "X")]]


def fitted(problem: Problem, **options: float) -> tuple[Pipeline, RunContext]:
    run = RunContext()
    return PipelineST().fit(problem, PipelineST.Params(**options), run), run


@pytest.fixture(scope="module")
def data() -> dict[str, Corpus]:
    return splits(60, 30)


@pytest.fixture(scope="module")
def pipeline(data: dict[str, Corpus]) -> Pipeline:
    return fitted(problem_of(data["train"]))[0]


def test_a_language_without_ambiguity_is_learned(
    pipeline: Pipeline, data: dict[str, Corpus]
) -> None:
    new = {*words_of(data["test"])} - {*words_of(data["train"])}
    assert len(new) > 20
    assert right(pipeline, data["test"]) == 1.0


def words_of(corpus: Corpus) -> list[str]:
    found = []
    for i in range(corpus.n_sentences):
        text, labels = corpus.sentence(i, "word"), corpus.sentence(i, "label")
        found += ["".join(text[span.start : span.end]) for span in spans_of(labels, "BMES")]
    return found


def test_the_features(pipeline: Pipeline) -> None:
    """Every attribute of a character and of a word, spelled out."""
    corpus = characters(as_words(TWO), {})
    fit = fitted(problem_of(corpus))[0]
    np.testing.assert_array_equal(fit.segmenter.transition_mask, border_mask())
    text = fit.columns.of_characters(without_labels(corpus))
    at = fit.segmenter.index.encode(text).node[:, 4]  # 年
    assert [fit.segmenter.index.node_text(a) for a in at] == [
        "bias",
        "word[-1]=8",
        "word[0]=年",
        "word[1]=大",
        "word[-1]|word[0]=8|年",
        "word[0]|word[1]=年|大",
        "word[-1]|word[1]=8|大",
        "class[-1]|class[0]|class[1]=N|D|O",
    ]
    words = fit.columns.of_words(corpus_of([[word for word, _ in line] for line in TWO]))
    assert fit.tagger is not None
    at = fit.tagger.index.encode(words).node[:, 1]  # 大上
    assert [fit.tagger.index.node_text(a) for a in at] == [
        "bias",
        "word[-2]=_B-1",
        "word[-1]=1998年",
        "word[0]=大上",
        "word[1]=看",
        "word[2]=x",
        "word[-1]|word[0]=1998年|大上",
        "word[0]|word[1]=大上|看",
        "word[-1]|word[1]=1998年|看",
        "word.prefix1[0]=大",
        "word.prefix2[0]=大上",
        "word.suffix1[0]=上",
        "word.suffix2[0]=大上",
        "length[0]=2",
        "pattern[0]=O",
    ]
    assert fit.tagger.index.node_text(fit.tagger.index.encode(words).node[-2, 0]) == "length[0]=4+"
    assert fit.tagger.index.node_text(fit.tagger.index.encode(words).node[-1, 0]) == "pattern[0]=ND"


def test_the_tagger_learns_from_gold_words_and_tags_predicted_ones(data: dict[str, Corpus]) -> None:
    fit, run = fitted(problem_of(data["train"]))
    assert run.trace["pipeline"]["words"] == len(words_of(data["train"]))
    assert set(run.timing) == {"features", "train"}
    assert {"iterations", "status"} <= set(run.trace["pipeline"]["tagger"])
    assert run.trace["pipeline"]["segmenter"]["n_weights"] == fit.segmenter.layout.size
    json.dumps(run.trace)
    fit.segmenter.weights[:] = 0.0
    fit.segmenter.layout.part(fit.segmenter.weights, "state").reshape(-1, 4)[:, 3] = (
        1.0  # S everywhere
    )
    predicted = [fit.labels[code] for code in fit.predict(without_labels(data["test"]))]
    assert {label[0] for label in predicted} == {"S"}
    assert len(set(predicted)) > 2


def test_a_word_has_one_tag_and_a_pair_may_be_new() -> None:
    """Whatever the weights, and for tags whose borders were not all seen."""
    corpus = characters(as_words([[("天上", "NN"), ("看", "VV")]]), {})
    fit = fitted(problem_of(corpus))[0]
    assert fit.labels == ("B-NN", "M-NN", "E-NN", "S-NN", "B-VV", "M-VV", "E-VV", "S-VV")
    assert fit.tagger is not None
    text = without_labels(splits(1, 20)["test"])
    rng = np.random.default_rng(0)
    seen = set[str]()
    for _ in range(5):
        for crf in (fit.segmenter, fit.tagger):
            crf.weights[:] = rng.normal(0, 3, crf.layout.size)
        labels = [fit.labels[code] for code in fit.predict(text).tolist()]
        seen |= set(labels)
        for lo, hi in zip(text.offsets[:-1], text.offsets[1:], strict=True):
            line = labels[lo:hi]
            shapes = [
                "".join(label[0] for label in line[s.start : s.end]) + " " + s.type
                for s in spans_of(line, "BMES")
            ]
            for shape in shapes:
                borders, tag = shape.split(" ")
                n = len(borders)
                assert borders == ("S" if n == 1 else "B" + "M" * (n - 2) + "E")
                assert tag in ("NN", "VV")
    assert "S-NN" in seen
    assert "M-VV" in seen


def test_a_sentence_that_would_end_inside_a_word() -> None:
    corpus = characters(as_words([[("天上下", "NN")]]), {})
    crf = ChainModel().prepare(
        TemplateFeaturizer(["bias"]),
        corpus,
        np.zeros(3, np.int32),
        BORDERS,
        transition_mask=border_mask(),
    )
    crf.weights[BORDERS.index("M")] = 5.0
    assert [BORDERS[code] for code in crf.predict(corpus)] == ["B", "M", "M"]
    assert [BORDERS[code] for code in Pipeline(crf, None).predict(corpus)] == ["B", "M", "E"]


def test_without_tags(data: dict[str, Corpus]) -> None:
    plain = splits(60, 30, tags=False)
    problem = problem_of(plain["train"])
    assert (problem.task, problem.labels) == ("segmentation", ("B", "E", "M", "S"))
    fit, run = fitted(problem)
    assert fit.tagger is None
    assert fit.labels == BORDERS
    assert right(fit, plain["test"]) == 1.0
    assert set(run.trace["pipeline"]) == {"words", "segmenter"}


def test_the_parameters_reach_both_steps(data: dict[str, Corpus]) -> None:
    problem = problem_of(data["train"])
    usual, smooth = fitted(problem)[0], fitted(problem, sigma2=0.01)[0]
    rare = fitted(problem, min_count=5)[0]
    for part in ("segmenter", "tagger"):
        one, other, few = (getattr(fit, part) for fit in (usual, smooth, rare))
        assert abs(other.weights).max() < abs(one.weights).max()
        assert few.layout.size < one.layout.size


def test_a_saved_pipeline(pipeline: Pipeline, data: dict[str, Corpus], tmp_path: Path) -> None:
    text = without_labels(data["test"])
    pipeline.save(tmp_path / "model")
    tagger = load_tagger(tmp_path / "model", registry())
    assert tuple(tagger.tagger.labels) == pipeline.labels
    fresh = without_labels(characters(as_words(sentences(30, 1)), {}))  # other vocabularies
    for corpus in (text, fresh):
        np.testing.assert_array_equal(tagger.tag(corpus), pipeline.predict(text))
    kind, arrays, facts = read_model(tmp_path / "model")
    assert kind == "pipeline_st"
    # no segmenter; one that knows other labels
    other = {k.replace("tagger.", "segmenter."): v for k, v in arrays.items() if "tagger." in k}
    own = facts["tagger"]
    for wrong, about in ((arrays, {"tagger": own}), (other, {"segmenter": own})):
        write_model(tmp_path / "broken", kind, wrong, about)
        with pytest.raises(UserError, match="cannot be restored: ValueError: no segmenter with"):
            load_tagger(tmp_path / "broken", registry())


def test_a_saved_segmenter(tmp_path: Path) -> None:
    plain = splits(20, 5, tags=False)
    fit = fitted(problem_of(plain["train"]))[0]
    fit.save(tmp_path / "model")
    again = load_tagger(tmp_path / "model", registry()).tagger
    assert tuple(again.labels) == BORDERS
    np.testing.assert_array_equal(again.predict(plain["test"]), fit.predict(plain["test"]))
