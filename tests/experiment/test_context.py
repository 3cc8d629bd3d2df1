"""What a run notes of its rounds and trainings, and which round it keeps."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sslbench.engine.crf import ChainCRF, TrainingResult
from sslbench.experiment.context.context import RunContext
from support.graph_toys import toy


def test_rounds_end_at_the_limit() -> None:
    run = RunContext()
    rounds = run.rounds(3)
    assert rounds.number == 0
    for number in rounds:
        assert number == rounds.number
        rounds.record("trained", gain=number / 2)
    assert run.trace == {
        "rounds": [{"gain": 0.5}, {"gain": 1.0}, {"gain": 1.5}],
        "stopped": "max_rounds",
    }
    json.dumps(run.trace)


def test_the_round_that_stops_is_the_last_and_ends_first() -> None:
    run, ended = RunContext(), []
    rounds = run.rounds(9)
    for number in rounds:
        if number == 2:
            rounds.stop("converged")
        ended.append(number)
    assert ended == [1, 2]
    assert run.trace["stopped"] == "converged"


def test_no_round_after_a_stop_before_the_first() -> None:
    run = RunContext()
    rounds = run.rounds(9)
    rounds.stop("nothing_to_do")
    assert list(rounds) == []
    assert run.trace == {"rounds": [], "stopped": "nothing_to_do"}


@pytest.mark.parametrize("quiet", [True, False])
def test_rounds_and_trainings_are_shown(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    run = RunContext(quiet=quiet)
    result = TrainingResult(-1.5, "gradient", True, 7, 9, 1e-6, 12)
    run.record(result, "supervised")
    run.record(result)
    rounds = run.rounds(2)
    for _ in rounds:
        rounds.record("F 1.000")
    lines = [
        "supervised: 7 iterations, gradient",
        "training: 7 iterations, gradient",
        "round 1: F 1.000",
        "round 2: F 1.000",
    ]
    assert capsys.readouterr().err.splitlines() == ([] if quiet else lines)
    assert run.trace["supervised"] == run.trace["training"] == vars(result)


def kept(scores: list[float | None]) -> tuple[ChainCRF, RunContext]:
    """The start and the rounds have these scores; the weights are the number of the round."""
    run, crf = RunContext(), toy()
    rounds = run.rounds(len(scores) - 1)
    rounds.candidate(scores[0], crf)
    for number in rounds:
        crf.weights += 1.0  # in place: a candidate must have a copy
        rounds.candidate(scores[number], crf)
    rounds.restore_best(crf)
    return crf, run


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([0.1, 0.3, 0.3, 0.2], 1),  # the first of equals
        ([0.5, 0.3, 0.4], 0),
        ([0.0, 0.1, 0.7], 2),
        ([None, 0.0, None], 1),
    ],
)
def test_the_best_candidate_is_restored(scores: list[float | None], best: int) -> None:
    crf, run = kept(scores)
    np.testing.assert_array_equal(crf.weights, float(best))
    assert run.trace["kept_round"] == best


def test_without_scores_the_last_round_stays() -> None:
    crf, run = kept([None, None, None])
    np.testing.assert_array_equal(crf.weights, 2.0)
    assert "kept_round" not in run.trace
