"""Folds that keep documents and neighbors together."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from sslbench.engine.corpus import Corpus
from sslbench.experiment.data.userdata import load_user_data
from sslbench.experiment.inputs.folding import grouped_folds, in_document_order, kept_together
from sslbench.experiment.inputs.protocol import fold_draws
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.records.record import FoldBy, ProtocolSpec
from sslbench.experiment.request.request import RunRequest

DOCSTART = "-DOCSTART- O\n\n"


def topics(n_documents: int, per: int, shuffled: bool = False) -> list[list[str]]:
    """Sentences of documents: each has the name of its document and words that all have."""
    rng = np.random.default_rng(0)
    common = [f"w{i}" for i in range(50)]
    sentences = [
        [f"name{d}", *rng.choice(common, 6)] for d in range(n_documents) for _ in range(per)
    ]
    order = rng.permutation(len(sentences)) if shuffled else range(len(sentences))
    return [sentences[i] for i in order]


def rows(sentence: list[str]) -> str:
    return "".join(f"{word} {'N' if word.startswith('name') else 'O'}\n" for word in sentence)


@pytest.mark.parametrize("fold_by", ["documents", "blocks"])
def test_each_sentence_is_held_out_once_and_folds_are_balanced(fold_by: FoldBy) -> None:
    rng = np.random.default_rng(1)
    drawn = rng.permutation(100)[:60]
    documents = (np.arange(100) // 4).astype(np.int32)
    cut = grouped_folds(drawn, 5, documents, fold_by)
    assert sorted(np.concatenate([held for _, held in cut]).tolist()) == list(range(60))
    sizes = [len(held) for _, held in cut]
    assert max(sizes) - min(sizes) <= 4
    for train, held in cut:
        assert sorted([*train, *held]) == list(range(60))
        if fold_by == "documents":
            assert not set(documents[drawn[train]]) & set(documents[drawn[held]])
        else:  # nothing that is trained on lies between held-out sentences
            inside = (drawn[train] > drawn[held].min()) & (drawn[train] < drawn[held].max())
            assert not inside.any()


def test_fewer_documents_than_folds_are_cut_into_blocks() -> None:
    drawn = np.arange(30)[::-1]
    one = grouped_folds(drawn, 5, np.zeros(30, dtype=np.int32), "documents")
    assert next(drawn[held].tolist() for _, held in one) == [5, 4, 3, 2, 1, 0]


def test_a_text_in_document_order_is_seen_and_a_shuffled_one_is_not() -> None:
    assert in_document_order(Corpus.from_sentences({"word": topics(12, 5)}))
    assert not in_document_order(Corpus.from_sentences({"word": topics(12, 5, shuffled=True)}))
    assert not in_document_order(Corpus.from_sentences({"word": [["a"], ["b"]]}))


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("a.conll", DOCSTART, "\n"),
        ("b.conll", "\n\n", "\n"),
        ("c.conll", "# newdoc id = 3\n", "\n"),
    ],
)
def test_marks_of_documents(tmp_path: Path, name: str, before: str, after: str) -> None:
    text = "".join(
        (before if i % 3 == 0 else "") + rows(sentence) + after
        for i, sentence in enumerate(topics(4, 3))
    )
    train = load_user_data(write(tmp_path, name, text), ("word", "label"), cut=False).splits[
        "train"
    ]
    assert train.documents is not None
    assert train.documents.tolist() == np.repeat(range(4), 3).tolist()
    assert kept_together(train) == "documents"
    some = train.select([0, 5, 11]).documents
    assert some is not None
    assert some.tolist() == [0, 1, 3]


def test_conllu_and_columns_say_documents(tmp_path: Path) -> None:
    word = "\t".join(["1", "a", "_", "NOUN", *["_"] * 6])
    text = f"# newdoc\n# text = a\n{word}\n\n# text = a\n{word}\n\n# newdoc\n{word}\n\n"
    path = write(tmp_path, "a.conllu", text)
    train = load_user_data(path, ("word", "label"), cut=False).splits["train"]
    assert train.documents is not None
    assert train.documents.tolist() == [0, 0, 1]
    path = write(tmp_path, "b.conll", "a x N\nb x N\n\na y O\n\na y O\n")
    train = load_user_data(path, ("word", "document", "label"), cut=False).splits["train"]
    assert train.documents is not None
    assert train.documents.tolist() == [0, 1, 1]


def test_blank_lines_between_all_sentences_mark_no_documents(tmp_path: Path) -> None:
    path = write(tmp_path, "a.conll", "\n\n".join(map(rows, topics(4, 3))))
    assert load_user_data(path, ("word", "label"), cut=False).splits["train"].documents is None


def test_documents_of_several_corpora_are_different() -> None:
    one = Corpus.from_sentences({"word": [["a"], ["b"], ["c"]]})
    two = Corpus(one.columns, one.offsets, np.array([7, 7, 2], dtype=np.int32))
    joined = Corpus.concatenate([two, two.drop()]).documents
    assert joined is not None
    assert joined.tolist() == [1, 1, 0, 3, 3, 2]
    assert Corpus.concatenate([one, two]).documents is None
    with pytest.raises(ValueError, match="one per sentence"):
        Corpus(one.columns, one.offsets, np.array([1], dtype=np.int32))


def test_a_run_of_the_users_text_says_what_its_folds_keep_together(tmp_path: Path) -> None:
    for shuffled, documents, expected in [(False, True, "documents"), (False, False, "blocks")]:
        text = "".join(
            (DOCSTART if documents and i % 5 == 0 else "") + rows(sentence) + "\n"
            for i, sentence in enumerate(topics(12, 5, shuffled))
        )
        path = write(tmp_path, "mine.conll", text)
        request = RunRequest(method=("supervised",), data=path, columns=("word", "label"), folds=4)
        (task,) = plan(request, store=None, notice=lambda text: None)
        protocol = task.spec.protocol
        assert protocol.fold_by == expected
        assert f"4 folds by {expected}" in protocol.describe()
        train = load_user_data(path, ("word", "label"), cut=False)
        for drawn, held_out in fold_draws(train, protocol):
            names = [
                {train.splits["train"].sentence(i, "word")[0] for i in ids}
                for ids in (drawn.labeled, held_out)
            ]
            assert len(names[0] & names[1]) <= (0 if documents else 2)


def test_registered_data_have_folds_of_random_sentences() -> None:
    request = RunRequest(method=("supervised",), dataset=("synth",), labeled=20, folds=4)
    (task,) = plan(request, store=None, notice=lambda text: None)
    assert "fold_by" not in msgspec.to_builtins(task.spec.protocol)
    assert task.spec.protocol == ProtocolSpec(labeled=20, folds=4)


def testsimilarities_are_those_of_a_slow_program() -> None:
    from sslbench.experiment.inputs.folding import similarities

    sentences = [["a", "b", "a"], ["b", "c"], ["d"], ["a", "c", "e"], ["e"]]
    words = sorted({word for sentence in sentences for word in sentence})
    having = {word: sum(word in sentence for sentence in sentences) for word in words}
    vectors = [
        [(word in sentence and having[word] == 2) / 2 for word in words] for sentence in sentences
    ]
    lengths = [sum(x * x for x in vector) ** 0.5 or 1.0 for vector in vectors]
    expected = [
        [
            sum(x * y for x, y in zip(u, v, strict=True)) / p / q
            for v, q in zip(vectors, lengths, strict=True)
        ]
        for u, p in zip(vectors, lengths, strict=True)
    ]
    got = similarities(Corpus.from_sentences({"word": sentences}))
    np.testing.assert_allclose(got, expected, atol=1e-15)
