"""Files of other programs come back in their form, with labels; all else in them is kept."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from sslbench import train
from sslbench.engine.errors import UserError
from sslbench.experiment.data.reading import Reading
from sslbench.experiment.data.userdata import load_user_data
from sslbench.experiment.run.saved import TrainedTagger
from sslbench.tagging.annotated import Annotator
from sslbench.tagging.imports import ImportTagger, kind_to_tag

WORDS = ["Ham", "sees", "René", "Lee", "."]
TAGS = ["B-LOC", "O", "B-PER", "I-PER", "O"]
NAMES = ["O", "B-PER", "I-PER", "B-LOC"]
CODES = [NAMES.index(tag) for tag in TAGS]
TEXT = "Ham  sees René Lee.\n\nRené Lee sees Ham."
SPANS = [(0, 3, "LOC"), (10, 18, "PER"), (21, 29, "PER"), (35, 38, "LOC")]


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> TrainedTagger:
    file = tmp_path_factory.mktemp("t") / "a.txt"
    rows = "".join(f"{word} {tag}\n" for word, tag in zip(WORDS, TAGS, strict=True))
    swapped = "René B-PER\nLee I-PER\nsees O\nHam B-LOC\n. O\n"
    file.write_text(f"{rows}\n{swapped}\n" * 8)
    return train("supervised", data=file, columns=("word", "label"), guard=False, threads=1)


def work_on(tagger: TrainedTagger, file: Path, form: str = "", **asked: Any) -> ImportTagger:
    names = asked.pop("label_names", ())
    return ImportTagger(Annotator(tagger, **asked), str(file), form=form, label_names=names)


def tagged(tagger: TrainedTagger, file: Path, text: str = "", **asked: Any) -> str:
    if text:
        file.write_text(text)
    out = io.BytesIO()
    work_on(tagger, file, **asked).write_to(out)
    return out.getvalue().decode()


def labels_in(path: Path) -> list[list[str]]:
    data = load_user_data(path, ("word", "label"), cut=False, reading=Reading())
    return [list(labels) for labels in data.splits["train"].sentences("label")]


OBJECTS = {
    "words": ({"id": 7, "tokens": WORDS}, {"tags": TAGS}),
    "other words": ({"tokens": WORDS, "pos_tags": None}, {"pos_tags": TAGS}),
    "texts replaced": ({"tokens": WORDS, "ner_tags": ["O"] * 5}, {"ner_tags": TAGS}),
    "doccano": ({"id": 1, "text": TEXT}, {"label": [list(span) for span in SPANS]}),
    "doccano, relations": (
        {"text": TEXT, "entities": [{"id": 3, "start_offset": 0, "end_offset": 3, "label": "X"}]},
        {"entities": [{"label": k, "start_offset": s, "end_offset": e} for s, e, k in SPANS]},
    ),
    "JSON-MIN": (
        {"text": TEXT, "label": [{"start": 0, "end": 3, "text": "Ham", "labels": ["X"]}]},
        {"label": [{"start": s, "end": e, "text": TEXT[s:e], "labels": [k]} for s, e, k in SPANS]},
    ),
    "spans": (
        {"text": TEXT, "spans": []},
        {"spans": [{"start": s, "end": e, "label": k} for s, e, k in SPANS]},
    ),
}


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("form", ["lines", "list"])
def test_objects_of_json(tagger: TrainedTagger, tmp_path: Path, kind: str, form: str) -> None:
    value, labels = OBJECTS[kind]
    both = [value, {**value, "n": 1.5}]
    text = "\n".join(map(json.dumps, both)) if form == "lines" else json.dumps(both, indent=1)
    out = tagged(tagger, tmp_path / "a.json", text)
    read = json.loads(out) if form == "list" else list(map(json.loads, out.splitlines()))
    assert read == [{**value, **labels}, {**value, "n": 1.5, **labels}]
    (tmp_path / "b.json").write_text(out)
    assert labels_in(tmp_path / "b.json")[0] == TAGS


def test_numbers_stay_numbers(tagger: TrainedTagger, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    text = json.dumps({"tokens": WORDS, "ner_tags": [0] * 5})
    out = tagged(tagger, file, text, label_names=NAMES)
    assert json.loads(out)["ner_tags"] == CODES
    with pytest.raises(UserError, match=r"a\.jsonl:1: the label 'B-LOC' has no number; the names"):
        tagged(tagger, file, text, label_names=NAMES[:3])


def test_prodigy_has_numbers_of_tokens(tagger: TrainedTagger, tmp_path: Path) -> None:
    tokens, at = [], 0
    for number, word in enumerate(["Ham", " ", *WORDS[1:]]):  # white space is a token of spaCy
        at = TEXT.index(word, at)
        tokens.append({"text": word, "start": at, "end": at + len(word), "id": number})
        at += len(word)
    values = [{"text": TEXT, "tokens": tokens}, {"text": "no", "answer": "reject", "spans": []}]
    out = tagged(tagger, tmp_path / "a.jsonl", "\n".join(map(json.dumps, values)))
    first, second = map(json.loads, out.splitlines())
    assert second == values[1]
    assert first["spans"] == [
        {"start": 0, "end": 3, "token_start": 0, "token_end": 0, "label": "LOC"},
        {"start": 10, "end": 18, "token_start": 3, "token_end": 4, "label": "PER"},
    ]


def test_tasks_of_label_studio_get_predictions(tagger: TrainedTagger, tmp_path: Path) -> None:
    done = {"value": {"start": 0, "end": 3, "labels": ["LOC"]}, "from_name": "ner", "to_name": "x"}
    tasks = [
        {"id": 1, "data": {"body": TEXT}, "annotations": []},
        {"id": 2, "data": {"body": "Ham."}, "annotations": [{"result": [done]}]},
    ]
    file = tmp_path / "a.json"
    first, second = json.loads(tagged(tagger, file, json.dumps(tasks)))
    assert second["annotations"] == tasks[1]["annotations"]
    results = first["predictions"][0]["result"]
    assert [(r["from_name"], r["to_name"], r["type"]) for r in results] == [
        ("ner", "x", "labels")
    ] * 4
    values = [each["value"] for each in results]
    assert [(v["start"], v["end"], v["labels"][0]) for v in values] == SPANS
    assert [v["text"] for v in values] == [TEXT[s:e] for s, e, _ in SPANS]


def test_pairs_of_spacy_2(tagger: TrainedTagger, tmp_path: Path) -> None:
    out = tagged(tagger, tmp_path / "a.json", json.dumps([[TEXT, {"cats": {"a": 1}}]]))
    assert json.loads(out) == [[TEXT, {"cats": {"a": 1}, "entities": list(map(list, SPANS))}]]


def test_scores_are_those_of_the_sentences_with_labels(
    tagger: TrainedTagger, tmp_path: Path
) -> None:
    values = [{"tokens": WORDS}, {"tokens": WORDS, "tags": TAGS}, {"tokens": ["new"]}]
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(map(json.dumps, values)))
    work = work_on(tagger, file)
    work.write_to(io.BytesIO())
    scores = work.scores()
    assert isinstance(scores, dict)
    assert scores["f1"] == 1
    assert work.n_sentences == 3
    assert work.form_line() == "JSON"


def test_other_forms(tagger: TrainedTagger, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    lines = [f"{word}\t{tag}" for word, tag in zip(WORDS, TAGS, strict=True)]
    text = json.dumps({"tokens": WORDS})
    assert tagged(tagger, file, text, form="conll").split("\n")[:5] == lines
    assert "confidence" in tagged(tagger, file, form="jsonl", marginals=True)
    with pytest.raises(UserError, match=r"have no place in this file; give --format jsonl, too"):
        tagged(tagger, file, marginals=True)


def test_texts_of_brat_come_back_in_a_folder(tagger: TrainedTagger, tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    (texts / "more").mkdir(parents=True)
    raw = TEXT.replace("\n", "\r\n").encode()
    (texts / "a.txt").write_bytes(raw)
    (texts / "more" / "b.txt").write_text("Ham .")
    (texts / "more" / "b.ann").write_text("T1\tLOC 0 3\tHam\n")
    assert kind_to_tag(texts) == "brat"
    work = work_on(tagger, texts)
    work.write_folder(tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_bytes() == raw
    assert labels_in(tmp_path / "out") == [TAGS, [*TAGS[2:4], "O", "B-LOC", "O"], ["B-LOC", "O"]]
    notes = (tmp_path / "out" / "a.ann").read_text()
    assert notes.startswith("T1\tLOC 0 3\tHam\nT2\tPER 10 18\tRené Lee\nT3\tPER 23 31\t")
    scores = work.scores()
    assert isinstance(scores, dict)
    assert scores["f1"] == 1
    with pytest.raises(UserError, match="the texts are in this folder; give another --out"):
        work.write_folder(texts)
    with pytest.raises(UserError, match=r"come back as files; give --out FOLDER"):
        work_on(tagger, texts).write_to(io.BytesIO())


def test_a_docbin(tagger: TrainedTagger, tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy", reason="needs spacy (extra import)")
    tokens = pytest.importorskip("spacy.tokens")
    doc = tokens.Doc(spacy.blank("xx").vocab, words=["Ham", " ", *WORDS[1:]])
    doc.user_data["place"] = "x"
    file, out = tmp_path / "a.spacy", tmp_path / "b.spacy"
    tokens.DocBin(docs=[doc, doc], store_user_data=True).to_disk(file)
    with out.open("wb") as stream:
        work_on(tagger, file).write_to(stream)
    assert labels_in(out) == [TAGS, TAGS]
    both = list(tokens.DocBin().from_disk(out).get_docs(spacy.blank("xx").vocab))
    assert [(e.text, e.label_) for e in both[1].ents] == [("Ham", "LOC"), ("René Lee", "PER")]
    assert both[0].user_data == {"place": "x"}
    assert both[0].text == doc.text


@pytest.mark.parametrize("tags", [["DET", "X"], ["DT", "X"]])
def test_plain_tags_in_a_docbin(tmp_path: Path, tags: list[str]) -> None:
    spacy = pytest.importorskip("spacy", reason="needs spacy (extra import)")
    tokens = pytest.importorskip("spacy.tokens")
    plain = tmp_path / "train.txt"
    plain.write_text(f"the {tags[0]}\ndog {tags[1]}\n\n" * 8)
    tagger = train("supervised", data=plain, columns=("word", "label"), guard=False, threads=1)
    tokens.DocBin(docs=[tokens.Doc(spacy.blank("xx").vocab, words=["the", "dog"])] * 2).to_disk(
        tmp_path / "a.spacy"
    )
    with (tmp_path / "b.spacy").open("wb") as stream:
        work_on(tagger, tmp_path / "a.spacy").write_to(stream)
    assert labels_in(tmp_path / "b.spacy") == [tags, tags]


def test_parquet(tagger: TrainedTagger, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="needs pyarrow (extra import)")
    parquet = pytest.importorskip("pyarrow.parquet")
    file, out = tmp_path / "a.parquet", tmp_path / "b.parquet"
    feature = {"feature": {"names": NAMES, "_type": "ClassLabel"}, "_type": "Sequence"}
    table = arrow.table({"id": ["x", "y"], "tokens": [WORDS, WORDS]})

    def back(table: Any, features: dict[str, Any]) -> Any:
        metadata = {"huggingface": json.dumps({"info": {"features": features}})}
        parquet.write_table(table.replace_schema_metadata(metadata), file)
        with out.open("wb") as stream:
            work_on(tagger, file).write_to(stream)
        assert labels_in(out) == [TAGS, TAGS]
        read = parquet.read_table(out)
        assert read["id"].to_pylist() == ["x", "y"]
        return read

    new = back(table, {})
    assert new["tags"].to_pylist() == [TAGS, TAGS]
    assert b'"tags"' in new.schema.metadata[b"huggingface"]
    kind = arrow.list_(arrow.int8())
    zeros = table.append_column("ner_tags", arrow.array([[0] * 5] * 2, kind))
    coded = back(zeros, {"ner_tags": feature})
    assert coded["ner_tags"].to_pylist() == [CODES, CODES]
    assert coded.schema.field("ner_tags").type == kind
