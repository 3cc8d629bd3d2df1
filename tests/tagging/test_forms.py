"""Spans as brat reads them."""

from __future__ import annotations

import io
import re
from pathlib import Path

from click.testing import CliRunner

from sslbench.cli import cli
from sslbench.tagging.annotated import Sentence, Span
from sslbench.tagging.forms import Standoff
from support.chunk_text import chunks


def sentence(tokens: list[str], spans: list[Span] | None, labels: list[str]) -> Sentence:
    return Sentence(tokens, labels, spans, (), None, None, [])


def test_offsets_count_characters_of_the_text() -> None:
    text = io.BytesIO()
    form = Standoff(text)
    first = sentence(["日本", "is", "far"], [Span(0, 1, "a b", 0.5)], ["B", "O", "O"])
    second = sentence(["so", "New", "York"], [Span(1, 3, "", None)], ["O", "B", "I"])
    actual = form.body([first]) + form.body([second])
    assert actual.decode() == (
        "T1\ta_b 0 2\t日本\n#1\tAnnotatorNotes T1\tconfidence 0.5000\nT2\tchunk 13 21\tNew York\n"
    )
    assert text.getvalue().decode() == "日本 is far\nso New York\n"


def test_labels_without_spans_are_spans_of_one_token() -> None:
    form = Standoff(io.BytesIO())
    actual = form.body([sentence(["a", "b"], None, ["N", "V"])])
    assert actual == b"T1\tN 0 1\ta\nT2\tV 2 3\tb\n"


def test_the_command_writes_both_files(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(chunks(40, "IOB2"))
    run = CliRunner().invoke
    given = ["--data", str(tmp_path / "train.txt"), "--columns", "word,label"]
    result = run(cli, ["train", "--method", "supervised", *given, "--save", str(tmp_path / "m")])
    assert result.exit_code == 0, result.output
    (tmp_path / "new.txt").write_text("out the n1\nout\nthe n2 out the\n")
    command = ["tag", str(tmp_path / "m"), str(tmp_path / "new.txt"), "--raw", "--marginals"]
    out = tmp_path / "out" / "new.ann"
    result = run(cli, [*command, "--format", "brat", "--out", str(out)])
    assert result.exit_code == 0, result.output
    text = out.with_suffix(".txt").read_text()
    assert text == "out the n1\nout\nthe n2 out the\n"
    spans = re.findall(r"^T\d+\tNP (\d+) (\d+)\t(.*)$", out.read_text(), re.MULTILINE)
    assert [span[2] for span in spans] == ["the n1", "the n2", "the"]
    assert all(text[int(start) : int(end)] == words for start, end, words in spans)
    assert out.read_text().count("confidence") == 3
    for where in ([], ["--out", str(tmp_path / "new.txt")]):
        result = run(cli, [*command, "--format", "brat", *where])
        assert result.exit_code == 2
        assert "--out NAME.ann" in result.stderr
    result = run(cli, [*command, "--format", "brat", "--out", str(tmp_path / "new.ann")])
    assert result.exit_code == 2
    assert "would replace the file itself" in result.stderr
    assert (tmp_path / "new.txt").read_text() == text
