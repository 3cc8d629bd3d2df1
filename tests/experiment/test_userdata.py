"""Users' own files: splits, schemes, and errors that name the place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sslbench.engine.errors import UserError
from sslbench.experiment.data.userdata import fitting_featurizers, load_user_data
from sslbench.plugins import registry
from support.command import sslbench

pytestmark = pytest.mark.usefixtures("fake_plugin")


ROWS = ["the DT B-NP", "cat NN I-NP", "sat VB B-VP", ". . O"]


def write_conll(path: Path, sentences: int) -> None:
    path.write_text("\n\n".join("\n".join(ROWS) for _ in range(sentences)) + "\n")


def test_a_lone_file_is_cut_into_train_and_test(tmp_path: Path) -> None:
    write_conll(tmp_path / "my.conll", 10)
    notices: list[str] = []
    data = load_user_data(tmp_path / "my.conll", ("word", "pos", "label"), notices.append)
    assert (data.name, data.task, data.encoding, data.metric) == ("my", "spans", "IOB2", "f1")
    sizes = {name: part.n_sentences for name, part in data.splits.items()}
    assert sizes == {"train": 8, "test": 2}
    assert "no test file" in notices[0]
    assert data.external is None
    whole = load_user_data(tmp_path / "my.conll", ("word", "pos", "label"), cut=False)
    assert {name: part.n_sentences for name, part in whole.splits.items()} == {"train": 10}


@pytest.mark.parametrize("raw", ["unlabeled.txt", "unlabelled.conll"])
def test_a_folder_with_splits_and_raw_text(tmp_path: Path, raw: str) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, n in (("train.conll", 5), ("valid.txt", 2), ("test-a.tsv", 3)):
        write_conll(folder / name, n)
    (folder / raw).write_text("a DT\ndog NN\n\nran VB\n")
    (folder / "README.md").write_text("no data")
    data = load_user_data(folder, ("word", "pos", "label"))
    sizes = {name: part.n_sentences for name, part in data.splits.items()}
    assert sizes == {"train": 5, "dev": 2, "test": 3}
    assert data.external is not None
    text = data.external()
    assert text.n_sentences == 2
    (shard,) = text
    assert sorted(shard.columns) == ["pos", "word"]
    assert shard.column("word").vocabulary is data.splits["train"].column("word").vocabulary
    write_conll(folder / "train2.conll", 1)
    with pytest.raises(UserError, match="both look like the train split"):
        load_user_data(folder, ("word", "pos", "label"))


def test_plain_tags_are_tagging_and_errors_name_the_place(tmp_path: Path) -> None:
    file = tmp_path / "tags.conll"
    file.write_text("a DT\ndog NN\n\nruns VB\n")
    assert load_user_data(file, ("word", "label")).task == "tagging"
    with pytest.raises(UserError, match="no column is called label"):
        load_user_data(file, ("word", "pos"))
    file.write_text("a DT\ndog\n")
    with pytest.raises(UserError, match=r"tags\.conll:2"):
        load_user_data(file, ("word", "label"))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UserError, match="no train file"):
        load_user_data(empty, ("word", "label"))


def test_the_default_featurizer_fits_task_and_columns() -> None:
    infos = registry().featurizers
    found = fitting_featurizers(infos, "spans", ("word", "pos", "label"))
    widths = [len(infos[name].columns) for name in found]
    assert widths == sorted(widths, reverse=True)
    with pytest.raises(UserError, match="no featurizer fits"):
        fitting_featurizers({}, "spans", ("word",))


def test_a_users_file_runs(tmp_path: Path) -> None:
    write_conll(tmp_path / "my.conll", 10)
    words = [
        *("run", "--method", "majority", "--data"),
        str(tmp_path / "my.conll"),
        *("--featurizer", "none", "--model", "nothing", "--store"),
        str(tmp_path / "runs"),
        "--format",
        "json",
    ]
    result = sslbench(*words)
    assert result.exit_code == 0, result.output
    (tree,) = json.loads(result.stdout)
    assert (tree["dataset"], tree["metrics"]["test"]["f1"]) == ("my", 1.0)
    assert list(tree["data"]["files"]) == ["my.conll"]
    assert "IOB2 chunk tags; task spans, featurizer none" in result.stderr


CHUNKS = "the B-NP\ncat I-NP\nsat O\n\n"
WORDS = "a B\nb M\nc E\nd S\n\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (4 * CHUNKS + "a I_NP\n", r"x\.txt:17: label 'I_NP' does not fit IOB2; IOB2 labels are"),
        (4 * CHUNKS + "a B\n", r"x\.txt:17: label 'B' does not fit IOB2"),
        (4 * CHUNKS + "a E-NP\nb M-NP\n", r"x\.txt:18: label 'M-NP' does not fit IOBES"),
        (9 * WORDS + "a X\n", r"x\.txt:46: label 'X' does not fit BMES"),
    ],
)
def test_a_stray_label_among_chunk_tags_is_an_error(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "x.txt").write_text(text)
    with pytest.raises(UserError, match=message):
        load_user_data(tmp_path / "x.txt", ("word", "label"))


def test_the_stray_label_may_stand_in_any_split(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.txt").write_text(4 * CHUNKS)
    (folder / "test.txt").write_text(CHUNKS.replace("I-NP", "I=NP"))
    with pytest.raises(UserError, match=r"test\.txt:2: label 'I=NP'"):
        load_user_data(folder, ("word", "label"))


@pytest.mark.parametrize(
    ("text", "task", "scheme"),
    [
        (4 * CHUNKS, "spans", "IOB2"),
        (4 * CHUNKS.replace("B-", "I-"), "spans", "IOB1"),
        (4 * CHUNKS.replace("I-", "E-"), "spans", "IOBES"),
        (4 * CHUNKS.replace("I-", "L-"), "spans", "IOBES"),
        (4 * WORDS, "segmentation", "BMES"),
        ("a O\nb O\n\nc O\n", "tagging", "none"),
        ("a B\nb I\n\nc NN-HL\nd NN-TL\n", "tagging", "none"),  # letters that mean something else
        ("a S\nb M\n\nc E\nd X\n", "tagging", "none"),
    ],
)
def test_kinds_of_labels(tmp_path: Path, text: str, task: str, scheme: str) -> None:
    (tmp_path / "x.txt").write_text(text)
    data = load_user_data(tmp_path / "x.txt", ("word", "label"))
    assert (data.task, data.metadata["source_scheme"]) == (task, scheme)


def conllu(sentences: int) -> str:
    """Sentences of four words, with a comment, a range and an empty node."""
    rows = ["1-2\tvámonos", "1\tvamos", "2\tnos", "3\ta", "3.1\tel", "4\tNew York"]
    tags = ["_", "VERB", "PRON", "ADP", "_", "PROPN"]
    lines = [
        f"{row}\tlemma\t{tag}\tX{tag}" + "\t_" * 5 for row, tag in zip(rows, tags, strict=True)
    ]
    return "\n".join("# text = ...\n" + "\n".join(lines) + "\n" for _ in range(sentences))


@pytest.mark.parametrize("ending", ["conllu", "conllx", "CONLLU"])
def test_conllu_has_words_and_universal_tags(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"train.{ending}").write_text(conllu(6))
    (tmp_path / f"unlabeled.{ending}").write_text(conllu(2))
    data = load_user_data(tmp_path, ("word", "pos", "label"), cut=False)
    train = data.splits["train"]
    assert train.sentence(0, "word") == ["vamos", "nos", "a", "New York"]
    assert train.sentence(5, "label") == ["VERB", "PRON", "ADP", "PROPN"]
    assert "_" not in train.column("label").vocabulary.strings
    assert (data.task, train.n_sentences) == ("tagging", 6)
    assert data.external is not None
    (text,) = data.external()
    assert list(text.columns) == ["word"]
    assert text.n_tokens == 8
    fields = ("_", "word", "lemma", "pos", "label", *"_____")
    named = load_user_data(tmp_path, fields, cut=False).splits["train"]
    assert named.sentence(0, "label") == ["XVERB", "XPRON", "XADP", "XPROPN"]
    assert named.sentence(0, "pos") == ["VERB", "PRON", "ADP", "PROPN"]


def test_damaged_conllu_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "my.conllu").write_text(conllu(3).replace("4\tNew", "5\tNew", 1))
    with pytest.raises(UserError, match=r"my\.conllu:7: ID 5 is malformed or out of sequence"):
        load_user_data(tmp_path / "my.conllu", ("word", "pos", "label"))


def test_a_run_on_conllu(tmp_path: Path) -> None:
    (tmp_path / "my.conllu").write_text(conllu(10))
    words = ["run", "--method", "supervised", "--data", str(tmp_path / "my.conllu")]
    result = sslbench(*words, "--store", tmp_path / "runs", "--format", "json")
    assert result.exit_code == 0, result.output
    (record,) = json.loads(result.stdout)
    assert record["metrics"]["test"]["accuracy"] == 1.0
    assert record["spec"]["data"]["columns"] == ["word", "label"]
