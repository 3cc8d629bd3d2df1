"""Programs that give weak labels: lists of phrases and patterns, and where their labels go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import sslbench
from sslbench.engine.corpus import Corpus, CorpusShards
from sslbench.engine.crf import ChainModel
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.inputs.problem import Problem
from sslbench.experiment.inputs.protocol import Sample, no_text
from sslbench.experiment.inputs.weak_sources import with_sources
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import ProtocolSpec, RunSpec
from sslbench.experiment.request.request import RunRequest
from sslbench.testing.toys import toy_dataset
from sslbench_methods.weak.sources import Gazetteer, Patterns, SourceParams

TEXT = [["Ada", "Lovelace", "met", "Ada"], ["in", "New", "York", "on", "12", "May"]]
NAMES = "PER\tAda\nPER\tAda Lovelace\n\nLOC\tNew York\n"
RULES = "DATE\t\\d+ May\nX\tork\nNUM\t\\d+\nPER\tA\\w+\n"


def problem(encoding: str | None = "IOB2") -> Problem:
    corpus = Corpus.from_sentences(
        {"word": TEXT, "label": [["B-PER", "I-PER", "O", "O"], ["O"] * 6]}
    )
    task = "tagging" if encoding is None else "spans"
    text = CorpusShards(corpus.drop("label"))
    labels = ("B-PER", "I-PER", "O")
    featurizer = TemplateFeaturizer(["word[0]"])
    return Problem(task, encoding, labels, corpus, text, None, featurizer, ChainModel())


def labels_of(source: Any, file: Path, encoding: str | None = "IOB2", **params: Any) -> list[Any]:
    given = SourceParams(file=str(file), **params)
    rich = with_sources(problem(encoding), {"x": (source, given)})
    (shard,) = rich.unlabeled
    assert shard.sentences("weak:x") == rich.labeled.sentences("weak:x")
    return shard.sentences("weak:x")


def test_the_longest_phrase_counts(tmp_path: Path) -> None:
    file = tmp_path / "names.tsv"
    file.write_text(NAMES)
    assert labels_of(Gazetteer(), file) == [
        ["B-PER", "I-PER", "O", "B-PER"],
        ["O", "B-LOC", "I-LOC", "O", "O", "O"],
    ]
    silent = labels_of(Gazetteer(), file, None)
    assert silent == [["PER", "PER", "_", "PER"], ["_", "LOC", "LOC", "_", "_", "_"]]
    file.write_text(NAMES.lower().replace("per", "PER"))
    assert labels_of(Gazetteer(), file)[0] == ["O"] * 4
    assert labels_of(Gazetteer(), file, ignore_case=True)[0] == ["B-PER", "I-PER", "O", "B-PER"]


def test_patterns_match_whole_words(tmp_path: Path) -> None:
    file = tmp_path / "patterns.tsv"
    file.write_text(RULES)
    assert labels_of(Patterns(), file, outside="_") == [
        ["B-PER", "_", "_", "B-PER"],
        ["_", "_", "_", "_", "B-DATE", "I-DATE"],
    ]


@pytest.mark.parametrize(
    ("source", "text", "says"),
    [
        (Gazetteer(), "PER Ada\n", r"x\.tsv:1: the line has another form"),
        (Gazetteer(), "PER\tAda\n\nPER\t\n", r"x\.tsv:3: the line has another form"),
        (Gazetteer(), "\n", r"x\.tsv: no line in the file"),
        (Patterns(), "PER\t(\n", r"x\.tsv:1: the expression '\(' is wrong"),
    ],
)
def test_wrong_lines(tmp_path: Path, source: Any, text: str, says: str) -> None:
    file = tmp_path / "x.tsv"
    file.write_text(text)
    with pytest.raises(UserError, match=says):
        labels_of(source, file)
    with pytest.raises(UserError, match="needs its file"):
        source.open(problem(), SourceParams())


def test_a_source_that_gives_no_labels_of_the_tokens() -> None:
    class Wrong:
        def __init__(self, entries: list[str]) -> None:
            self.entries = entries

        def open(self, problem: Problem, params: Any) -> Any:
            return lambda corpus: self.entries

    for entries, says in ((["O"], "gave 1 labels for 10 tokens"), (["PER"] * 10, "no IOB2 label")):
        source: Any = Wrong(entries)
        with pytest.raises(RuntimeError, match=says):
            with_sources(problem(), {"x": (source, None)})


def planned(folder: Path, method: str, *params: str, **given: Any) -> RunTask:
    request = RunRequest(
        method=method, data=folder, columns=("word", "label"), params=params, **given
    )
    (task,) = plan(request, store=None, notice=lambda text: None)
    return task


def test_identity_and_a_tagger_from_a_folder(tmp_path: Path) -> None:
    rows = [["Ada B-PER", "ran O"], ["Bob B-PER", "sat O"], ["he O", "ran O"]] * 4
    folder, names = tmp_path / "mine", tmp_path / "names.tsv"
    folder.mkdir()
    (folder / "train.txt").write_text("\n\n".join(map("\n".join, rows)))
    (folder / "unlabeled.txt").write_text("\n\n".join(["Cid\nsat", "Cid\nran", "he\nsat"] * 20))
    names.write_text("PER\tCid\nPER\tAda\nPER\tBob\n")
    file, weak = f"gazetteer.file={names}", {"weak_sources": "gazetteer"}
    plain = planned(folder, "supervised")
    assert planned(folder, "supervised", file, **weak).spec == plain.spec  # it reads none
    assert "weak" not in msgspec.to_builtins(plain.spec)
    assert "without weak labels" in (planned(folder, "noisy_channel").skip_reason or "")
    one = planned(folder, "noisy_channel", file, **weak)
    assert one.spec.title == "noisy_channel + gazetteer"
    assert "weak gazetteer" in one.code
    tagger = sslbench.train(
        "noisy_channel", data=folder, columns=("word", "label"), params=[file], **weak
    )
    assert tagger.predict([["Cid", "ran"]]) == [["B-PER", "O"]]
    names.write_text("PER\tCid\n")
    assert planned(folder, "noisy_channel", file, **weak).spec.run_id != one.spec.run_id


def test_with_sources_models_have_tags_as_labels_also_where_a_dataset_has_a_codec() -> None:
    data = toy_dataset("spans", codec=True)
    protocol = ProtocolSpec(labeled=12, text="rest", seed=0)
    labels = []
    for weak in (msgspec.UNSET, {"gazetteer": {"file": "names.tsv"}}):
        spec = RunSpec("noisy_channel", "toy", "toy", "toy", {}, protocol, weak=weak)
        sample = Sample.of(spec, data)
        made = sample.problem(sample.drawn.labeled, no_text(data), None, None)
        labels.append(made.labels)
        assert (made.tags is None) == (weak is not msgspec.UNSET)
    assert all("|" in label for label in labels[0])
    assert all(label == "O" or label[1] == "-" for label in labels[1])
