"""Files of brat, parquet and spaCy are the text of the JSON files."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from sslbench.engine.errors import UserError
from sslbench.experiment.data.imports import others
from sslbench.experiment.data.userdata import file_hashes, find_files, load_user_data

TEXT = "Ham wins .\n\nRené Lee sees Ham\n"
NOTES = "T1\tLOC 0 3\tHam\nT2\tPER 12 20\tRené Lee\nR1\tknows Arg1:T1 Arg2:T2\n#1\tNote T1\tno\n"
WORDS = [["Ham", "wins", "."], ["René", "Lee", "sees", "Ham"]]
TAGS = [["B-LOC", "O", "O"], ["B-PER", "I-PER", "O", "O"]]
NAMES = ["O", "B-PER", "I-PER", "B-LOC"]
CODES = [[NAMES.index(tag) for tag in tags] for tags in TAGS]


def load(path: Path) -> tuple[list[list[str]], list[list[str]]]:
    train = load_user_data(path, ("word", "label"), cut=False).splits["train"]
    return [list(s) for s in train.sentences("word")], [list(s) for s in train.sentences("label")]


def brat(folder: Path, name: str = "a", text: str = TEXT, notes: str = NOTES) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_bytes(text.encode())
    (folder / f"{name}.ann").write_bytes(notes.encode())


def test_brat_is_a_file_a_folder_or_folders_of_splits(tmp_path: Path) -> None:
    brat(tmp_path / "docs")
    for path in ("docs", "docs/a.txt", "docs/a.ann"):
        assert load(tmp_path / path) == (WORDS, TAGS)
    brat(tmp_path / "docs", "b")
    data = load_user_data(tmp_path / "docs", ("word", "label"), cut=False)
    documents = data.splits["train"].documents
    assert documents is not None
    assert documents.tolist() == [0, 0, 1, 1]
    assert data.metadata["form"] == "brat"
    splits = tmp_path / "splits"
    for name in ("train", "dev", "test"):
        splits.mkdir(exist_ok=True)
        brat(splits / name, name)
    assert set(find_files(splits)) == {"train", "dev", "test"}
    assert load(splits) == (WORDS, TAGS)


def test_both_files_of_brat_are_in_the_record(tmp_path: Path) -> None:
    brat(tmp_path / "docs")
    hashes = file_hashes(tmp_path / "docs", [tmp_path / "docs"])
    assert set(hashes) == {"a.ann", "a.txt"}


def test_offsets_of_brat_count_carriage_returns(tmp_path: Path) -> None:
    text = TEXT.replace("\n", "\r\n")
    brat(tmp_path / "docs", text=text, notes="T1\tPER 14 22\tRené Lee\r\n")
    assert load(tmp_path / "docs")[1][1][:2] == ["B-PER", "I-PER"]


@pytest.mark.parametrize(
    ("notes", "message"),
    [
        ("T1\tPER 0 3", None),
        ("\nT1 PER 0 3 Ham", r"a\.ann:2: is no span of brat; T1<tab>"),
        ("T1\tPER 0 3;4 8\tHam wins", r"a\.ann:1: the span 'Ham wins' has several pieces; chunk"),
        ("T1\tPER 0 3\tHat", r"a\.ann: the span 'Hat' is 'Ham' in the text, from 0 to 3"),
        ("T1\tPER 0 99", r"a\.ann: a span from 0 to 99 in \d+ characters"),
        ("T1\tX 0 3\nT2\tY 0 8", r"a\.ann: the spans 'Ham' \(X\) and 'Ham wins' \(Y\) share"),
    ],
)
def test_bad_annotations_are_named(tmp_path: Path, notes: str, message: str | None) -> None:
    brat(tmp_path / "docs", notes=notes)
    if message is None:
        assert load(tmp_path / "docs")[1][0] == ["B-PER", "O", "O"]
    else:
        with pytest.raises(UserError, match=message):
            load(tmp_path / "docs")


def test_annotations_without_text_are_named(tmp_path: Path) -> None:
    brat(tmp_path / "docs")
    (tmp_path / "docs" / "a.txt").unlink()
    with pytest.raises(UserError, match=r"a\.ann: no text beside it; brat needs a\.txt"):
        load(tmp_path / "docs")


def test_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="needs pyarrow (extra import)")
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "train-00000-of-00001.parquet"
    parquet.write_table(arrow.table({"tokens": WORDS, "ner_tags": TAGS}), file)
    assert load(tmp_path) == (WORDS, TAGS)
    features = {"features": {"ner_tags": {"feature": {"names": NAMES}, "_type": "Sequence"}}}
    table = arrow.table({"tokens": WORDS, "pos_tags": CODES, "ner_tags": CODES})
    named = table.replace_schema_metadata({"huggingface": json.dumps({"info": features})})
    parquet.write_table(named, file)
    assert load(file) == (WORDS, TAGS)
    parquet.write_table(table, file)
    with pytest.raises(UserError, match=r"parquet: record 1: ner_tags are numbers.*--label-names"):
        load(file)
    parquet.write_table(arrow.table({"tokens": [["a", "b"]], "ner_tags": [["O"]]}), file)
    with pytest.raises(UserError, match=r"record 1: 2 tokens and 1 ner_tags"):
        load(file)
    parquet.write_table(arrow.table({"id": [1]}), file)
    with pytest.raises(UserError, match="record 1: an object with the keys id is no sentence"):
        load(file)
    file.write_bytes(b"PAR1 and more")
    with pytest.raises(UserError, match=r"parquet: is no parquet file"):
        load(file)


def test_docbin(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy", reason="needs spacy (extra import)")
    tokens = pytest.importorskip("spacy.tokens")
    vocab, docs = spacy.blank("xx").vocab, []
    for words, tags in zip(WORDS, TAGS, strict=True):
        docs.append(tokens.Doc(vocab, words=[*words, " "], ents=[*tags, "O"]))
    both = tokens.Doc(
        vocab,
        words=[*WORDS[0], *WORDS[1]],
        ents=[*TAGS[0], *TAGS[1]],
        sent_starts=[True, False, False, True, False, False, False],
    )
    file = tmp_path / "train.spacy"
    tokens.DocBin(docs=docs).to_disk(file)
    assert load(file) == (WORDS, TAGS)
    tokens.DocBin(docs=[both]).to_disk(file)
    assert load(file) == (WORDS, TAGS)
    pos = tokens.Doc(vocab, words=WORDS[0], pos=["NOUN", "VERB", "PUNCT"])
    tokens.DocBin(docs=[pos, pos], attrs=["ORTH", "POS"]).to_disk(file)
    assert load(file)[1] == [["NOUN", "VERB", "PUNCT"]] * 2
    with zipfile.ZipFile(file, "w"):
        pass
    with pytest.raises(UserError, match="is no DocBin of spaCy"):
        load(file)


@pytest.mark.parametrize(("name", "library"), [("a.spacy", "spacy"), ("a.parquet", "pyarrow")])
def test_a_missing_library_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, library: str
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(others, "import_module", missing)
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(UserError, match=rf"{name}: reading it needs {library}; pip install 'ssl"):
        load(tmp_path / name)
