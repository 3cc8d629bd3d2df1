"""A pipeline that has read automatically analyzed text."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sslbench.engine.corpus import Corpus, CorpusShards, Vocabulary
from sslbench.engine.crf import read_model, write_model
from sslbench.engine.errors import UserError
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem, without_labels
from sslbench.experiment.run.saved import load_tagger
from sslbench.plugins import registry
from sslbench_datasets.chinese.text import characters
from sslbench_methods.chinese.cluster_features import (
    AutoText,
    ClusterFeatures,
    ListColumns,
    word_lists,
)
from sslbench_methods.chinese.pipeline_st import SEGMENTATION, TAGGING, Pipeline, PipelineST
from sslbench_methods.chinese.words import GoldWords, word_text
from support.word_fakes import as_words, problem_of, right, sentences, splits

SMALL = {"coarse": 3, "fine": 8, "dimensions": 4}
GROUPS = ("ngrams", "clusters", "lexicon")


def fitted(problem: Problem, **options: Any) -> tuple[Pipeline, RunContext]:
    run = RunContext()
    return ClusterFeatures().fit(problem, ClusterFeatures.Params(**{**SMALL, **options}), run), run


@pytest.fixture(scope="module")
def data() -> dict[str, Corpus]:
    return splits(20, 30, dev=60)


@pytest.fixture(scope="module")
def problem(data: dict[str, Corpus]) -> Problem:
    return problem_of(data["train"], CorpusShards(without_labels(data["dev"]), 300))


@pytest.fixture(scope="module")
def found(problem: Problem) -> tuple[Pipeline, RunContext]:
    return fitted(problem)


def test_the_record(found: tuple[Pipeline, RunContext], problem: Problem) -> None:
    fit, run = found
    assert set(run.timing) == {"features", "train", "analyze", "lists"}
    json.dumps(run.trace)
    trace = run.trace
    assert set(trace) == {"baseline", "analyzed", "lists", "final"}
    lists = trace["lists"]
    words = lists["distinct_words"]
    assert sum(lists["lexicon"]) == sum(lists["coarse"]) == sum(lists["fine"]) == words
    assert (len(lists["coarse"]), len(lists["fine"])) == (4, 9)
    assert sum(lists["both"]) > sum(lists["left"]) > 0
    assert trace["analyzed"]["words"] > words > 20
    for step in ("segmenter", "tagger"):
        assert trace["final"][step]["n_weights"] > trace["baseline"][step]["n_weights"]
    assert fit.labels == PipelineST().fit(problem, PipelineST.Params(), RunContext()).labels


def test_the_lists_are_those_of_the_analyzed_text(problem: Problem) -> None:
    """Lexicon and word counts again, from the baseline's own predictions as strings."""
    base = PipelineST().fit(problem, PipelineST.Params(), RunContext())
    params = ClusterFeatures.Params(**SMALL, cluster_min_count=3)
    text = AutoText.of(base, problem.unlabeled)
    lists = word_lists(text, params, np.random.default_rng(0))
    assert lists is not None
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    borders: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for shard in problem.unlabeled:
        labels = [base.labels[code] for code in base.predict(shard).tolist()]
        for i in range(shard.n_sentences):
            line, word = shard.sentence(i, "word"), ""
            own = labels[shard.offsets[i] : shard.offsets[i + 1]]
            for before, here, label in zip(["<s>", *line], line, own, strict=False):
                borders[before, here][label[0]] += 1
                word += here
                if label[0] in "ES":
                    counts[word][label[2:]] += 1
                    word = ""
    assert lists.words == sorted(counts)
    totals = {word: counter.total() for word, counter in counts.items()}
    for word, code in zip(lists.words, lists.codes["lexicon"].tolist(), strict=True):
        tag, kind = lists.names["lexicon"][code].split("/")
        assert counts[word][tag] == max(counts[word].values())
        as_frequent = sum(total >= totals[word] for total in totals.values()) / len(totals)
        assert kind == ("H" if as_frequent <= 0.05 else "M" if as_frequent <= 0.2 else "L")
    for name in ("coarse", "fine"):
        clustered = [
            word for word, code in zip(lists.words, lists.codes[name], strict=True) if code
        ]
        assert clustered == [word for word in lists.words if totals[word] >= 3]
    ngrams = text.ngrams.lists()
    annotated = ngrams.annotate(problem.labeled)
    line, entries = problem.labeled.sentence(0, "word"), annotated.sentence(0, "left")
    for before, here, entry in zip(["<s>", *line], line, entries, strict=False):
        counter = borders.get((before, here))
        assert (entry == "N") == (counter is None)
        assert counter is None or counter[entry[0]] == max(counter.values())


def test_the_features(found: tuple[Pipeline, RunContext], problem: Problem) -> None:
    fit = found[0]
    assert isinstance(fit.columns, ListColumns)
    text = fit.columns.of_characters(problem.labeled)
    at = fit.segmenter.index.encode(text).node[:, 0]
    shown = [fit.segmenter.index.node_text(a) for a in at][len(SEGMENTATION) :]
    assert shown == [
        f"{name}[0]={text.column(name).strings()[0]}" for name in ("left", "right", "both")
    ]
    gold = GoldWords.of(problem)
    words = fit.columns.of_words(word_text(problem.labeled, gold.words, Vocabulary()))
    assert fit.tagger is not None
    at = fit.tagger.index.encode(words).node[:, 1]
    shown = [fit.tagger.index.node_text(a) for a in at][len(TAGGING) :]
    window = {"lexicon": [0], "coarse": [-1, 0, 1], "fine": [-1, 0, 1]}
    assert shown == [
        f"{name}[{k}]={words.column(name).strings()[1 + k]}"
        for name in window
        for k in window[name]
    ]


def test_what_it_has_read_helps() -> None:
    """A word whose characters are new is found between verbs in the text, twice in a row here."""
    nouns = ["天上", "地下", "山里水外", "木前金后", "人左火右"]
    lines = [
        [("看", "VV"), (a, "NN"), ("听", "VV"), (b, "NN"), ("说", "VV")]
        for a in nouns
        for b in nouns
    ]
    lines.append([("看", "VV"), ("天上", "NN"), ("地下", "NN"), ("听", "VV")])
    read = [
        [("看", "VV"), ("甲乙", "NN"), ("听", "VV"), (a, "NN"), ("说", "VV")] for a in nouns * 5
    ]
    asked = [[("看", "VV"), ("甲乙", "NN"), ("甲乙", "NN"), ("听", "VV")]]
    vocabularies: dict[str, Vocabulary] = {}
    labeled, text, test = (characters(as_words(t), vocabularies) for t in (lines, read, asked))
    problem = problem_of(labeled, CorpusShards(without_labels(text)))
    alone = PipelineST().fit(problem, PipelineST.Params(), RunContext())
    assert right(alone, text) == 1.0
    assert right(alone, test) < 1.0
    assert right(fitted(problem)[0], test) == 1.0


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_that_is_left_out(group: str, problem: Problem) -> None:
    """The step that it serves is that of the pipeline when it is the only group."""
    alone = PipelineST().fit(problem, PipelineST.Params(), RunContext())
    fit, run = fitted(problem, **{name: name == group for name in GROUPS})
    assert alone.tagger is not None
    assert fit.tagger is not None
    same_segmenter = np.array_equal(fit.segmenter.weights, alone.segmenter.weights)
    same_tagger = np.array_equal(fit.tagger.weights, alone.tagger.weights)
    assert (same_segmenter, same_tagger) == (group != "ngrams", group == "ngrams")
    names = {
        "ngrams": {"left", "right", "both"},
        "clusters": {"distinct_words", "coarse", "fine"},
        "lexicon": {"distinct_words", "lexicon"},
    }
    assert set(run.trace["lists"]) == names[group]


def test_without_text_it_is_the_pipeline(data: dict[str, Corpus]) -> None:
    problem = problem_of(data["train"])
    fit, run = fitted(problem)
    alone = PipelineST().fit(problem, PipelineST.Params(), RunContext())
    np.testing.assert_array_equal(fit.predict(data["test"]), alone.predict(data["test"]))
    assert set(run.trace) == {"baseline"}


def test_words_too_rare_to_be_clustered(problem: Problem) -> None:
    fit, run = fitted(problem, cluster_min_count=10_000)
    words = run.trace["lists"]["distinct_words"]
    assert run.trace["lists"]["fine"] == [words] + [0] * 8
    assert right(fit, problem.labeled) == 1.0


def test_without_tags() -> None:
    data = splits(20, 30, tags=False, dev=60)
    problem = problem_of(data["train"], CorpusShards(without_labels(data["dev"])))
    fit, run = fitted(problem)
    assert fit.tagger is None
    assert right(fit, data["test"]) > 0.98
    assert set(run.trace["lists"]) == {"left", "right", "both"}


def test_shards_do_not_matter(found: tuple[Pipeline, RunContext], data: dict[str, Corpus]) -> None:
    text = without_labels(data["dev"])
    whole, run = fitted(problem_of(data["train"], CorpusShards(text)))
    fit = found[0]
    assert run.trace == found[1].trace
    assert fit.tagger is not None
    assert whole.tagger is not None
    np.testing.assert_array_equal(whole.segmenter.weights, fit.segmenter.weights)
    np.testing.assert_array_equal(whole.tagger.weights, fit.tagger.weights)


def test_a_saved_tagger(
    found: tuple[Pipeline, RunContext], data: dict[str, Corpus], tmp_path: Path
) -> None:
    fit, text = found[0], without_labels(data["test"])
    fit.save(tmp_path / "model")
    tagger = load_tagger(tmp_path / "model", registry())
    fresh = without_labels(characters(as_words(sentences(30, 1)), {}))  # other vocabularies
    for corpus in (text, fresh):
        np.testing.assert_array_equal(tagger.tag(corpus), fit.predict(text))
    kind, arrays, facts = read_model(tmp_path / "model")
    assert kind == "cluster_features"
    write_model(
        tmp_path / "broken", kind, {**arrays, "words.list.fine": arrays["words.ends"]}, facts
    )
    with pytest.raises(UserError, match=r"the model cannot be restored: ValueError: array list\.f"):
        load_tagger(tmp_path / "broken", registry())
