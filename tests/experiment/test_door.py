"""Users' files in many forms are read alike: encoding, separators, comments, spellings, text."""

from __future__ import annotations

import codecs
import gzip
import re
from pathlib import Path

import pytest

from sslbench.engine.errors import UserError
from sslbench.experiment.data import Dataset
from sslbench.experiment.data.layout import Reading
from sslbench.experiment.data.userdata import (
    columns_of,
    dataset_name,
    find_files,
    load_user_data,
)

SENTENCE = [
    ("Ren\u00e9", "B-PER"), ("Lee", "I-PER"), ("sees", "O"), ("Ham", "B-LOC"), (".", "O"),
]  # fmt: skip
N = 12
COLUMNS = ("word", "label")
NOTHING = Reading()


def table(separator: str = " ", end: str = "\n") -> str:
    """The sentence N times."""
    rows = end.join(separator.join(row) for row in SENTENCE)
    return f"{end}{end}".join([rows] * N) + end


def load(
    folder: Path,
    data: str | bytes,
    name: str = "my.txt",
    columns: tuple[str, ...] = COLUMNS,
    reading: Reading = NOTHING,
) -> Dataset:
    file = folder / name
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    return load_user_data(file, columns, cut=False, reading=reading)


def rows(data: Dataset) -> list[list[tuple[str, str]]]:
    train = data.splits["train"]
    pairs = zip(train.sentences("word"), train.sentences("label"), strict=True)
    return [list(zip(*pair, strict=True)) for pair in pairs]


FORMS: dict[str, bytes] = {
    "utf-8": table().encode(),
    "byte order mark": codecs.BOM_UTF8 + table().encode(),
    "utf-16": table().encode("utf-16"),
    "utf-16 without mark": table().encode("utf-16-le"),
    "big end first": table("\t").encode("utf-16-be"),
    "utf-32": table().encode("utf-32"),
    "latin-1": table().encode("latin-1"),
    "gz": gzip.compress(table().encode()),
    "tabs": table("\t").encode(),
    "runs of spaces": table("   ").encode(),
    "commas": table(",").encode(),
    "semicolons": table(";").encode(),
    "carriage returns": table(end="\r").encode(),
    "mixed ends": table(end="\r\n").replace("\r\n", "\n", 20).encode(),
    "blank beginning": ("\n\n \n" + table()).encode(),
    "trailing spaces": table().replace("\n", "  \n").encode(),
    "no-break blank lines": table().replace("\n\n", "\n\u00a0\n").encode(),
    "comments": table().replace("\n\n", "\n\n# sent_id = x\n# text = some words\n").encode(),
    "comments of two words": table().replace("\n\n", "\n\n#id: 7 = seven words here\n").encode(),
    "names at commas": ("token,ner\n" + table(",")).encode(),
    "names at tabs": ("Word\tTag\n" + table("\t")).encode(),
    "quoted cells": table(",").replace("Lee", '"Lee"').replace(".,", '".",').encode(),
    "empty rows of a spreadsheet": table(",").replace("\n\n", "\n,\n").encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_are_the_same_text(tmp_path: Path, form: str) -> None:
    data = load(tmp_path, FORMS[form])
    assert rows(data) == [SENTENCE] * N
    assert (data.task, data.metric) == ("spans", "f1")


def test_a_word_may_hold_separators(tmp_path: Path) -> None:
    spaced = table("\t").replace("Lee", "van der Lee")
    assert load(tmp_path, spaced).splits["train"].sentence(0, "word")[1] == "van der Lee"
    quoted = table(",").replace("Lee", '"Lee, ""Jr."""')
    assert load(tmp_path, quoted).splits["train"].sentence(0, "word")[1] == 'Lee, "Jr."'
    hashes = table().replace("sees", "#")
    assert load(tmp_path, hashes).splits["train"].sentence(0, "word")[2] == "#"
    first = table().replace("Ren\u00e9", "#")
    assert load(tmp_path, first).splits["train"].sentence(3, "word")[0] == "#"


def test_a_table_of_sentences_has_its_columns_from_its_names(tmp_path: Path) -> None:
    lines = ["Sentence #,Word,POS,Tag"]
    for number in range(3):
        for place, (word, label) in enumerate(SENTENCE):
            lines.append(f"{'' if place else f'Sentence: {number}'},{word},X,{label}")
    file = tmp_path / "ner.csv"
    file.write_bytes("\n".join(lines).encode("latin-1"))
    assert columns_of(file, ("word", "pos", "label")) == ("_", "word", "pos", "label")
    data = load_user_data(file, ("word", "pos", "label"), cut=False)
    assert rows(data) == [SENTENCE] * 3
    assert data.metadata["form"] == "Latin-1 (cp1252), columns at commas, names in line 1"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (table().encode().replace(b"sees", b"s\xff\xfes", 1), r"my\.txt:3: byte 0xff .*--encoding"),
        (table().replace("Ren\u00e9", "\u0416\u0443\u043a").encode("cp1251"), r":1: .*cp1251"),
        (table().encode().replace(b"sees", b"s\0s", 1), r":3: NUL byte"),
        (table(",").replace("sees,O", "sees,O,,", 1).encode(), r"my\.txt:3: 4 columns where 2"),
        (table(",").replace("sees,O", 'sees,"O', 1).encode(), r":3: .*'\"O'|:3: a damaged row"),
        (table("\t").replace("Lee", "a b").replace("sees", "", 1).encode(), r":3: .*'word' is emp"),
        (b"a\nb\n\nc\n", r":1: 1 column where 2"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_its_place(
    tmp_path: Path, data: bytes, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        load(tmp_path, data)


@pytest.mark.parametrize(
    ("row", "given", "expected", "hint"),
    [
        ("a X", "word,pos,label", "2 columns where 3", "give --columns word,label"),
        ("a,X", "word,pos,label", "2 columns where 3", "give --columns word,label"),
        ("a P X", "word,label", "3 columns where 2", "give --columns word,pos,label"),
        (
            "a b\tP\tQ\tX",
            "word,label",
            "4 columns",
            r"--columns word,_,_,label; _ leaves a column out",
        ),
        ("a", "word,label", "1 column where 2", "each line needs a word and its label"),
    ],
)
def test_another_number_of_columns_says_what_reads_them(
    tmp_path: Path, row: str, given: str, expected: str, hint: str
) -> None:
    file = tmp_path / "my.txt"
    file.write_text(f"\n{row}\n{row}\n\n{row}\n")
    with pytest.raises(UserError, match=rf"my\.txt:2: {expected}.* are expected; .*{hint}"):
        load_user_data(file, tuple(given.split(",")))
    names = re.search("columns ([a-z_,]+)", hint)
    if names:
        assert load_user_data(file, tuple(names[1].split(",")), cut=False)


def test_unlabeled_text_of_other_columns_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a P X\nb P X\n\na P X\n")
    (tmp_path / "unlabeled.txt").write_text("a\nb\n\na\n")
    data = load_user_data(tmp_path, ("word", "pos", "label"))
    assert data.external is not None
    with pytest.raises(UserError, match=r"txt:1: 1 column where 3 .*columns of the labeled files"):
        list(data.external())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("the DET\ncat ?\n\nthe _\nX N\n", "'?' is learned as a label, of 1 token."),
        ("why ADV\n? ?\n\nso ADV\n_ _\n", ""),
        ("why ADV\nso ADV\n\nso ADV\n", ""),
    ],
)
def test_a_label_that_may_be_open_is_said(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "my.txt"
    file.write_text(text)
    notices: list[str] = []
    load_user_data(file, ("word", "label"), notices.append, cut=False)
    assert [said in notice for notice in notices] == [True] * bool(said)


def test_options_say_what_files_do_not(tmp_path: Path) -> None:
    cyrillic = table().replace("Ren\u00e9", "\u0416\u0443\u043a").encode("cp1251")
    data = load(tmp_path, cyrillic, reading=Reading(encoding="cp1251"))
    assert data.splits["train"].sentence(0, "word")[0] == "\u0416\u0443\u043a"
    bars = load(tmp_path, table("|"), reading=Reading(separator="|"))
    assert rows(bars) == [SENTENCE] * N
    text = table().replace("\n\n", "\n\n%% a line\n")
    assert rows(load(tmp_path, text, reading=Reading(comment="%%"))) == [SENTENCE] * N
    both = "New York\tB-LOC\nis big\tO\n\n" * 9
    with pytest.raises(UserError, match=r"2 columns at tabs, and 3 at white space; .*--separator"):
        load(tmp_path, both, columns=("word", "pos", "label"))
    tabs = load(tmp_path, both, reading=Reading(separator="tab"))
    assert tabs.splits["train"].sentence(0, "word") == ["New York", "is big"]
    with pytest.raises(UserError, match="unknown encoding 'utf-9'"):
        load(tmp_path, table(), reading=Reading(encoding="utf-9"))
    with pytest.raises(UserError, match="the separator cannot be 'ab'"):
        load(tmp_path, table(), reading=Reading(separator="ab"))


SPELLINGS = [
    *("B_PER I_PER O", "B/PER I/PER O", "B:PER I:PER O", "B|PER I|PER O", "B.PER I.PER O"),
    *("b-PER i-PER o", "b_PER i_PER O", "B-PER I-PER 0", "B-PER I-PER o", "PER-B PER-I O"),
    *("B-PER L-PER O", "B-PER E-PER O", "I-PER I-PER O", "b-PER l-PER o"),
]


@pytest.mark.parametrize("labels", SPELLINGS)
def test_spellings_of_chunk_tags_are_the_same_chunks(tmp_path: Path, labels: str) -> None:
    begin, inside, outside = labels.split()
    text = "".join(f"a {begin}\nb {inside}\nc {outside}\nd {outside}\n\n" for _ in range(N))
    data = load(tmp_path, text)
    assert (data.task, data.metric, data.encoding) == ("spans", "f1", "IOB2")
    assert rows(data)[0] == [("a", "B-PER"), ("b", "I-PER"), ("c", "O"), ("d", "O")]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("B_PER B_PER B_PER I_PER O I-PER", r":6: label 'I-PER' is not spelled as the others"),
        ("B-PER B-PER I-PER O X-PER", r":5: label 'X-PER' does not fit IOB2; .*--scheme plain"),
        ("B-PER L-PER U-LOC O M-PER", r":5: label 'M-PER' (is not|does not)"),
        ("S O S O", "may be chunk tags without types, or plain tags; give --scheme plain"),
    ],
)
def test_doubtful_labels_are_asked_for(tmp_path: Path, labels: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load(tmp_path, "".join(f"w {label}\n" for label in labels.split()))
    plain = load(
        tmp_path,
        "".join(f"w {label}\n" for label in labels.split()),
        reading=Reading(scheme="plain"),
    )
    assert (plain.task, plain.metadata["source_scheme"]) == ("tagging", "none")


def test_a_given_scheme_is_checked(tmp_path: Path) -> None:
    text = "a B\nb L\nc U\nd O\n\n" * N
    data = load(tmp_path, text, reading=Reading(scheme="BILOU"))
    assert data.splits["train"].sentence(0, "label") == ["B", "I", "B", "O"]
    with pytest.raises(UserError, match=r":2: label 'L' does not fit IOB2"):
        load(tmp_path, text, reading=Reading(scheme="IOB2"))


def test_running_text_is_the_unlabeled_part(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(table())
    (tmp_path / "unlabeled.txt").write_text(
        "Lee sees Ham.\n\nA longer line, of more words!\nA third line, too.\n"
    )
    data = load_user_data(tmp_path, COLUMNS, cut=False)
    assert data.external is not None
    (text,) = data.external()
    assert text.sentences("word")[0] == ["Lee", "sees", "Ham", "."]
    assert "running text, a sentence per line" in str(data.metadata["form"])
    refused = load_user_data(tmp_path, COLUMNS, cut=False, reading=Reading(raw=False)).external
    assert refused is not None
    with pytest.raises(UserError, match="are expected"):
        refused()
    (tmp_path / "train.txt").write_text(table().replace(" ", " X "))
    external = load_user_data(tmp_path, ("word", "pos", "label"), cut=False).external
    assert external is not None
    with pytest.raises(UserError, match="running text has words alone"):
        external()


LAYOUTS: list[tuple[dict[str, str], list[str]]] = [
    ({"en_x-ud-train.conllu": "train", "en_x-ud-dev.conllu": "dev"}, ["LICENSE.txt"]),
    ({"eng.train": "train", "eng.testa": "dev", "eng.testb": "test"}, ["eng.README"]),
    ({"train.txt": "train", "valid.txt": "dev", "test.txt": "test"}, ["tags.txt", "train.md"]),
    ({"ner_train.csv": "train", "ner_validation.csv": "dev", "ner_test.csv": "test"}, []),
    ({"train.tsv.gz": "train", "devel.tsv.gz": "dev", "unlabeled.gz": "unlabeled"}, []),
    ({"Train.CONLL": "train", "Test-a.conll": "test", "train-unlabeled.txt": "unlabeled"}, []),
    ({"trainset.iob2": "train", "testset.iob2": "test"}, ["latest.iob2", "contest.iob2"]),
]


@pytest.mark.parametrize(("names", "others"), LAYOUTS)
def test_names_of_releases_say_the_split(
    tmp_path: Path, names: dict[str, str], others: list[str]
) -> None:
    for name in (*names, *others):
        (tmp_path / name).write_text("a")
    assert find_files(tmp_path) == {split: tmp_path / name for name, split in names.items()}


def test_names_of_data_differ_where_those_of_files_do(tmp_path: Path) -> None:
    for name in ("news.v1", "news.v2"):
        (tmp_path / name).mkdir()
    (tmp_path / "news.v1" / "a.b.txt.gz").write_text("")
    assert dataset_name(tmp_path / "news.v1") == "news.v1"
    assert dataset_name(tmp_path / "news.v1" / "a.b.txt.gz") == "a.b"
