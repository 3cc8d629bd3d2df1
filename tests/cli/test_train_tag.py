"""Training a tagger, keeping it, and using it on files: columns, schemes, line ends, errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sslbench.engine.corpus import detect_scheme, tag_fits
from sslbench.engine.crf import ChainCRF, read_model
from sslbench.experiment.run.saved import load_tagger
from sslbench.plugins import registry
from support.chunk_text import chunks
from support.command import sslbench


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger trained on IOBES chunks in a tab-separated file."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "train.tsv").write_text(chunks(40, "IOBES", "\t"))
    result = sslbench(
        "train",
        "--method",
        "supervised",
        "--data",
        folder / "train.tsv",
        "--columns",
        "word,label",
        "--save",
        folder / "new" / "my.model",
    )
    assert result.exit_code == 0, result.output
    assert "the labels are IOBES chunk tags" in result.stderr
    assert "trained on 40 labeled and 0 unlabeled" in result.stderr  # nothing was cut off
    assert result.stdout == ""
    assert [file.name for file in (folder / "new").iterdir()] == ["my.model"]
    return folder / "new" / "my.model"


def test_the_columns_of_the_file_come_back_with_one_more(model: Path, tmp_path: Path) -> None:
    text = chunks(10, "IOBES", "\t", seed=1)
    (tmp_path / "new.tsv").write_text(text)
    result = sslbench("tag", model, tmp_path / "new.tsv")
    assert result.exit_code == 0, result.output
    lines = result.stdout.split("\n")
    assert [line.rpartition("\t")[0] for line in lines] == text.split("\n")
    predicted = [line.split("\t")[2] for line in lines if line]
    assert all(tag_fits(tag, "IOBES") for tag in predicted)  # the scheme of the training file
    assert detect_scheme([predicted]) == "IOBES"
    gold = [line.split("\t")[1] for line in text.split("\n") if line]
    right = np.mean([a == b for a, b in zip(predicted, gold, strict=True)])
    assert right > 0.9
    assert "10 sentences: accuracy" in result.stderr
    assert "f1 " in result.stderr


def test_without_labels_from_standard_input_to_a_file(model: Path, tmp_path: Path) -> None:
    text = "-DOCSTART- -X-\r\n\r\nthe\r\nn1 \r\n\n\nout\n  the"
    out = tmp_path / "deep" / "out.txt"
    result = sslbench("tag", model, "-", "--out", out, stdin=text)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert result.stderr == (
        "sslbench: standard input, 2 sentences: read as word, no label column to score\n"
    )
    lines = out.read_bytes().decode().split("\n")
    assert lines == [
        "-DOCSTART- -X-\r",
        "\r",
        "the B-NP\r",
        "n1 E-NP\r",
        "",
        "",
        "out O",
        "  the S-NP",
    ]


def test_other_columns_can_be_named(model: Path, tmp_path: Path) -> None:
    (tmp_path / "wide.txt").write_text("1 the x\n2 n3 y\n")
    result = sslbench("tag", model, tmp_path / "wide.txt", "--columns", "_,word,_")
    assert result.stdout == "1 the x B-NP\n2 n3 y E-NP\n"
    refused = sslbench("tag", model, tmp_path / "wide.txt", "--columns", "_,form,_")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "no column 'word'; columns: form" in refused.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b c\n", "3 columns, but the tagger was trained on word,label (label may be missing)"),
        ("", "no token in the file"),
        ("a O\nb\n", "standard input:2: 1 column where 2 (word, label) are expected"),
        ("a\n\0b\n", "standard input:2: NUL byte"),
    ],
)
def test_bad_input_is_one_line(model: Path, text: str, message: str) -> None:
    result = sslbench("tag", model, "-", stdin=text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("content", [b"", b"some text\n", b"PK\x03\x04 cut off"])
def test_a_file_that_is_no_model(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.model").write_bytes(content)
    result = sslbench("tag", tmp_path / "x.model", "-", stdin="a\n")
    assert result.exit_code == 2
    assert "x.model: this is not a saved sslbench model" in result.stderr
    missing = sslbench("tag", tmp_path / "no.model", "-", stdin="a\n")
    assert "no.model: there is no such file" in missing.stderr


@pytest.mark.parametrize(
    ("text", "why"), [("the _\nn1 _\n", "label '_' does not fit"), ("the O\n", None)]
)
def test_placeholders_are_not_scored(model: Path, text: str, why: str | None) -> None:
    result = sslbench("tag", model, "-", stdin=text)
    assert result.exit_code == 0
    assert result.stdout.count("NP") == text.count("\n")
    assert ("is not scored" in result.stderr) == (why is not None)
    assert why is None or why in result.stderr


@pytest.mark.parametrize("method", ["self_training", "jess_cm"])
def test_semi_supervised_taggers_come_back_the_same(method: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.conll").write_text(chunks(12, "IOB1"))
    (folder / "dev.conll").write_text(chunks(5, "IOB1", seed=2))
    raw = "\n".join(line.split(" ")[0] for line in chunks(30, "IOB1", seed=3).split("\n"))
    (folder / "unlabeled.txt").write_text(raw)
    saved = tmp_path / "model"
    result = sslbench(
        "train",
        "--method",
        method,
        "--data",
        folder,
        "--columns",
        "word,label",
        "--set",
        "rounds=2",
        "--save",
        saved,
        "--threads",
        1,
    )
    assert result.exit_code == 0, result.output
    assert "12 labeled and 30 unlabeled sentences" in result.stderr
    trained_score = next(line for line in result.stderr.splitlines() if "dev, 5" in line)
    tagged = sslbench("tag", saved, folder / "dev.conll")
    assert trained_score.split("sentences:")[1] in tagged.stderr
    tagger = load_tagger(saved, registry())
    assert tagger.corpus is not None
    assert (tagger.corpus.columns, tagger.corpus.scheme) == (("word", "label"), "IOB1")


def test_a_registered_dataset_keeps_its_columns(tmp_path: Path) -> None:
    saved = tmp_path / "synth.model"
    result = sslbench(
        "train",
        "--method",
        "supervised",
        "--dataset",
        "synth",
        "--labeled",
        "20",
        "--set",
        "synth.test=10",
        "--save",
        saved,
    )
    assert result.exit_code == 0, result.output
    assert "test, 10 sentences: accuracy" in result.stderr
    tagger = load_tagger(saved, registry())
    assert tagger.corpus is not None
    assert tagger.corpus.columns == ("word", "label")
    again = sslbench("train", "--method", "supervised", "--dataset", "synth", "--save", tmp_path)
    assert again.exit_code == 2
    assert "is a folder" in again.stderr


def test_dense_columns_come_back_from_the_featurizer(tmp_path: Path) -> None:
    """Without them the tagger would know the labels' frequencies only."""
    rng = np.random.default_rng(0)
    shapes = {label: rng.integers(0, 256, 16, dtype=np.uint8) for label in "abc"}
    lines = []
    for label in rng.choice(list(shapes), 90).tolist():
        image = shapes[label] ^ (1 << rng.integers(0, 8, 16).astype(np.uint8))
        lines.append(f"{image.tobytes().hex()} {label}\n" + "\n" * int(rng.integers(0, 2)))
    (tmp_path / "train.conll").write_text("".join(lines))
    saved = tmp_path / "model"
    result = sslbench(
        "train",
        "--method",
        "supervised",
        "--data",
        tmp_path / "train.conll",
        "--columns",
        "image,label",
        "--featurizer",
        "pixels",
        "--save",
        saved,
    )
    assert result.exit_code == 0, result.output
    tagged = sslbench("tag", saved, tmp_path / "train.conll")
    assert "accuracy 100.00" in tagged.stderr
    kind, arrays, metadata = read_model(saved)
    assert kind == "chain_crf"
    with pytest.raises(ValueError, match="no featurizer makes them"):
        ChainCRF.from_arrays(arrays, metadata)


@pytest.mark.usefixtures("fake_plugin")
def test_a_method_that_cannot_save_says_so_in_one_line(tmp_path: Path) -> None:
    result = sslbench(
        *("train", "--method", "majority", "--dataset", "toy", "--no-guard"),
        *("--save", tmp_path / "model"),
    )
    assert result.exit_code == 2
    assert "method majority cannot save its tagger: the object that fit() returns" in result.stderr
    assert not (tmp_path / "model").exists()


def test_a_model_of_a_method_that_is_not_installed(tmp_path: Path) -> None:
    from sslbench.engine.crf import write_model

    write_model(tmp_path / "m", "their_method", {}, {})
    result = sslbench("tag", tmp_path / "m", "-", stdin="a\n")
    assert result.exit_code == 2
    assert "a model of 'their_method': no method 'their_method'" in result.stderr
    write_model(tmp_path / "m", "chain_crf", {}, {})
    assert "cannot be restored" in sslbench("tag", tmp_path / "m", "-", stdin="a\n").stderr


def test_show_tells_what_a_saved_tagger_is(tmp_path: Path) -> None:
    model = str(tmp_path / "model")
    words = [
        *("--method", "supervised", "--dataset", "synth", "--labeled", "20", "--set"),
        *("state_support=observed",),
    ]
    assert sslbench("train", *words, "--save", model).exit_code == 0
    shown = sslbench("show", model)
    assert shown.exit_code == 0, shown.output
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert ["trained", "on", "synth,", "labeled", "20"] in lines
    assert "state_support=observed" in shown.stdout
    assert any(line[:3] == ["on", "test", "accuracy"] for line in lines)
    crf = load_tagger(model, registry()).tagger
    top = crf.weights[: crf.layout.bounds[1]].max()
    assert f"{top:+.2f}" in shown.stdout


def test_show_tells_what_a_run_was(tmp_path: Path) -> None:
    store = str(tmp_path / "runs")
    words = [
        *("--method", "self_training", "--dataset", "synth", "--labeled", "20", "--format"),
        *("json",),
    ]
    done = sslbench("run", *words, "--format", "json", "--store", store)
    (record,) = json.loads(done.stdout)
    for name in (record["run_id"], record["run_id"][:8], f"{store}/{record['run_id']}.json"):
        shown = sslbench("show", name, "--store", store)
        assert shown.exit_code == 0, shown.output
        lines = [line.split() for line in shown.stdout.splitlines()]
        metrics = record["metrics"]["test"]
        share = metrics["share_app"]
        rows = [line for line in lines if line[:1] in (["all"], ["L.app"], ["not"])][-3:]
        assert rows[0] == [
            *("all", "100.0", f"{100 * metrics['sentence_accuracy']:.2f}"),
            f"{100 * metrics['u_app']:.2f}",
        ]
        assert rows[1][1] == f"{100 * share:.1f}"
        assert rows[2][2] == f"{100 - 100 * share:.1f}"
        assert rows[2][3] == f"{100 * metrics['sentence_accuracy_notapp']:.2f}"
    missing = sslbench("show", "abcdef012345", "--store", store)
    assert missing.exit_code == 2
