"""A training that is killed goes on from its last checkpoint and ends with the same bits."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sslbench.engine.corpus import Corpus, CorpusShards
from sslbench.engine.crf import ChainModel
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.variables import CHECKPOINTS
from sslbench.experiment.context.checkpoints import Checkpoints
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem
from sslbench.experiment.records.record import encode
from sslbench.experiment.records.store import Store
from sslbench_methods.jess_cm.method import JessCM
from sslbench_methods.jess_cm.models import EmbeddedModels
from sslbench_methods.jess_cm.tagger import JessCMTagger
from support.graph_toys import toy
from support.synth_text import synth_text

CODE = {"engine": "1"}


class KilledError(Exception):
    """In place of a signal."""


class Walk:
    """A method of random steps; each round has three parts, with a checkpoint after each."""

    def __init__(self) -> None:
        self.place, self.part = np.zeros(2), 0

    checkpointed = ("place", "part")

    def fit(self, run: RunContext, killed_at: int = -1) -> tuple[list[float], dict[str, Any]]:
        rounds, crf, done = run.rounds(6, self), toy(), 0
        for number in rounds:
            while self.part < 3:
                if done == killed_at:
                    raise KilledError
                with run.phase("steps"):
                    self.place = self.place + run.rng.normal(size=2)
                self.part, done = self.part + 1, done + 1
                rounds.keep()
            self.part = 0
            crf.weights[:] = self.place[0]
            rounds.candidate(float(self.place[1]), crf)
            rounds.record("stepped", place=self.place.tolist(), infinite=float("inf"))
            if number == 5:
                rounds.stop("cycle")
        rounds.restore_best(crf)
        return crf.weights.tolist(), run.trace


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECKPOINTS, "0")


def checkpoints(folder: Path, code: Mapping[str, str] = CODE) -> Checkpoints:
    return Checkpoints(folder / "run", dict(code)).of("training")


@pytest.mark.parametrize("killed_at", [0, 1, 3, 4, 11, 14])
def test_a_killed_training_ends_with_the_same_numbers(killed_at: int, tmp_path: Path) -> None:
    expected = Walk().fit(RunContext(3))
    with pytest.raises(KilledError):
        Walk().fit(RunContext(3, checkpoints=checkpoints(tmp_path)), killed_at)
    run = RunContext(3, checkpoints=checkpoints(tmp_path))
    assert Walk().fit(run, 15 - killed_at if killed_at else -1) == expected
    assert (run.earlier.wall > 0) == (killed_at > 0)


def test_a_training_that_ended_its_rounds_does_none_again(tmp_path: Path) -> None:
    expected = Walk().fit(RunContext(3, checkpoints=checkpoints(tmp_path)))
    assert Walk().fit(RunContext(9, checkpoints=checkpoints(tmp_path)), 0) == expected


@pytest.mark.parametrize("harm", ["code", "cut", "flipped", "empty", "packed", "shape", "missing"])
def test_what_does_not_belong_here_is_ignored_with_a_line(
    harm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = Walk().fit(RunContext(3))
    with pytest.raises(KilledError):
        Walk().fit(RunContext(3, checkpoints=checkpoints(tmp_path)), 7)
    path, code = checkpoints(tmp_path).path, CODE
    data = path.read_bytes()
    match harm:
        case "code":
            code = {"engine": "2"}
        case "cut":
            path.write_bytes(data[: len(data) // 2])
        case "flipped":
            at = data.index(b"place") + 150
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        case "empty":
            path.write_bytes(b"")
        case "packed":  # it could unpack to more than the memory
            with np.load(path) as file:
                np.savez_compressed(path, **file)
        case "shape" | "missing":
            own = checkpoints(tmp_path)
            state = own.load()
            assert state is not None
            own.save({**state, "place": np.zeros(3)} if harm == "shape" else {"rounds": {}})
    capsys.readouterr()
    run = RunContext(3, checkpoints=checkpoints(tmp_path, code))
    assert Walk().fit(run) == expected
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"sslbench: {path}: ignored, it ")
    assert lines[0].endswith("; the training starts anew")


def test_a_training_begun_on_another_kind_of_processor_continues_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = Walk().fit(RunContext(3))
    with pytest.raises(KilledError):
        Walk().fit(RunContext(3, checkpoints=checkpoints(tmp_path)), 7)
    monkeypatch.setattr("sslbench.experiment.context.checkpoints.processor", lambda: "a8 wide")
    capsys.readouterr()
    run = RunContext(3, checkpoints=checkpoints(tmp_path))
    assert Walk().fit(run, 8) == expected
    assert "begun on another kind of processor" in capsys.readouterr().err


def test_clocks_of_all_parts_are_added_up(tmp_path: Path) -> None:
    first, second = (RunContext(checkpoints=checkpoints(tmp_path)) for _ in range(2))
    with pytest.raises(KilledError):
        Walk().fit(first, 10)
    with first.phase("pass"):
        state = first.state()  # within a phase
    second.resume(state)
    assert second.timing["steps"] == first.timing["steps"]
    assert 0 < second.timing["pass"] <= first.timing["pass"]
    assert second.spent().wall >= second.earlier.wall > second.timing["steps"]


def test_a_pause_that_is_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECKPOINTS, "soon")
    with pytest.raises(UserError, match="SSLBENCH_CHECKPOINT_SECONDS is 'soon'; give"):
        Walk().fit(RunContext(3, checkpoints=checkpoints(tmp_path)))


def test_no_checkpoint_before_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CHECKPOINTS)
    Walk().fit(RunContext(3, checkpoints=checkpoints(tmp_path)))
    assert not checkpoints(tmp_path).path.exists()


def test_where_nothing_can_be_written_the_training_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says so, however many checkpoints there would be."""
    monkeypatch.setenv("SSLBENCH_TOLD", "")
    (tmp_path / "run").write_text("no folder")
    Walk().fit(RunContext(3, checkpoints=checkpoints(tmp_path)))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"sslbench: {tmp_path / 'run'}: checkpoints cannot be written: ")


def jess_cm(run: RunContext) -> JessCMTagger:
    text = synth_text(60, seed=1)
    labeled, raw = text.between(0, 12), Corpus({"word": text.column("word")}, text.offsets)
    labels = tuple(text.column("label").vocabulary.strings)
    featurizer = TemplateFeaturizer(["word[0]", "edge: word[0]", "edge: word.suffix2[-1]"])
    shards = CorpusShards(raw, 100)
    problem = Problem("tagging", None, labels, labeled, shards, None, featurizer, ChainModel())
    return JessCM().fit(problem, JessCM.Params(rounds=3, max_iterations=20), run)


@pytest.mark.parametrize("killed_at", [1, 4, 9, 17])
def test_jess_cm_goes_on_within_a_pass(
    killed_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sslbench.engine.corpus.units.LEAST", 100)
    whole = RunContext()
    expected = jess_cm(whole)
    bind, calls = EmbeddedModels.bind, []

    def bind_or_die(self: EmbeddedModels, corpus: Corpus) -> Any:
        calls.append(corpus)
        if len(calls) > killed_at:
            raise KilledError
        return bind(self, corpus)

    monkeypatch.setattr(EmbeddedModels, "bind", bind_or_die)
    with pytest.raises(KilledError):
        jess_cm(RunContext(checkpoints=checkpoints(tmp_path)))
    monkeypatch.setattr(EmbeddedModels, "bind", bind)
    assert checkpoints(tmp_path).path.exists() == (killed_at > 0)
    run = RunContext(checkpoints=checkpoints(tmp_path))
    found = jess_cm(run)
    assert run.earlier.wall > 0
    assert run.trace == whole.trace
    np.testing.assert_array_equal(found.crf.weights, expected.crf.weights)
    for name, array in expected.models.tables.items():
        np.testing.assert_array_equal(found.models.tables[name], array)


RUN = [sys.executable, "-m", "sslbench", "run", "--dataset", "synth", "--labeled", "30"]
OPTIONS = ["--set", "rounds=3", "--set", "max_iterations=15"]


def record(store: Path) -> dict[str, Any]:
    (found,) = Store(store).records()
    tree: dict[str, Any] = json.loads(encode(found))
    return tree


@pytest.mark.slow
@pytest.mark.parametrize("method", ["jess_cm", "self_training"])
def test_a_killed_command_goes_on(method: str, tmp_path: Path) -> None:
    """With kill -9 after two different numbers of checkpoints."""
    run = [*RUN, *OPTIONS, "--method", method, "--store"]
    subprocess.run([*run, str(tmp_path / "whole")], check=True)
    store = tmp_path / "killed"
    for checkpoint in (1, 20):
        _kill_after(checkpoint, [*run, str(store)], store)
    done = subprocess.run([*run, str(store)], check=True, capture_output=True, text=True)
    assert "ignored" not in done.stderr
    found, expected = record(store), record(tmp_path / "whole")
    for name in ("trace", "predictions", "metrics", "counts", "params", "code", "run_id"):
        assert found[name] == expected[name], name
    assert found["timing"]["earlier"] > 0
    assert found["wall_s"] > found["timing"]["earlier"]
    assert not (store / "checkpoints").exists()


def _kill_after(number: int, run: list[str], store: Path) -> None:
    """Kill the command when it has written so many checkpoints, or a little later.

    A run that ends before, since this process had to wait for a processor, is made again.
    """
    for _ in range(100):
        command = subprocess.Popen(run)
        seen: set[int] = set()
        while len(seen) < number and command.poll() is None:
            for path in store.glob("checkpoints/*/*.npz"):
                with suppress(FileNotFoundError):
                    seen.add(path.stat().st_mtime_ns)
            time.sleep(0.005)
        command.kill()
        command.wait()
        if list(store.glob("checkpoints/*/*.npz")):
            return
        shutil.rmtree(store)
    raise AssertionError("each run ended before it was killed")
