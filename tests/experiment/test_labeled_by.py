"""Labeled sentences that are chosen, not drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from sslbench.cli import cli
from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.engine.types import I64
from sslbench.experiment.data import Dataset
from sslbench.experiment.inputs.labeled_by import (
    chosen_order,
    total_entropies,
    uncertain_and_unlike,
)
from sslbench.experiment.inputs.protocol import draw, draw_order, fold_draws, rest_of_train
from sslbench.experiment.planning.published import results_text
from sslbench.experiment.records.record import ProtocolSpec
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import LabeledBy
from support.synth_text import synth_text

WAYS: Sequence[LabeledBy] = ("uncertainty", "diversity")
TEXT = synth_text(120, 3)


def test_total_entropies_are_sums_over_tokens() -> None:
    marginals = np.array([[1.0, 0.0], [0.5, 0.5], [0.2, 0.8]])
    got = total_entropies(marginals, np.array([0, 2, 2, 3]))
    single = [stats.entropy(row) for row in marginals]
    np.testing.assert_allclose(got, [single[0] + single[1], 0.0, single[2]])


def test_a_sentence_like_one_that_is_chosen_waits() -> None:
    uncertainty = np.array([1.0, 3.0, 2.9, 0.5])
    similarity = np.eye(4)
    similarity[1, 2] = similarity[2, 1] = 0.9
    assert uncertain_and_unlike(uncertainty, np.eye(4), 2).tolist() == [1, 2]
    assert uncertain_and_unlike(uncertainty, similarity, 2).tolist() == [0, 1]
    assert uncertain_and_unlike(uncertainty, similarity, 3).tolist() == [0, 1, 3]
    assert uncertain_and_unlike(uncertainty, np.ones((4, 4)), 9).tolist() == [0, 1, 2, 3]


def test_what_is_known_counts_as_chosen() -> None:
    similarity = np.eye(4)
    similarity[0, 2] = similarity[2, 0] = 0.9  # the known one, and the second of the others
    got = uncertain_and_unlike(np.array([1.0, 3.0, 2.0]), similarity, 2, range(1))
    assert got.tolist() == [0, 2]


def sentences(corpus: Corpus, order: I64) -> list[list[str]]:
    return [corpus.sentence(int(number), "word") for number in order]


@pytest.mark.parametrize("by", WAYS)
def test_half_of_the_sample_is_random_and_all_is_there(by: LabeledBy) -> None:
    order = draw_order(120, 5)
    chosen = chosen_order(TEXT, order, 21, by)
    assert sorted(chosen) == list(range(120))
    assert chosen[:11].tolist() == order[:11].tolist()
    assert chosen[11:21].tolist() != order[11:21].tolist()
    later = [number for number in order[11:] if number not in chosen[:21]]
    assert chosen[21:].tolist() == later, "the others stay in the order of the draw"
    assert chosen_order(TEXT, order, 21, by).tolist() == chosen.tolist()


@pytest.mark.parametrize("by", WAYS)
def test_no_label_outside_of_the_first_half_is_read(by: LabeledBy) -> None:
    order = draw_order(120, 5)
    label = TEXT.column("label")
    wrong = label.codes.copy()
    hidden = np.ones(TEXT.n_tokens, dtype=bool)
    for number in order[:10]:
        hidden[TEXT.offsets[number] : TEXT.offsets[number + 1]] = False
    wrong[hidden] = 0
    other = TEXT.with_column("label", Column(label.vocabulary, wrong))
    assert chosen_order(other, order, 20, by).tolist() == chosen_order(TEXT, order, 20, by).tolist()


def test_sentences_that_a_tagger_is_sure_of_are_not_chosen() -> None:
    # Of "a" and "b" there is one label, "c" may have both.
    known = [["a", "b"]] * 6 + [["c", "a"]] * 4
    labels = [["N", "V"]] * 6 + [["N", "N"], ["V", "N"]] * 2
    sure, unsure = [["a", "b"]] * 10, [["c", "c"]] * 3
    rows = known + sure + unsure
    words = Corpus.from_sentences({"word": rows, "label": labels + [["N", "N"]] * 13})
    order = np.arange(len(rows))
    chosen = chosen_order(words, order, 20, "uncertainty")
    assert set(chosen[10:13].tolist()) | set(chosen[10:20].tolist()) >= {20}


@pytest.mark.parametrize("by", WAYS)
def test_draws_folds_and_text(by: LabeledBy) -> None:
    data = Dataset("toy", "tagging", "accuracy", None, {"train": TEXT})
    protocol = ProtocolSpec(labeled=20, seed=5, labeled_by=by)
    drawn = draw(data, protocol)
    first = set(draw_order(120, 5)[:10].tolist())
    assert first <= set(drawn.labeled.tolist())
    assert sorted([*drawn.labeled, *drawn.hidden]) == list(range(120))
    assert set(rest_of_train(data, protocol)) == set(drawn.hidden.tolist())
    held = [
        set(part.tolist())
        for _, part in fold_draws(data, msgspec.structs.replace(protocol, folds=4))
    ]
    assert all(0 < len(part & first) < len(part) for part in held), "a fold has both halves"


@pytest.mark.parametrize("n", [0, 1, 120])
def test_there_must_be_a_half_to_choose(n: int) -> None:
    with pytest.raises(UserError, match=f"{n} of 120 sentences are labeled: none can be chosen"):
        chosen_order(TEXT, draw_order(120, 0), n, "diversity")


@pytest.mark.parametrize("labeled", ["all", "1"])
def test_the_command_says_so_before_it_runs(labeled: str, tmp_path: Path) -> None:
    words = ["run", "--method", "supervised", "--dataset", "synth", "--labeled", labeled]
    words += ["--labeled-by", "diversity", "--store", str(tmp_path / "runs")]
    result = CliRunner().invoke(cli, words)
    assert f"--labeled-by diversity with {labeled} labeled" in result.stderr
    assert not (tmp_path / "runs").exists()


def test_weak_labels_are_not_read() -> None:
    order = draw_order(120, 5)
    weak = Column(Vocabulary(["N", ""]), np.zeros(TEXT.n_tokens, dtype=np.int32))
    columns = {"weak:gaz": weak, **{n: c for n, c in TEXT.columns.items() if n != "word"}}
    other = Corpus({**columns, "word": TEXT.column("word")}, TEXT.offsets)
    expected = chosen_order(TEXT, order, 20, "uncertainty").tolist()
    assert chosen_order(other, order, 20, "uncertainty").tolist() == expected


def test_the_command_gives_all_methods_the_same_sentences(tmp_path: Path) -> None:
    words = ["run", "--method", "supervised", "--method", "self_training", "--dataset", "synth"]
    words += ["--labeled", "20", "--labeled-by", "uncertainty", "--unlabeled", "50"]
    result = CliRunner().invoke(cli, [*words, "--store", str(tmp_path)])
    assert result.exit_code == 0, result.output
    first, second = Store(tmp_path).records()
    random = msgspec.structs.replace(first.spec.protocol, labeled_by=msgspec.UNSET)
    spec = msgspec.structs.replace(first.spec, protocol=random)
    other = msgspec.structs.replace(first, spec=spec)
    lines = results_text([first, other]).splitlines()
    assert len(lines) == 3, "published results of random and of chosen samples are one line"
    assert first.spec.protocol == second.spec.protocol
    assert first.spec.protocol.describe_labeled() == "labeled 20 by uncertainty"
    assert first.spec.protocol.sample == "20 by uncertainty"
