"""A training that is killed in a long step ends with the same bits: each method, each optimizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sslbench import RunContext, registry
from sslbench.engine.corpus import Corpus, CorpusShards
from sslbench.engine.crf import ChainModel, Options, Progress
from sslbench.engine.crf.optim.lbfgs import minimize
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import F64
from sslbench.engine.variables import CHECKPOINTS
from sslbench.experiment.context.checkpoints import Checkpoints
from sslbench.experiment.inputs.problem import Problem, predicted
from sslbench.experiment.planning.description import make_params
from support.synth_text import synth_text


class KilledError(Exception):
    """In place of a signal."""


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECKPOINTS, "0")


def checkpoints(folder: Path) -> Checkpoints:
    return Checkpoints(folder / "run", {"engine": "1"}).of("training")


def quartic(x: F64, gradient: F64) -> float:
    """Its scales differ, so that the search takes many steps; not convex at 0."""
    scale = np.logspace(0, 3, len(x))
    gradient[:] = scale * (x**3 - x) + 0.1
    return float((scale * (x**4 / 4 - x**2 / 2) + 0.1 * x).sum())


@pytest.mark.parametrize("how", ["plain", "nonnegative", "l1", "preconditioned", "long"])
@pytest.mark.parametrize("killed_at", [0, 1, 4, 13])
def test_a_killed_search(how: str, killed_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "long":
        monkeypatch.setattr("sslbench.engine.crf.optim.inverse_hessian.LONG", 0)
    start = np.linspace(-0.5, 2, 12)
    options: dict[str, Any] = {
        "plain": {},
        "long": {},
        "nonnegative": {"nonnegative": np.arange(0, 12, 2)},
        "l1": {"l1": 0.5},
        "preconditioned": {"preconditioner": 1 / np.logspace(0, 2, 12)},
    }[how]
    stop = Options(memory=4, ftol=0, gtol=1e-12, max_iterations=25)
    expected = minimize(quartic, start.copy(), stop, **options)
    states: list[dict[str, Any]] = []

    def keep(state: Callable[[], dict[str, Any]]) -> None:
        found = state()
        states.append({n: x.copy() if isinstance(x, np.ndarray) else x for n, x in found.items()})
        states[-1]["history"], states[-1]["order"] = list(found["history"]), list(found["order"])
        if len(states) > killed_at:
            raise KilledError

    assert expected.iterations > 13
    with pytest.raises(KilledError):
        minimize(quartic, start.copy(), stop, progress=Progress(None, keep), **options)
    told: list[int] = []
    found = minimize(
        quartic,
        start.copy(),
        stop,
        progress=Progress(states[-1], lambda state: None),
        callback=lambda iteration, *_: told.append(iteration),
        **options,
    )
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert (found.history, found.status) == (expected.history, expected.status)
    assert found.evaluations == expected.evaluations
    assert told == list(range(killed_at + 1, expected.iterations + 1))


def test_a_state_that_does_not_fit() -> None:
    states: list[dict[str, Any]] = []
    progress = Progress(None, lambda state: states.append(dict(state())))
    minimize(quartic, np.ones(5), Options(max_iterations=3), progress=progress)
    good = states[-1]
    for harm in (
        {"x": np.ones(4)},
        {"order": [7]},
        {"order": [99]},
        {"pair0": np.ones((1, 2, 4))},
        {"sy": np.ones(3)},
    ):
        with pytest.raises(ValueError):
            minimize(quartic, np.ones(5), progress=Progress({**good, **harm}, lambda state: None))


def problem() -> Problem:
    text = synth_text(40, seed=1)
    raw = Corpus({"word": text.column("word")}, text.offsets)
    labels = tuple(text.column("label").vocabulary.strings)
    shards = CorpusShards(raw.between(10, 40), 100)
    featurizer = TemplateFeaturizer(["word[0]", "word.suffix2[0]", "word[-1]"])
    labeled, dev = text.between(0, 10), text.between(30, 40)
    return Problem("tagging", None, labels, labeled, shards, dev, featurizer, ChainModel())


SMALL: Mapping[str, dict[str, Any]] = {
    "supervised": {"max_iterations": 12},
    "self_training": {"max_iterations": 12, "rounds": 4},
    "type_self_training": {"max_iterations": 12, "rounds": 3, "keep": "best"},
    "graph_self_training": {"max_iterations": 12, "rounds": 3},
    "jess_cm": {"max_iterations": 6, "rounds": 3},
    "entropy_regularization": {"max_iterations": 12, "joint_iterations": 8},
    "gp_crf": {"max_iterations": 12},
    "graph_pr": {"max_iterations": 12, "m_iterations": 6, "em_iters": 3, "em_tol": 0.0},
    "virtual_evidence": {"max_iterations": 12, "rounds": 3, "keep": "best"},
    "tri_training": {"max_iterations": 6, "rounds": 3, "conditions": "none"},
    "generalized_expectation": {"max_iterations": 12, "joint_iterations": 5},
    "hybrid": {"max_iterations": 6, "rounds": 2},
}


def train(method: str, run: RunContext) -> Any:
    cls = registry().method(method).load()
    return cls().fit(problem(), make_params(cls, SMALL[method]), run)


@pytest.mark.parametrize("method", SMALL)
def test_a_killed_training_ends_with_the_same_bits(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed again and again, after a number of files that grows."""
    whole = RunContext(3)
    expected, text = train(method, whole), problem().labeled.drop("label")
    save, saved = Checkpoints.save, list[Path]()
    parts, least = 0, 5

    def save_and_die(self: Checkpoints, state: Mapping[str, Any]) -> None:
        save(self, state)
        saved.append(self.path)
        if len(saved) == least:
            raise KilledError

    monkeypatch.setattr(Checkpoints, "save", save_and_die)
    while True:
        run = RunContext(3, checkpoints=checkpoints(tmp_path))
        parts, least = parts + 1, least + 3
        saved.clear()
        try:
            found = train(method, run)
            break
        except KilledError:
            continue
    assert parts > 1
    assert run.earlier.wall > 0
    assert run.trace == whole.trace
    np.testing.assert_array_equal(predicted(found, text), predicted(expected, text))
    for name, array in expected.arrays()[0].items():
        np.testing.assert_array_equal(found.arrays()[0][name], array, err_msg=name)
    checkpoints(tmp_path).remove()
    assert not list((tmp_path / "run").iterdir())


def test_short_steps_leave_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CHECKPOINTS)
    monkeypatch.setattr(Checkpoints, "is_long", lambda self, seconds: seconds > 60)
    train("self_training", RunContext(3, checkpoints=checkpoints(tmp_path)))
    assert not (tmp_path / "run").exists()


def test_damaged_steps_are_done_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A step of another shape, and one that is no file of numbers."""
    expected = train("supervised", RunContext(3))
    file = checkpoints(tmp_path).step("0", 0)
    file.folder.mkdir(parents=True)
    for harm in ("shape", "bytes"):
        train("supervised", RunContext(3, checkpoints=checkpoints(tmp_path)))
        state = file.load()
        assert state is not None
        if harm == "shape":
            file.save({**state, "weights": state["weights"][1:]})
        else:
            file.path.write_bytes(b"no")
        capsys.readouterr()
        found = train("supervised", RunContext(3, checkpoints=checkpoints(tmp_path)))
        np.testing.assert_array_equal(found.weights, expected.weights)
        (line,) = capsys.readouterr().err.splitlines()
        assert "ignored, it " in line
        file.remove()
        file.path.unlink(missing_ok=True)
