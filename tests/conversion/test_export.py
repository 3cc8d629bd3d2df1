"""A saved tagger as a model of CRFsuite: its own reader gives the same labels and probabilities."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from sslbench.conversion.crfsuite_file import hash_of
from sslbench.conversion.export import Exported
from sslbench.engine.corpus.tokens import corpus_of
from sslbench.engine.crf import ChainCRF, ChainModel
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.run.saved import SavedTagger, load_tagger
from sslbench.plugins import registry
from support.chunk_text import chunks
from support.command import sslbench

pycrfsuite = pytest.importorskip("pycrfsuite", reason="needs python-crfsuite")

STRANGE = [["a|b", "c", "a"], ["a", "b|c", ":", "x:1"], ["\\", "a=b", "a\\:b"], ["日本", "é"]]
TEMPLATES = ["bias", "word[0]", "word[-1]|word[0]", "word.suffix2[0]", "bag: word[1..2]"]


def run(*words: object) -> Result:
    return sslbench(*words)


def small_crf(templates: list[str] = TEMPLATES, order: int = 1, **more: object) -> ChainCRF:
    """Random weights over the strange words."""
    corpus = corpus_of(STRANGE, ["word"])
    codes = np.arange(corpus.n_tokens, dtype=np.int32) % 3
    model = ChainModel(order)
    crf = model.prepare(TemplateFeaturizer(templates), corpus, codes, ["O", "B-x", "I:y"], **more)  # type: ignore[arg-type]
    crf.weights = np.random.default_rng(1).normal(size=crf.layout.size)
    return crf


def same(saved: SavedTagger, model: Path, sentences: list[list[str]]) -> None:
    """Labels and probabilities of CRFsuite are ours."""
    exported, other = Exported.of(saved), pycrfsuite.Tagger()
    other.open(str(model))
    names = saved.labels
    for sentence, ours in zip(sentences, saved.predict_proba(sentences), strict=True):
        corpus = corpus_of([sentence], ["word"])
        items = exported.attributes(corpus)
        assert other.tag(items) == [names[code] for code in saved.tag(corpus)]
        other.set(items)
        theirs = [[other.marginal(name, i) for name in names] for i in range(len(sentence))]
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("support", ["all", "observed"])
def test_crfsuite_reads_the_same_model(tmp_path: Path, ends: bool, support: str) -> None:
    crf = small_crf(use_start=ends, use_stop=ends, state_support=support)
    saved = SavedTagger(crf, None)
    Exported.of(saved).model().write(tmp_path / "model")
    same(saved, tmp_path / "model", [*STRANGE, ["unknown"], ["c", "a", "b|c", "new", "é"]])


def test_names_of_attributes_are_distinct() -> None:
    exported = Exported(small_crf())
    texts = [exported.crf.index.node_text(i) for i in range(exported.crf.index.n_node)]
    assert len(set(texts)) < len(texts)  # a|b, c and a, b|c
    assert len(set(exported.names)) == len(texts)


def test_the_command_and_the_attributes_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(chunks(40, "IOB2", " "))
    (tmp_path / "new.txt").write_text(chunks(10, "IOB2", " ", seed=1))
    model, out = tmp_path / "my.model", tmp_path / "my.crfsuite"
    given = ["--data", tmp_path / "train.txt", "--columns", "word,label", "--save", model]
    assert run("train", "--method", "supervised", *given).exit_code == 0
    result = run("convert", model, out)
    assert result.exit_code == 0, result.output
    assert "sslbench tag" in result.stderr
    result = run("tag", model, tmp_path / "new.txt", "--format", "crfsuite")
    assert result.exit_code == 0, result.output
    tagger, n_sentences = pycrfsuite.Tagger(), 0
    tagger.open(str(out))
    for block in result.stdout.split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines()]
        if rows:
            items = [[re.sub(r"\\(.)", r"\1", text) for text in row[1:]] for row in rows]
            assert tagger.tag(items) == [row[0] for row in rows]
            n_sentences += 1
    assert n_sentences == 10


@pytest.mark.parametrize(
    ("crf", "reason"),
    [
        (lambda: small_crf(order=2), "second order"),
        (lambda: small_crf([*TEMPLATES, "edge: word[0]"]), "transitions depend on the words"),
        (lambda: small_crf(transition_mask=np.eye(4, 3, dtype=bool)), "forbidden"),
    ],
)
def test_what_has_no_counterpart_is_refused(tmp_path: Path, crf: object, reason: str) -> None:
    crf().save(tmp_path / "my.model")  # type: ignore[operator]
    result = run("convert", tmp_path / "my.model", tmp_path / "out")
    assert result.exit_code == 2
    assert reason in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_tagger_of_another_kind_is_refused(tmp_path: Path) -> None:
    result = run(
        *("train", "--method", "jess_cm", "--dataset", "synth", "--labeled", "20"),
        *("--set", "rounds=1", "--save", tmp_path / "my.model"),
    )
    assert result.exit_code == 0, result.output
    result = run("convert", tmp_path / "my.model", tmp_path / "out")
    assert result.exit_code == 2
    assert "more than a CRF" in result.stderr


def test_the_hash_is_lookup3() -> None:
    assert hash_of(b"Four score and seven years ago") == 0x17770551  # of its public self-test


def test_exports_can_come_back(tmp_path: Path) -> None:
    crf = small_crf(["bias", "word[0]", "word[-1]|word[0]", "word.suffix2[0]"])
    saved = SavedTagger(crf, None)
    Exported.of(saved).model().write(tmp_path / "model")
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    tagger.dump(str(tmp_path / "dump.txt"))
    result = run("convert", tmp_path / "dump.txt", tmp_path / "back.model")
    assert result.exit_code == 0, result.output
    back = load_tagger(tmp_path / "back.model", registry())
    assert back.columns == ("word",)
    sentences = [["c", "a", "日本"], ["é"], ["x:1", "\\", "a"]]
    order = [back.labels.index(name) for name in saved.labels]
    theirs = back.predict_proba(sentences)
    for a, b in zip(saved.predict_proba(sentences), theirs, strict=True):
        np.testing.assert_allclose(a, b[:, order], atol=1e-4)
