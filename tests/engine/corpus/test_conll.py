"""Reading columnar files: what is harmless, and what is refused with file and line."""

from __future__ import annotations

import gzip
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.corpus import Corpus, Vocabulary, conll, read_bytes, read_conll
from sslbench.engine.errors import UserError

PLAIN = "the DT B-NP\ncat NN I-NP\n\nsat VB O\n"
ROWS = [[("the", "DT", "B-NP"), ("cat", "NN", "I-NP")], [("sat", "VB", "O")]]


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where the test runs: messages show paths as they were given."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows_of(corpus: Corpus) -> list[list[tuple[str, ...]]]:
    columns = [
        [corpus.sentence(i, name) for name in corpus.columns] for i in range(corpus.n_sentences)
    ]
    return [list(zip(*sentence, strict=True)) for sentence in columns]


def read(data: bytes | str, **options: object) -> Corpus:
    raw = data.encode() if isinstance(data, str) else data
    Path("f.txt").write_bytes(raw)
    return read_conll("f.txt", **options)  # type: ignore[arg-type]


def refusal(data: bytes | str, **options: object) -> str:
    with pytest.raises(UserError) as caught:
        read(data, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.rstrip("\n"),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "  \n"),
        PLAIN.replace(" ", "\t \t"),
        "\ufeff" + PLAIN,
        "\n \n" + PLAIN.replace("\n\n", "\n\n\t\n\n") + "\n\n\n",
        "-DOCSTART- -X- O\n\n" + PLAIN,
        PLAIN.replace("\n\n", "\n-DOCSTART- -X- -X- O\n"),
        PLAIN.replace("\n\n", "\n-DOCSTART-\n"),
    ],
    ids=[
        *("plain", "unended", "crlf", "trailing", "tabs", "bom", "blanks", "docstart"),
        *("wide-docstart", "lone-docstart"),
    ],
)
def test_harmless_variants_read_alike(at: Path, text: str) -> None:
    assert rows_of(read(text)) == ROWS


@pytest.mark.parametrize("ending", ["\n", " \n", "\r\n", " \r\n"])
@pytest.mark.parametrize("separator", ["\t", " "])
def test_exact_separator(at: Path, separator: str, ending: str) -> None:
    text = PLAIN.replace(" ", separator).replace("\n", ending)
    assert rows_of(read(text, separator=separator)) == ROWS
    assert rows_of(read(text.rstrip(), separator=separator)) == ROWS


def test_tab_separator_keeps_spaces_inside_fields(at: Path) -> None:
    corpus = read("New York\tNP\n", columns=("word", "pos"), separator="\t")
    assert rows_of(corpus) == [[("New York", "NP")]]


def test_white_space_of_other_scripts_is_part_of_a_word(at: Path) -> None:
    text = "10\u00a0000 CD O\n\u3000 PU O\na\u2028b NN O\na\x85b NN O\n"
    words = [word for word, _, _ in rows_of(read(text))[0]]
    assert words == ["10\u00a0000", "\u3000", "a\u2028b", "a\x85b"]


def test_documents_are_numbered(at: Path) -> None:
    text = "a x\n\n -DOCSTART- -X- O\nb x\n-DOCSTART-x y\n\nc x\n-DOCSTART-\r\n-DOCSTART-\nd x"
    file = at / "f.txt"
    file.write_text(text)
    corpus = read_conll(file, ("word", "label"), documents="document")
    want = [["0"], ["1", "1"], ["1"], ["3"]]
    assert corpus.sentences("document") == want
    assert corpus.sentences("word") == [["a"], ["b", "-DOCSTART-x"], ["c"], ["d"]]
    # the same over the borders of blocks
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sslbench.engine.corpus.conll._BLOCK", 3)
        assert read_conll(file, ("word", "label"), documents="n").sentences("n") == want


def test_columns_are_named_left_out_and_shared(at: Path) -> None:
    vocabularies: dict[str, Vocabulary] = {}
    first = read(PLAIN, columns=("word", "_", "label"), vocabularies=vocabularies)
    assert list(first.columns) == ["word", "label"] == list(vocabularies)
    second = read("dog NN I-NP\n", vocabularies=vocabularies)
    assert second.column("word").vocabulary is first.column("word").vocabulary
    assert second.column("word").codes.tolist() == [3]
    assert second.column("label").codes.tolist() == [1]
    assert list(read("a b c\n", columns=("word", "_", "_")).columns) == ["word"]


def test_comments_only_on_request(at: Path) -> None:
    text = "# x\nthe DT O\n"
    assert rows_of(read(text, comment="#")) == [[("the", "DT", "O")]]
    assert rows_of(read("# # B-NP\n")) == [[("#", "#", "B-NP")]]
    assert "f.txt:1: 2 columns" in refusal(text)


def test_other_encodings(at: Path) -> None:
    assert rows_of(read("é x O\n".encode("latin-1"), encoding="latin-1"))[0][0][0] == "é"
    assert rows_of(read("é x O\n".encode("utf-16"), encoding="utf-16"))[0][0][0] == "é"
    assert "unknown encoding 'utf-9'" in refusal(PLAIN, encoding="utf-9")


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ("a b c\n\na b\n", {}, "f.txt:3: 2 columns where 3 (word, pos, label) are expected"),
        ("a b c\r\n\r\na b c d\r\n", {}, "f.txt:3: 4 columns where 3"),
        ("-DOCSTART-\n\na b\na b c\n", {}, "f.txt:3: 2 columns"),
        ("a b\n", {}, "name all columns"),
        ("a\tb\n", {"separator": "\t"}, "f.txt:1: 2 columns"),
        ("a\tb\tc\n\na\t\tc\n", {"separator": "\t"}, "f.txt:3: column 'pos' is empty"),
        ("a\tb\tc\na\tb\t\n", {"separator": "\t"}, "f.txt:2: column 'label' is empty"),
        ("a  b\n", {"separator": " ", "columns": ("x", "y")}, "f.txt:1: 3 columns"),
        (b"a b c\n\na b \xff\n", {}, "f.txt:3: byte 0xff is not utf-8"),
        (b"\xef\xbb\xbfa b c\n\xff\n", {}, "f.txt:2: byte 0xff is not utf-8"),
        ("\ufeffa b c\n".encode() + b"\xe4 b c\n", {}, "f.txt:2: byte 0xe4"),
        ("a b c\nd\0 b c\n", {}, "f.txt:2: NUL byte"),
        ("a b c\n".encode("utf-16-le"), {}, "f.txt:1: NUL byte; is this a binary file, or UTF-16"),
        ("", {}, "f.txt: no token in the file: it is empty"),
        (" \r\n\n\t\n", {}, "f.txt: no token"),
        ("-DOCSTART- -X- O\n\n", {}, "f.txt: no token"),
        ("", {"separator": "\t"}, "f.txt: no token"),
        (" \n\n", {"separator": "\t"}, "f.txt: no token"),
        (PLAIN, {"columns": ()}, "no column names were given; the file has 3 columns"),
        (PLAIN, {"columns": ("word", "word", "_")}, "column name 'word' is given twice"),
        (PLAIN, {"columns": ("word", "", "_")}, "without a name"),
        (PLAIN, {"separator": "::"}, "separator must be one ASCII character"),
    ],
)
def test_refused(at: Path, data: bytes | str, options: dict[str, object], message: str) -> None:
    assert message in refusal(data, **options)


@pytest.mark.parametrize(
    ("label", "scheme"),
    [
        ("I_NP", "IOB2"),
        ("X-NP", "IOB2"),
        ("B", "IOB2"),
        ("I-", "IOB2"),
        ("O-NP", "IOB2"),
        ("b-NP", "IOB2"),
        ("E-NP", "IOB1"),
        ("M-NP", "IOBES"),
        ("I-NP", "BMES"),
    ],
)
def test_stray_labels(at: Path, label: str, scheme: str) -> None:
    text = f"the DT B-NP\n\ncat NN O\nsat VB {label}\nsat VB {label}\n"
    message = refusal(text, scheme=scheme)
    assert message.startswith(
        f"f.txt:4: label {label!r} does not fit {scheme}; {scheme} labels are"
    )


def test_fitting_labels(at: Path) -> None:
    read("a x B-a-b\nb x I-a-b\nc x O\n", scheme="IOB2")
    read("a x B\nb x I\nc x O\n", scheme="IOB2")  # untyped throughout
    read("a x S\nb x B\nc x M\nd x E\n", scheme="BMES")
    with pytest.raises(UserError, match="no column 'label'"):
        read("a O\n", columns=("word", "tag"), scheme="IOB2")


def test_line_numbers_hold_across_blocks(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conll, "_BLOCK", 7)
    text = PLAIN * 5 + "\n"
    assert [len(rows) for rows in rows_of(read(text))] == [2, 3, 3, 3, 3, 1]
    assert rows_of(read(PLAIN + "\n" + PLAIN)) == ROWS * 2
    assert "f.txt:6: 2 columns" in refusal(PLAIN + "\na b\n")
    assert "f.txt:6: column 'pos'" in refusal(
        PLAIN.replace(" ", "\t") + "\na\t\tb\n", separator="\t"
    )
    assert "f.txt:6: label 'Q'" in refusal(PLAIN + "\na b Q\n", scheme="IOB2")


field = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\t\n\r\x0b\x0c "), min_size=1, max_size=4
).filter(lambda text: text not in ("-DOCSTART-",) and not text.startswith("\ufeff"))


@given(st.lists(st.lists(st.tuples(field, field), min_size=1, max_size=4), min_size=1, max_size=4))
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, sentences: list) -> None:
    file = tmp_path_factory.getbasetemp() / "any.txt"
    for separator, asked in ((" ", None), ("\t", "\t")):
        text = "\n\n".join("\n".join(separator.join(row) for row in rows) for rows in sentences)
        file.write_bytes(text.encode())
        corpus = read_conll(file, ("word", "label"), separator=asked)
        assert rows_of(corpus) == sentences
        assert corpus.offsets.tolist() == np.cumsum([0, *map(len, sentences)]).tolist()


def test_gzip_and_zip(at: Path) -> None:
    Path("f.gz").write_bytes(gzip.compress(PLAIN.encode()))
    Path("unnamed").write_bytes(gzip.compress(PLAIN.encode()))
    with zipfile.ZipFile("f.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data/train.txt", PLAIN)
        archive.writestr("data/bad.txt", "a b c\na b\n")
    for source in (
        "f.gz",
        "unnamed",
        ("f.zip", "data/train.txt"),
        (Path("f.zip"), "data/train.txt"),
    ):
        assert rows_of(read_conll(source)) == ROWS
    assert sorted(os.listdir()) == ["f.gz", "f.zip", "unnamed"]  # nothing unpacked
    with pytest.raises(UserError, match=r"^f\.zip!data/bad\.txt:2: 2 columns"):
        read_conll(("f.zip", "data/bad.txt"))
    with pytest.raises(
        UserError, match=r"^f\.zip!train\.txt: no such member.*near: data/train\.txt$"
    ):
        read_conll(("f.zip", "train.txt"))
    with pytest.raises(UserError, match=r"data/trian\.txt: no such member.*data/train\.txt"):
        read_conll(("f.zip", "data/trian.txt"))
    with pytest.raises(UserError, match=r"2 files in the archive; name one: data/train\.txt"):
        read_conll("f.zip")


def test_a_zip_of_one_file_needs_no_member(at: Path) -> None:
    with zipfile.ZipFile("one.zip", "w") as archive:
        archive.writestr("data/", "")
        archive.writestr("data/train.txt", PLAIN)
    assert rows_of(read_conll("one.zip")) == ROWS


def test_damaged_archives(at: Path) -> None:
    noise = np.random.default_rng(0).bytes(4000).hex().encode()
    packed = gzip.compress(noise)
    Path("cut.gz").write_bytes(packed[:-20])
    Path("bad.gz").write_bytes(packed[:500] + b"\xff" * 20 + packed[520:])
    with zipfile.ZipFile("f.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m", noise)
    whole = Path("f.zip").read_bytes()
    Path("cut.zip").write_bytes(whole[:-30])
    Path("bad.zip").write_bytes(whole[:500] + b"\xff" * 20 + whole[520:])
    for source, message in [
        ("cut.gz", "^cut.gz: the compressed file is truncated"),
        ("bad.gz", "^bad.gz: the compressed file is damaged"),
        (("cut.zip", "m"), "^cut.zip!m: the compressed file is damaged"),
        (("bad.zip", "m"), "^bad.zip!m: the compressed file is damaged"),
        ("none.txt", "^none.txt: no such file"),
        (("none.zip", "m"), "^none.zip!m: no such file"),
        (".", "^.: Is a directory"),
        (("cut.gz", "m"), "^cut.gz!m: the compressed file is damaged"),
    ]:
        with pytest.raises(UserError, match=message):
            read_conll(source)


def test_bombs(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sslbench.engine.corpus.files.RATIO_FREE_BYTES", 2**20)
    zeros = b"0" * (4 * 2**20)
    Path("f.gz").write_bytes(gzip.compress(zeros))
    with zipfile.ZipFile("f.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m", zeros)
    for source in ("f.gz", ("f.zip", "m")):
        with pytest.raises(UserError, match=r"^f\.(gz|zip!m): unpacks to more than 300 times"):
            read_conll(source)
        assert len(read_bytes(source, max_ratio=2000)) == len(zeros)
        with pytest.raises(UserError, match="more than 1000 bytes"):
            read_conll(source, max_bytes=1000)
    Path("f.txt").write_bytes(PLAIN.encode() * 100)
    with pytest.raises(UserError, match=r"^f\.txt: more than 1000 bytes"):
        read_conll("f.txt", max_bytes=1000)
