"""Weak labels: columns of a user's files, codes of a problem, figures, and where they never are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sslbench.engine.corpus import Column, Vocabulary
from sslbench.engine.crf import ChainModel
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.checks.weak_audit import audit_weak
from sslbench.experiment.data import Dataset
from sslbench.experiment.data.layout import Reading
from sslbench.experiment.data.userdata import columns_of, load_user_data
from sslbench.experiment.data.weak import weak_labels, without_weak
from sslbench.experiment.identity import external_hash, fingerprint
from sslbench.experiment.inputs.problem import Problem, without_labels
from sslbench.experiment.inputs.protocol import Sample
from sslbench.experiment.inputs.weak import with_weak_labels
from sslbench.experiment.records.record import DataSpec, ProtocolSpec, RunSpec

COLUMNS = ("word", "label", "weak:gaz", "weak:llm")
LABELED = "Ada B-PER\nLovelace I-PER\nran O\n\nLondon B-LOC\n\nhe O\nran O\n"
TEXT = "Bob B-PER _\nsat O I-ORG\n\nParis _ B-LOC\nRome I-LOC B-LOC\n"


def folder(tmp_path: Path, text: str = TEXT, labeled: str = LABELED) -> Path:
    (tmp_path / "train.txt").write_text(labeled)
    (tmp_path / "test.txt").write_text(LABELED)
    (tmp_path / "unlabeled.txt").write_text(text)
    return tmp_path


def weak_of(dataset: Dataset, name: str) -> list[list[str]]:
    assert dataset.external is not None
    return [s for shard in dataset.external() for s in shard.sentences(f"weak:{name}")]


def problem_of(dataset: Dataset, labeled: int | str = "all") -> Problem:
    protocol = ProtocolSpec(labeled=labeled, text="external")
    spec = RunSpec("supervised", "d", "basic", "crf1", {}, protocol, DataSpec(), "", "", 1)
    sample = Sample.of(spec, dataset)
    sentences = sample.drawn.labeled
    featurizer = TemplateFeaturizer(["word[0]"])
    return sample.problem(sentences, sample.text(sentences), featurizer, ChainModel())


@pytest.mark.parametrize("label", [True, False])
def test_columns_of_the_unlabeled_file(tmp_path: Path, label: bool) -> None:
    rows = TEXT.replace(" ", " O ", 1).splitlines()
    masked = "\n".join(" ".join([r.split()[0], "X", *r.split()[-2:]]) if r else "" for r in rows)
    data = load_user_data(folder(tmp_path, masked if label else TEXT), COLUMNS)
    assert weak_of(data, "gaz") == [["B-PER", "O"], ["_", "B-LOC"]]  # I after silence begins
    assert weak_of(data, "llm") == [["_", "B-ORG"], ["B-LOC", "B-LOC"]]
    train = data.splits["train"]
    assert set(train.column("weak:gaz").strings()) == {""}  # not read
    assert "weak:gaz" not in data.splits["test"].columns


def test_weak_labels_of_train_never_reach_the_test(tmp_path: Path) -> None:
    rich = "".join(f"{line} B-PER _\n" if line else "\n" for line in LABELED.split("\n")[:-1])
    file = folder(tmp_path, labeled=rich * 3) / "train.txt"
    data = load_user_data(file, COLUMNS)  # a fifth is held out
    assert set(data.splits["train"].columns) == {"word", "label", "weak:gaz", "weak:llm"}
    assert set(data.splits["test"].columns) == {"word", "label"}
    assert set(without_labels(data.splits["train"]).columns) == {"word"}
    folded = RunSpec(
        "supervised", "d", "basic", "crf1", {}, ProtocolSpec(folds=2), DataSpec(), "", "", 1
    )
    for fold in Sample.of(folded, data).folds():
        assert set(fold.dataset.splits["test"].columns) == {"word", "label"}


@pytest.mark.parametrize(
    ("text", "columns", "says"),
    [
        (
            "Bob PER _\n",
            COLUMNS,
            r"unlabeled\.txt:1: the weak label 'PER' of gaz does not fit IOB2",
        ),
        ("a O O\n\nBob O b\n", COLUMNS, r"unlabeled\.txt:3: .*'b' of llm"),
        (TEXT, ("word", "label", "weak:", "weak:b"), "has no name"),
        (TEXT, ("word", "label", "weak:b", "weak:b"), "two columns are called weak:b"),
    ],
)
def test_wrong_weak_labels(tmp_path: Path, text: str, columns: tuple[str, ...], says: str) -> None:
    with pytest.raises(UserError, match=says):
        weak_of(load_user_data(folder(tmp_path, text), columns), "gaz")


def test_text_without_weak_labels_and_names_in_line_1(tmp_path: Path) -> None:
    data = load_user_data(folder(tmp_path, "Bob\nsat\n"), COLUMNS)
    assert weak_of(data, "gaz") == [["", ""]]
    train = folder(tmp_path, labeled="word,label\nAda,B-PER\nran,O\n") / "train.txt"
    assert columns_of(train.parent, (*COLUMNS, "pos")) == COLUMNS


def test_plain_tags_and_other_schemes(tmp_path: Path) -> None:
    files = folder(tmp_path, "Bob N _\nsat V V\n", "a D\nb N\n")
    data = load_user_data(files, COLUMNS, reading=Reading(scheme="plain"))
    assert weak_of(data, "gaz") == [["N", "V"]]
    column = Column(Vocabulary(["S-A", "B-A", "E-A", "_"]), np.array([0, 1, 2, 3, 2], np.int32))
    written = weak_labels(column, np.array([0, 5]), "IOBES", "IOB2", Vocabulary())
    assert written.strings() == ["B-A", "B-A", "I-A", "_", "B-A"]


def test_codes_of_a_problem(tmp_path: Path) -> None:
    problem = problem_of(load_user_data(folder(tmp_path), COLUMNS))
    gaz, llm = problem.weak
    assert problem.labels == ("B-LOC", "B-PER", "I-PER", "O")
    assert (gaz.name, llm.name) == ("gaz", "llm")
    assert gaz.codes.tolist() == [-1] * 6 + [1, 3, -1, 0]
    assert llm.codes.tolist() == [-1] * 6 + [-1, -1, 0, 0]  # no labeled sentence has B-ORG
    assert gaz.read.tolist() == [False] * 6 + [True] * 4
    wide = with_weak_labels(problem)
    assert wide.labels == ("B-LOC", "B-ORG", "B-PER", "I-PER", "O")
    assert wide.weak[1].codes.tolist() == [-1] * 6 + [-1, 1, 0, 0]
    assert wide.labeled.sentences("label") == problem.labeled.sentences("label")


def test_figures(tmp_path: Path) -> None:
    weak = iter(["B-PER", "I-PER", "O", "O", "O", "_"])
    lines = (f"{line} {next(weak)} _\n" if line else "\n" for line in LABELED.split("\n")[:-1])
    data = load_user_data(folder(tmp_path, labeled="".join(lines)), COLUMNS)
    gaz, llm = audit_weak(problem_of(data)).values()
    assert gaz["sentences"] == llm["sentences"] == 5
    assert gaz["coverage"] == 8 / 10
    assert llm["coverage"] == 3 / 10
    assert gaz["f1"] == pytest.approx(2 / 3)  # LOC is missed
    assert llm["f1"] == 0
    assert gaz["conflicts"] == 1 / 8
    assert llm["conflicts"] == 1 / 3
    assert llm["unseen_labels"] == ["B-ORG"]


def test_weak_labels_are_part_of_the_identity(tmp_path: Path) -> None:
    def digest(text: str, columns: tuple[str, ...]) -> str:
        data = load_user_data(folder(tmp_path, text), columns)
        return fingerprint(data, external_hash(data, None, tmp_path))

    plain = digest("a\nb\n", ("word", "label"))
    ids = [digest(f"a O {x}\nb O {x}\n", COLUMNS) for x in ("O", "_")]
    assert len({plain, *ids}) == 3
    without = load_user_data(folder(tmp_path, "a\nb\n"), ("word", "label")).splits["train"]
    assert without_weak(without).columns == without.columns
