"""Files with labels put into them: all else keeps its bytes, in every form of columns."""

from __future__ import annotations

import codecs
import io
from pathlib import Path

import pytest

from sslbench import train
from sslbench.engine.errors import UserError
from sslbench.experiment.data.layout import Reading
from sslbench.experiment.run.saved import TrainedTagger
from sslbench.tagging.annotated import Annotator
from sslbench.tagging.files import FileTagger

WORDS = ["the", "cat", "sat", ".", "Ren\u00e9"]
TAGS = ["B_NP", "I_NP", "O", "O", "B_NP"]
UPOS = ["DET", "NOUN", "VERB", "PUNCT", "PROPN"]
NOTHING = Reading()


def conllu(tags: list[str], end: str = "\n") -> str:
    """A sentence with comments, a range and an empty node."""
    rows = [f"{i}\t{word}\tx\t{tag}\tX\t_\t0\troot\t_\t_" for i, (word, tag) in
            enumerate(zip(WORDS, tags, strict=True), 1)]  # fmt: skip
    rows.insert(1, "2-3\tcatsat" + "\t_" * 8)
    rows.insert(4, "3.1\tgone" + "\t_" * 8)
    return end.join(["# newdoc", "# text = the cat", *rows, "", ""])


def trained(folder: Path, text: str, name: str, columns: tuple[str, ...]) -> TrainedTagger:
    (folder / name).write_text(text)
    return train("supervised", data=folder / name, columns=columns, guard=False, threads=1)


@pytest.fixture(scope="module")
def chunker(tmp_path_factory: pytest.TempPathFactory) -> TrainedTagger:
    rows = "".join(f"{word} {tag}\n" for word, tag in zip(WORDS, TAGS, strict=True))
    return trained(tmp_path_factory.mktemp("c"), (rows + "\n") * 8, "a.txt", ("word", "label"))


@pytest.fixture(scope="module")
def parser(tmp_path_factory: pytest.TempPathFactory) -> TrainedTagger:
    text = conllu(UPOS) * 8
    return trained(tmp_path_factory.mktemp("u"), text, "a.conllu", ("word", "pos", "label"))


def tagged(
    tagger: TrainedTagger, text: bytes, name: str = "x", reading: Reading = NOTHING, **asked: bool
) -> tuple[bytes, FileTagger]:
    work = FileTagger(Annotator(tagger, **asked), name, reading=reading)
    out = io.BytesIO()
    blocks = (text[i : i + 7] for i in range(0, len(text), 7))
    work.write_to(out, blocks)
    return out.getvalue(), work


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["x.conllu", "standard input"])
def test_the_trained_field_of_conllu_is_filled(parser: TrainedTagger, end: str, name: str) -> None:
    wrong = conllu(["X"] * 5, end)
    out, work = tagged(parser, wrong.encode(), name)
    assert out.decode() == conllu(UPOS, end)
    assert isinstance(work.scores(), str)  # none of these labels is known
    out, work = tagged(parser, conllu(["_"] * 5, end).encode(), name)
    assert out.decode() == conllu(UPOS, end)
    assert "no label column" in str(work.scores())
    _, work = tagged(parser, conllu(UPOS, end).encode(), name)
    assert work.scores() == {"accuracy": 1.0, "sentence_accuracy": 1.0}


def test_another_field_is_filled_when_it_was_trained(tmp_path: Path) -> None:
    columns = ("_", "word", "_", "_", "label", *"_____")
    tagger = trained(tmp_path, conllu(UPOS) * 8, "a.conllu", columns)
    blank = conllu(UPOS).replace("\tX\t", "\t_\t")
    assert tagged(tagger, blank.encode())[0].decode() == conllu(UPOS)


def test_labels_of_other_taggers_go_to_the_last_field(chunker: TrainedTagger) -> None:
    out, work = tagged(chunker, conllu(UPOS).encode(), marginals=True)
    rows = [line.split("\t") for line in out.decode().split("\n") if line[:1].isdigit()]
    words = [row for row in rows if row[0].isdigit()]
    assert [row[9].split("|")[0] for row in words] == [f"Label={tag}" for tag in TAGS]
    assert words[0][9].split("|")[1].startswith("Probability=")
    assert [row[3] for row in words] == UPOS
    assert work.form_line() == "CoNLL-U, the labels go to MISC"


def table(separator: str, end: str = "\n") -> tuple[str, str]:
    """A text, and the same with labels."""
    before = end.join(map(separator.join, zip(WORDS, TAGS, strict=True)))
    after = end.join(map(separator.join, zip(WORDS, TAGS, TAGS, strict=True)))
    return before + 2 * end, after + 2 * end


@pytest.mark.parametrize(
    ("separator", "end", "encoding"),
    [
        (" ", "\n", "utf-8"),
        ("\t", "\r\n", "utf-8"),
        (",", "\n", "utf-8"),
        (";", "\r\n", "cp1252"),
        ("\t", "\n", "utf-16-le"),
        (" ", "\r", "utf-8"),
        (" ", "\n", "cp1252"),
    ],
)
def test_a_table_comes_back_with_a_column(
    chunker: TrainedTagger, separator: str, end: str, encoding: str
) -> None:
    before, after = table(separator, end)
    head = f"# comment of words here{end}"
    out, work = tagged(chunker, (head + before).encode(encoding))
    assert out.decode(encoding) == head + after
    assert isinstance(scores := work.scores(), dict)
    assert scores["f1"] == 1.0


def test_marks_of_byte_order_and_names_of_columns_stay(chunker: TrainedTagger) -> None:
    before, after = table(",")
    out, _ = tagged(chunker, codecs.BOM_UTF8 + b"token,ner\n" + before.encode())
    assert out == codecs.BOM_UTF8 + b"token,ner,predicted\n" + after.encode()
    mark = codecs.BOM_UTF16_BE
    out, _ = tagged(chunker, mark + before.encode("utf-16-be"))
    assert out == mark + after.encode("utf-16-be")


def test_quoted_cells_and_spelled_labels(chunker: TrainedTagger) -> None:
    out, _ = tagged(chunker, b'"the",O\n"a,b",O\n\n')
    assert out.startswith(b'"the",O,B_NP\n"a,b",O,')
    other = "".join(f"{word} {tag.replace('_', ':')}\n" for word, tag in
                    zip(WORDS, TAGS, strict=True))  # fmt: skip
    _, work = tagged(chunker, other.encode())
    assert isinstance(scores := work.scores(), dict)
    assert scores["f1"] == 1.0


def test_options_and_places(chunker: TrainedTagger) -> None:
    before, after = table("|")
    out, _ = tagged(chunker, before.encode(), reading=Reading(separator="|"))
    assert out.decode() == after
    with pytest.raises(UserError, match=r"x:2: byte 0xff is not utf-8"):
        tagged(chunker, b"the O\nc\xff\xfe O\n")
    with pytest.raises(UserError, match=r"4 columns, but .* --raw reads running text"):
        tagged(chunker, b"the cat sat .\nA cat sat on me .\n")
