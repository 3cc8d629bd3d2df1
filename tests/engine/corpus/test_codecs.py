"""Label codecs: the second-order encoding of named entities.

Source: docs/specs/jess_cm.md, oracle 14.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sslbench import (
    Column,
    Corpus,
    Dataset,
    Problem,
    Template,
    TemplateFeaturizer,
    Vocabulary,
    registry,
)
from sslbench.engine.corpus import CorpusShards, PreviousType
from sslbench.engine.crf import ChainModel, TrainingParams
from sslbench.engine.errors import UserError
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import DecodedTagger, relabeled, without_labels
from sslbench.experiment.inputs.protocol import Sample
from sslbench.experiment.metrics import metrics_from_counts
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import ProtocolSpec, RunSpec
from sslbench.experiment.run.fitting import Session
from sslbench.experiment.run.saved import load_tagger, save_tagger
from sslbench.experiment.run.training import Trained, train

TYPES = ("LOC", "MISC", "ORG", "PER")
TAGS = ("O", *(f"{prefix}-{kind}" for kind in TYPES for prefix in "BI"))


def corpus(sentences: list[list[str]], words: Vocabulary | None = None) -> Corpus:
    """Sentences of tags; the word is the tag's type in lower case."""
    words, labels = words or Vocabulary(), Vocabulary()
    flat = [tag for sentence in sentences for tag in sentence]
    forms = [f"w{tag[2:].lower()}" for tag in flat]
    columns = {
        "word": Column(words, words.encode(forms)),
        "label": Column(labels, labels.encode(flat)),
    }
    return Corpus(columns, np.cumsum([0, *map(len, sentences)]))


def well_formed(tags: list[str]) -> bool:
    return all(
        tag[0] != "I" or before in (f"B{tag[1:]}", tag)
        for before, tag in zip(["O", *tags], tags, strict=False)
    )


def pairs(tags: list[str]) -> list[str]:
    """By the definition: the type before, a bar, the tag."""
    before = ["O", *((tag[2:] or "O") for tag in tags[:-1])]
    return [f"{kind}|{tag}" for kind, tag in zip(before, tags, strict=True)]


@st.composite
def iob2(draw_: st.DrawFn) -> list[str]:
    tags: list[str] = []
    for wish in draw_(st.lists(st.sampled_from(TAGS), min_size=1, max_size=8)):
        tags.append(wish if well_formed([*tags, wish]) else f"B{wish[1:]}")
    return tags


def test_four_types_give_the_29_labels_of_the_paper() -> None:
    codec = PreviousType(TAGS)
    assert len(codec.labels) == len(set(codec.labels)) == 29
    assert codec.transition_mask.shape == (30, 29)
    assert codec.transition_mask[:-1].sum() == 169
    assert codec.transition_mask[-1].sum() == 5
    after_outside = [
        codec.transition_mask[i].sum() for i, tag in enumerate(codec.tags) if tag == "O"
    ]
    after_entity = [
        codec.transition_mask[i].sum() for i, tag in enumerate(codec.tags) if tag != "O"
    ]
    assert set(after_outside) == {5}
    assert set(after_entity) == {6}


@settings(max_examples=60)
@given(st.lists(iob2(), min_size=1, max_size=5))
def test_encoding_follows_the_definition_and_is_legal(sentences: list[list[str]]) -> None:
    codec = PreviousType(TAGS)
    coded = codec.encode(corpus(sentences)).column("label").strings()
    assert coded == [pair for tags in sentences for pair in pairs(tags)]
    tag_of = dict(zip(codec.labels, codec.tags, strict=True))
    assert [tag_of[label] for label in coded] == [tag for tags in sentences for tag in tags]
    number = {label: code for code, label in enumerate(codec.labels)}
    for tags in sentences:
        codes = [number[label] for label in pairs(tags)]
        transitions = zip([len(codec.labels), *codes], codes, strict=False)
        assert all(codec.transition_mask[transition] for transition in transitions)


def test_legal_paths_are_the_well_formed_taggings() -> None:
    codec = PreviousType(("O", "B-PER", "I-PER", "B-LOC"))
    found = set()
    for path in product(range(len(codec.labels)), repeat=3):
        transitions = zip([len(codec.labels), *path], path, strict=False)
        if all(codec.transition_mask[transition] for transition in transitions):
            tags = [codec.tags[code] for code in path]
            assert well_formed(tags)
            assert pairs(tags) == [codec.labels[code] for code in path]
            found.add(tuple(tags))
    possible = ("O", "B-PER", "I-PER", "B-LOC")
    assert found == {tags for tags in product(possible, repeat=3) if well_formed(list(tags))}


@pytest.mark.parametrize("tag", ["NN", "B", "B-O", "S-PER", "E-LOC"])
def test_other_labels_are_refused(tag: str) -> None:
    with pytest.raises(UserError, match="cannot be paired"):
        PreviousType(("O", tag))


# --- in a run -----------------------------------------------------------------------------------


def pieces(n: int, seed: int) -> Corpus:
    """Two neighboring entities of a type, and an I- only after its own type."""
    rng = np.random.default_rng(seed)
    bits = [["O"], ["B-PER", "I-PER"], ["B-PER"], ["B-LOC"], ["B-ORG", "I-ORG", "I-ORG"]]
    made = [[tag for i in rng.integers(0, 5, 3) for tag in bits[i]] for _ in range(n)]
    return corpus(made)


def bench(tmp_path: Path, method: str) -> Trained:
    train_, test = pieces(40, 0), pieces(25, 1)
    vocabularies = {name: column.vocabulary for name, column in train_.columns.items()}
    splits = {
        "train": train_,
        "test": Corpus(
            {
                name: Column(vocabularies[name], vocabularies[name].encode(c.strings()))
                for name, c in test.columns.items()
            },
            test.offsets,
        ),
    }
    dataset = Dataset("pieces", "spans", "f1", "IOB2", splits, codec=PreviousType)
    spec = RunSpec(
        method=method,
        dataset="pieces",
        featurizer="basic",
        model="crf1",
        params={"sigma2": 1.0},
        protocol=ProtocolSpec(labeled=20, seed=0),
    )
    session = Session.open(RunTask(spec, "f1"), registry())
    return train(session, Sample.of(spec, dataset))


@pytest.mark.parametrize("method", ["supervised", "self_training", "jess_cm"])
def test_every_method_predicts_well_formed_tags(tmp_path: Path, method: str) -> None:
    trained = bench(tmp_path, method)
    assert "PER|B-PER" in trained.problem.labels
    assert trained.problem.transition_mask is not None
    assert isinstance(trained.tagger, DecodedTagger)
    test = without_labels(trained.sample.dataset.splits["test"])
    codes = trained.tagger.predict(test)
    tags = [trained.tagger.labels[code] for code in codes]
    for start, end in zip(test.offsets[:-1], test.offsets[1:], strict=True):
        assert well_formed(tags[start:end])
    assert set(tags) >= {"O", "B-PER", "I-PER", "B-ORG"}


def test_a_saved_tagger_still_predicts_tags(tmp_path: Path) -> None:
    trained = bench(tmp_path, "supervised")
    save_tagger(tmp_path / "model", trained, registry())
    tagger = load_tagger(tmp_path / "model", registry())
    test = trained.sample.dataset.splits["test"]
    codes = tagger.tag(test)
    assert tagger.texts(test, codes) == [
        trained.tagger.labels[code] for code in trained.tagger.predict(without_labels(test))
    ]
    assert metrics_from_counts(tagger.counts(test, codes)[0])["f1"] > 0.5


def problem(text: Corpus) -> Problem:
    labeled = relabeled(text.select(np.arange(text.n_sentences)))
    return Problem(
        task="spans",
        encoding="IOB2",
        labels=tuple(labeled.column("label").vocabulary.strings),
        labeled=labeled,
        unlabeled=CorpusShards(text.drop("label")),
        dev=text,
        featurizer=TemplateFeaturizer((Template.parse("word[0]"),)),
        model=ChainModel(),
    )


def test_the_coded_chain_sees_the_type_two_tokens_before() -> None:
    """The third tag repeats the first; the O between them hides it from a chain over tags."""
    words = Vocabulary()
    text = corpus([["B-PER", "O", "B-PER"], ["B-LOC", "O", "B-LOC"]] * 6, words)
    forms = [form for first in ("x", "y") for form in (first, "between", "last")]
    text = text.with_column("word", Column(words, words.encode(forms * 6)))
    plain = problem(text)
    coded = plain.coded(PreviousType(plain.labels))
    assert coded.crf(TrainingParams()).backoff_tags is None
    shared = plain.coded(PreviousType(plain.labels, backoff=True))
    assert shared.crf(TrainingParams()).backoff_tags == shared.tags == coded.tags
    assert coded.dev is not None
    assert coded.tags is not None
    gold = text.column("label").strings()
    assert [coded.tags[code] for code in coded.label_codes(coded.dev)] == gold
    right = {}
    for name, posed in (("plain", plain), ("coded", coded)):
        method = registry().method("supervised").load()
        fit = method().fit(posed, method.Params(), RunContext(0))
        labels = posed.tags or posed.labels
        guess = [labels[code] for code in fit.predict(without_labels(text))]
        right[name] = sum(map(str.__eq__, guess, gold))
    assert right == {"plain": 30, "coded": 36}
