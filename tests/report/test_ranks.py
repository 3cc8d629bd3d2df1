"""Ranks over shared seeds, identical repeats, baselines, groups, marks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.experiment.records.predictions import Predictions
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.trials import TuningSpent
from sslbench.report.board import Board, board_of_tables
from sslbench.report.leaderboard import Table, leaderboard
from sslbench.report.page.build import Sources, page
from sslbench.report.ranks import group_letters, shared_seeds
from sslbench.report.render import csv_text, markdown, plain
from sslbench.report.rows import row_key, row_names
from support.board_records import boards, broken, record, row_of


def board_of(table: Table) -> Board:
    return board_of_tables([table], lambda row: "")


def runs(method: str, seeds: Sequence[int], **changes: object) -> list[RunRecord]:
    return [record(method, seed, **changes) for seed in seeds]


def ranks(records: Sequence[RunRecord]) -> dict[str, int | None]:
    (table,) = boards(records)
    return {row.name: row.rank for row in table.rows}


def test_one_seed_more_for_one_method_changes_no_rank() -> None:
    records = [*runs("supervised", (0, 1, 2)), *runs("worse", (0, 1, 2))]
    before = boards([*records, *runs("better", (0, 1, 2))])[0]
    after = boards([*records, *runs("better", (0, 1, 2, 3))])[0]
    assert [row.mean for row in after.rows] == [row.mean for row in before.rows]
    assert [row.rank for row in after.rows] == [1, 2, 3]
    assert after.seeds == (0, 1, 2)


def test_a_failure_costs_only_its_own_row() -> None:
    records = [*runs("supervised", (0, 1, 2)), *runs("better", (0, 1)), broken("better", 2)]
    records += runs("worse", (0, 1, 2))
    assert ranks(records) == {"supervised": 1, "worse": 2, "better": None}
    (table,) = boards(records)
    assert table.seeds == (0, 1, 2)
    assert row_of(table, "better").notes == ("seed 2: failed",)
    assert row_of(table, "better").draws == 2


def test_two_merged_stores_are_ranked_over_what_they_share() -> None:
    records = [*runs("supervised", range(5)), *runs("better", (0, 1, 2)), *runs("worse", range(5))]
    assert ranks(records) == {"better": 1, "supervised": 2, "worse": 3}
    few = [*runs("supervised", range(5)), *runs("worse", range(5)), *runs("better", (0,))]
    assert ranks(few) == {"supervised": 1, "worse": 2, "better": None}
    (table,) = boards(few)
    assert row_of(table, "better").notes == ("no run for seed 1, 2, 3, 4",)


def test_shared_seeds() -> None:
    assert shared_seeds([{0, 1}, {0, 1, 2}, {1, 2}]) == (1,)
    assert shared_seeds([{0}, {1}]) == (0,)
    assert shared_seeds([{0, 1, 2}] * 5 + [{0}]) == (0, 1, 2)
    assert shared_seeds([range(10), range(10), {0}]) == tuple(range(10))
    assert shared_seeds([range(3), range(3), {0}]) == (0, 1, 2)


def with_predictions(made: RunRecord, text: str) -> RunRecord:
    made.predictions = {"test": Predictions(("a", "b"), text)}
    made.predictions_sha256 = text
    return made


def repeated(method: str, seeds: Sequence[int], texts: Sequence[str]) -> list[RunRecord]:
    """Runs on all of train that have the counts of seed 0."""
    made = []
    for seed, text in zip(seeds, texts, strict=True):
        one, first = record(method, seed, labeled="all"), record(method, 0, labeled="all")
        one.counts, one.metrics = first.counts, first.metrics
        made.append(with_predictions(one, text))
    return made


def test_identical_repeats_count_once() -> None:
    records = repeated("supervised", (0, 1, 2), "xxx") + repeated("better", (0, 1, 2), "xxx")
    (table,) = boards(records)
    better = row_of(table, "better")
    assert (better.counted, better.repeats, better.sd, better.draws) == ((0,), 2, None, 1)
    assert better.paired is None
    assert better.taggers is not None
    assert "3 identical runs counted once" in markdown(board_of(table))
    assert "One draw" in markdown(board_of(table))
    # A method that draws is compared with the one run of the other.
    (table,) = boards(
        repeated("supervised", (0, 1, 2), "xxx") + repeated("better", (0, 1, 2), "xyz")
    )
    better = row_of(table, "better")
    assert (better.counted, better.repeats, better.draws) == ((0, 1, 2), 0, 3)
    assert better.paired is not None


def test_equal_predictions_from_different_samples_are_no_repeats() -> None:
    records = [with_predictions(record("supervised", seed), "x") for seed in (0, 1, 2)]
    (table,) = boards(records)
    assert row_of(table, "supervised").repeats == 0


def test_the_baseline_is_what_is_named() -> None:
    records = [*runs("better", (0, 1)), *runs("worse", (0, 1))]
    (table,) = leaderboard(records)
    assert table.baselines == ()
    assert "No baseline" in markdown(board_of(table))
    (table,) = leaderboard(records, baselines=["worse"])
    assert row_of(table, "better").paired is not None
    assert row_of(table, "worse").paired is None
    assert "vs worse" in page(board_of(table), Sources())
    assert "supervised" not in page(board_of(table), Sources())


def test_of_several_rows_of_the_baseline_the_nearest_in_parameters_counts() -> None:
    records = [record("supervised", params={"sigma2": s, "a": 1}) for s in (1.0, 10.0)]
    records.append(record("better", params={"sigma2": 10.0, "b": 2}))
    records[1].metrics["test"]["accuracy"] = 0.25
    counts = records[1].counts["test"]
    counts["correct_tokens"] = [0] * len(counts["correct_tokens"])
    (table,) = boards(records)
    better = row_of(table, "better")
    assert better.taggers is not None
    assert better.taggers.difference == pytest.approx(better.mean)  # that one is never right


def test_rows_are_named_by_the_parameters_that_differ() -> None:
    made = [
        record("supervised", params={"sigma2": 10.0, "order": 1}),
        record("better", params={"sigma2": 10.0, "keep": "best"}),
        record("better", params={"sigma2": 10.0, "keep": "last"}),
    ]
    names = row_names([row_key(one) for one in made])
    assert list(names.values()) == ["supervised", "better (keep=best)", "better (keep=last)"]
    twin = msgspec.structs.replace(made[0].spec, featurizer_digest="other")
    made.append(record("supervised", params={"sigma2": 10.0, "order": 1}))
    made[-1].spec = twin
    names = row_names([row_key(one) for one in made])
    assert len(set(names.values())) == 4


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(
            st.just(n), st.sets(st.sampled_from(list(itertools.combinations(range(6), 2))))
        )
    )
)
def test_letters_are_shared_by_those_that_are_not_apart(
    case: tuple[int, set[tuple[int, int]]],
) -> None:
    n, pairs = case
    apart = {pair for pair in pairs if max(pair) < n}
    letters = group_letters(n, apart)
    assert all(letters)
    for a, b in itertools.combinations(range(n), 2):
        assert bool(set(letters[a]) & set(letters[b])) == ((a, b) not in apart)


def test_rank_intervals_and_groups() -> None:
    records = [
        run for method in ("better", "supervised", "worse") for run in runs(method, range(5))
    ]
    (table,) = boards(records)
    assert [(row.rank_low, row.rank_high, row.group) for row in table.rows] == [
        (1, 1, "a"),
        (2, 2, "b"),
        (3, 3, "c"),
    ]
    same = []
    for run in runs("supervised", range(5)):
        twin = record("another", run.spec.protocol.seed)
        twin.counts, twin.metrics = run.counts, run.metrics
        same.append(twin)
    (table,) = boards([*records, *same])
    assert [row.rank for row in table.rows] == [1, 2, 2, 4]
    assert [row.group for row in table.rows] == ["a", "b", "b", "c"]
    assert (table.rows[1].rank_low, table.rows[1].rank_high) == (2, 3)
    (table,) = boards([run for run in records if run.spec.protocol.seed == 0])
    assert {row.group for row in table.rows} == {""}  # one draw


def test_untuned_methods_and_development_labels_are_told() -> None:
    tuned, other = record("supervised", tune=3), record("better", tune=3)
    tuned.tuned = TuningSpent(status="tuned", trials=2, cpu_s=5.0)
    other.tuned = TuningSpent(status="untuned")
    other.audit = {"dev_labels": "used by the method"}
    (table,) = boards([tuned, other])
    assert (row_of(table, "supervised").trials, row_of(table, "supervised").tune_cpu_s) == (2, 5.0)
    assert row_of(table, "supervised").notes == ()
    assert row_of(table, "better").notes == ("untuned", "used development labels itself")
    assert "2, 5 s" in markdown(board_of(table))


def test_stale_runs_are_marked_in_every_format() -> None:
    records = [*runs("supervised", (0, 1)), *runs("better", (0, 1))]
    (table,) = leaderboard(records, ["supervised"], {records[0].run_id})
    assert row_of(table, "supervised").stale
    assert not row_of(table, "better").stale
    for text in (
        markdown(board_of(table)),
        page(board_of(table), Sources()),
        plain([table]),
        csv_text([table]),
    ):
        assert "stale: seeds 0" in text


def test_the_short_form_fits_a_terminal() -> None:
    params = [{"alpha": a, "a_long_name_of_a_parameter": "x" * 20 + str(a)} for a in (0.1, 0.2)]
    records = [run for p in params for s in range(3) for run in [record("better", s, params=p)]]
    text = plain(boards([*records, *runs("supervised", range(3))]))
    assert max(map(len, text.splitlines())) <= 100
    assert "a_long_name" in text


def test_test_sets_that_differ_by_seed_are_tested_too() -> None:
    records = [*runs("supervised", range(4)), *runs("better", range(4))]
    for run in records:
        run.data["test_sha256"] = f"test of {run.spec.protocol.seed}"
    (table,) = boards(records)
    better = row_of(table, "better")
    assert (better.draws, better.rank) == (4, 1)
    assert better.paired is not None
    same = boards([*runs("supervised", range(4)), *runs("better", range(4))])[0]
    assert better.paired.difference == pytest.approx(row_of(same, "better").paired.difference)
    assert np.isfinite([better.paired.low, better.taggers.high]).all()
