"""Cross-validation: what each fold sees, and that one record pools them all."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.corpus import Column, Corpus, CorpusShards
from sslbench.engine.errors import UserError
from sslbench.experiment.data import Dataset
from sslbench.experiment.metrics import coverage, pool, score
from sslbench.experiment.records.predictions import pack_numbers, unpack_numbers
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.run.runner import execute
from support import run_fakes
from support.command import sslbench
from support.run_fakes import MajorityFit, opened_run, task, toy_splits

pytestmark = pytest.mark.usefixtures("fake_plugin")
FOLDS = 4


def drawn_folds(labeled: int | str = "all", seed: int = 0, k: int = FOLDS) -> list[list[int]]:
    """The folds by the rule of the documentation: every k-th sentence in the order of the draw."""
    order = np.random.default_rng([seed, 0x6C61626C]).permutation(60)
    sample = order[: 60 if labeled == "all" else labeled]
    return [sorted(sample[fold::k].tolist()) for fold in range(k)]


def keys(corpus: Corpus) -> list[str]:
    return [" ".join(corpus.sentence(i, "word")) for i in range(corpus.n_sentences)]


@pytest.mark.parametrize("labeled", ["all", 21])
@pytest.mark.parametrize("transductive", [False, True])
def test_a_fold_trains_on_the_other_sentences(labeled: int | str, transductive: bool) -> None:
    splits = toy_splits()
    data = Dataset("toy", "tagging", "accuracy", None, splits, transductive=transductive)
    train = splits["train"]
    session, sample = opened_run(data, labeled=labeled, seed=2, folds=FOLDS)
    expected = drawn_folds(labeled, seed=2)
    rest = sorted(set(range(60)) - {i for fold in expected for i in fold})
    assert len(sample.folds()) == FOLDS
    for fold, held in zip(sample.folds(), expected, strict=True):
        others = sorted(i for part in expected if part is not held for i in part)
        problem = session.problem(fold, fold.drawn.labeled)
        assert keys(problem.labeled) == keys(train.select(np.array(others)))
        assert keys(fold.dataset.splits["test"]) == keys(train.select(np.array(held)))
        text = [key for shard in problem.unlabeled for key in keys(shard)]
        assert text == keys(train.select(np.array([*rest, *(held if transductive else [])], int)))
        assert all("label" not in shard.columns for shard in problem.unlabeled)
        assert set(fold.dataset.splits) == {"train", "test"}


def test_tuning_stays_inside_of_the_fold() -> None:
    data = Dataset("toy", "tagging", "accuracy", None, toy_splits())
    for fold in opened_run(data, labeled=20, folds=FOLDS, tune=3)[1].folds():
        seen = {i for parts in fold.drawn.folds for part in parts for i in part.tolist()}
        assert seen == set(fold.drawn.labeled.tolist())
        assert not seen & set(fold.held_out.tolist())


def by_hand(labeled: int | str = "all", seed: int = 0) -> list[tuple[list[int], list[int]]]:
    """(correct tokens, tokens) of the held-out sentences, fold by fold: a loop of K trainings."""
    train = toy_splits()["train"]
    cut = drawn_folds(labeled, seed)
    counts = []
    for held in cut:
        others = np.array(sorted(i for part in cut if part is not held for i in part))
        table: dict[str, Counter[str]] = {}
        overall: Counter[str] = Counter()
        for i in others.tolist():
            for word, label in zip(
                train.sentence(i, "word"), train.sentence(i, "label"), strict=True
            ):
                table.setdefault(word, Counter())[label] += 1
                overall[label] += 1
        total = overall.total()
        right = []
        for i in held:
            words, gold = train.sentence(i, "word"), train.sentence(i, "label")
            best = [
                max("AB", key=lambda x: table.get(word, Counter())[x] + overall[x] / total)
                for word in words
            ]
            right.append(sum(a == b for a, b in zip(best, gold, strict=True)))
        counts.append((right, [int(train.lengths[i]) for i in held]))
    return counts


@pytest.mark.parametrize("labeled", ["all", 22])
def test_counts_are_those_of_a_loop_of_trainings(labeled: int | str) -> None:
    record = execute(task(labeled=labeled, seed=1, folds=FOLDS))
    assert (record.status, record.error) == ("ok", None)
    expected = by_hand(labeled, seed=1)
    assert record.counts["test"]["correct_tokens"] == [n for right, _ in expected for n in right]
    assert record.counts["test"]["n_tokens"] == [n for _, all_ in expected for n in all_]
    total = sum(record.counts["test"]["n_tokens"])
    assert record.metrics["test"]["accuracy"] == sum(n for r, _ in expected for n in r) / total
    assert set(record.metrics) == {"test"}
    n = 60 if labeled == "all" else labeled
    assert record.data["sentences"] == {"labeled": n, "unlabeled": 60 - n, "test": n}
    assert record.data["tokens"]["test"] == total
    assert len(record.trace["folds"]) == FOLDS
    assert record.protocol["folds"] == FOLDS


def test_predictions_are_in_the_order_of_the_counts() -> None:
    record = execute(task(seed=1, folds=FOLDS))
    right = right_by_sentence(record, run_fakes.load(None), 1)
    assert right == record.counts["test"]["correct_tokens"]
    order = [i for fold in drawn_folds(seed=1) for i in fold]
    assert unpack_numbers(record.sentence_ids["test"]).tolist() == order


def right_by_sentence(record: RunRecord, data: Dataset, seed: int) -> list[int]:
    """Correct tokens by sentence, from the predictions."""
    order = np.concatenate([np.array(fold) for fold in drawn_folds(seed=seed)])
    tested = data.splits["train"].select(order)
    predictions = record.predictions["test"]
    labels = np.array(predictions.labels)[predictions.codes(tested.n_tokens)]
    right = labels == np.array(tested.column("label").strings())
    return np.add.reduceat(right.astype(int), tested.offsets[:-1]).tolist()


def with_gold_swapped(data: Dataset, held: list[int]) -> Dataset:
    """The dataset with other labels in the sentences of one fold."""
    train = data.splits["train"]
    label = train.column("label")
    where = np.isin(np.repeat(np.arange(60), train.lengths), held)
    codes = np.where(where, 1 - label.codes, label.codes).astype(np.int32)
    changed = train.with_column("label", Column(label.vocabulary, codes))
    return replace(data, splits={**data.splits, "train": changed})


@pytest.mark.parametrize("tune", [0, 3])
def test_the_labels_of_a_fold_do_not_change_its_predictions(
    tune: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = run_fakes.load(None)
    found: list[RunRecord] = []
    for held in ([], drawn_folds()[2]):
        monkeypatch.setattr(run_fakes, "load", lambda *_, **__: with_gold_swapped(data, held))  # noqa: B023
        found.append(execute(task(folds=FOLDS, tune=tune)))
    first, other = (r.predictions["test"].codes(275) for r in found)
    lengths = data.splits["train"].lengths
    before = [i for fold in drawn_folds()[:2] for i in fold]
    begin = int(lengths[before].sum())
    end = begin + int(lengths[drawn_folds()[2]].sum())
    assert first[begin:end].tolist() == other[begin:end].tolist()
    assert first.tolist() != other.tolist()  # other folds train on these labels
    gold = [r.counts["test"]["correct_tokens"] for r in found]
    assert gold[0] != gold[1]


def test_trials_of_one_fold_do_not_answer_for_another(tmp_path: Path) -> None:
    kept, alone = (
        execute(task(labeled=24, folds=3, tune=4, store=store)) for store in (tmp_path, None)
    )
    assert kept.status == "ok"
    assert [t["fold"] for t in kept.tuning] == sorted(t["fold"] for t in kept.tuning)
    assert {t["fold"] for t in kept.tuning} == {0, 1, 2}
    scores = [[(t["fold"], t["params"], t["score"]) for t in r.tuning] for r in (kept, alone)]
    assert scores[0] == scores[1]


def test_labels_that_some_folds_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    """A label of one sentence is unknown where that sentence is held out: B is 0 there."""
    data = run_fakes.load(None)
    train = data.splits["train"]
    codes = train.column("label").codes + 1
    codes[train.offsets[7]] = 0
    label = Column(train.column("label").vocabulary, codes.astype(np.int32))
    rare = replace(data, splits={**data.splits, "train": train.with_column("label", label)})
    monkeypatch.setattr(run_fakes, "load", lambda *_, **__: rare)
    record = execute(task(folds=FOLDS))
    assert record.status == "ok"
    assert set(record.predictions["test"].labels) == {"A", "B", "C"}
    assert right_by_sentence(record, rare, 0) == record.counts["test"]["correct_tokens"]


def test_variants_are_pooled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def variants(fit: MajorityFit) -> dict[str, MajorityFit]:
        return {"all_a": MajorityFit(fit.labels, np.zeros_like(fit.table))}

    monkeypatch.setattr(MajorityFit, "variants", property(variants), raising=False)
    record = execute(task(folds=FOLDS))
    gold = toy_splits()["train"].column("label").strings()
    assert record.metrics["test"]["accuracy_all_a"] == gold.count("A") / len(gold)


def test_pooled_scores_are_those_of_the_whole_text() -> None:
    """Two halves of a text with their own training words; chunks and groups of sentences."""
    words = [["a", "b"], ["c", "a", "d"], ["b", "b"], ["d"]]
    gold = [["B-X", "I-X"], ["O", "B-X", "O"], ["B-Y", "O"], ["B-X"]]
    guess = [["B-X", "O"], ["O", "B-X", "O"], ["B-Y", "B-X"], ["O"]]
    known = [["a", "b"], ["d", "c"]]

    def corpus(rows: slice) -> Corpus:
        return Corpus.from_sentences({"word": words[rows], "label": gold[rows]}, vocabularies)

    vocabularies: dict[str, object] = {}
    parts = []
    for rows, seen in ((slice(0, 2), known[0]), (slice(2, 4), known[1])):
        own = corpus(rows)
        labeled = Corpus.from_sentences({"word": [seen], "label": [["O", "O"]]}, vocabularies)
        label = own.column("label")
        column = label.vocabulary.encode([x for row in guess[rows] for x in row])
        names = label.vocabulary.strings
        cover = coverage(own, labeled, CorpusShards(labeled.drop("label")))
        predicted = (names, column)
        scored = score(
            "spans",
            (names, label.codes),
            predicted,
            own.offsets,
            encoding="IOB2",
            coverage=cover,
        )
        parts.append(scored)
    pooled = pool(parts).metrics
    assert pooled["f1"] == pytest.approx(2 * 2 / (4 + 4))
    assert pooled["accuracy"] == 5 / 8
    # unseen: c and d of the second sentence, both right; both b of the third, one right
    assert pooled["unseen_accuracy"] == 3 / 4
    assert pooled["share_app"] == 2 / 4
    assert pooled["sentence_accuracy_app"] == 0.0


def test_a_users_few_sentences(tmp_path: Path) -> None:
    """Nothing is cut off, no test file is needed, and a bad number is one line."""
    file = tmp_path / "mine.conll"
    file.write_text("".join(f"w{i % 3} {'AB'[i % 3 == 0]}\nx A\n\n" for i in range(9)))
    base = ["run", "--method", "majority", "--model", "nothing", "--featurizer", "none"]
    base += ["--data", str(file), "--columns", "word,label", "--store", str(tmp_path / "runs")]
    result = sslbench(*base, "--folds", "3", "--format", "json")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)
    assert len(row["counts"]["test"]["n_tokens"]) == 9
    assert "held out for the test" not in result.stderr
    for bad, why in (
        ("1", "9 labeled sentences"),
        ("-2", "not in the range"),
        ("10", "into 10 folds"),
    ):
        refused = sslbench(*base, "--folds", bad)
        assert refused.exit_code == 2
        assert why in refused.stderr
    loo = sslbench(*base, "--folds", "9")
    assert loo.exit_code == 0


@given(st.lists(st.integers(0, 2**31 - 1)))
def test_packed_numbers_come_back(numbers: list[int]) -> None:
    assert unpack_numbers(pack_numbers(np.array(numbers, dtype=np.int64))).tolist() == numbers


@pytest.mark.parametrize("packed", ["?", "AAAA", "eNpj"])
def test_damaged_numbers_are_refused(packed: str) -> None:
    with pytest.raises(UserError, match="sentence numbers"):
        unpack_numbers(packed)
