"""A few of each of the attacks; the modules make many."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attacks import bits, faults, kills, packs, saves, stores, texts
from attacks.command import Table
from attacks.corpus import kept
from sslbench.isolation.restrict import is_available


def show(table: Table) -> None:
    print(table)
    assert table.rows
    assert table.bad == []


@pytest.mark.slow
def test_kills_of_grids() -> None:
    """The command, one of its children, and the whole process group."""
    show(kills.attack(3, 0))


@pytest.mark.slow
def test_kills_of_a_training_that_saves() -> None:
    show(saves.attack(1, 0))


def test_kills_of_packing() -> None:
    show(packs.attack(2, 0))


def test_changed_bytes() -> None:
    show(bits.attack(200, 0))


def test_stores() -> None:
    show(stores.attack(2, 0))


@pytest.mark.parametrize("name", ["save in a grid", "probe", "claim a run", "cache", "checkpoints"])
@pytest.mark.parametrize("error", ["EIO", "ENOTDIR"])
def test_file_operations_that_fail(name: str, error: str) -> None:
    """ENOTDIR for good is a store that is gone; the attack sweeps more, with every error."""
    show(faults.sweep(name, error, lasting=error == "ENOTDIR"))


def test_a_read_error_hides_no_record_for_good() -> None:
    """The index remembers what is damaged, but not what could not be read for a moment."""
    show(faults.sweep("read a packed store", "EIO", lasting=False, step=8))


def test_damaged_texts(tmp_path: Path) -> None:
    """Those that have failed once, and one of each kind; runs on them are made by the attack."""
    numbered = [texts.damaged(kind, 0) for kind in texts.DAMAGE]
    for data in [*kept("texts"), *numbered]:
        assert not texts.outcome(data, tmp_path / "train.conll").startswith("WRONG")
    for data in [*kept("texts templates"), *map(texts.damaged_template, range(20))]:
        assert not texts.template_outcome(data, tmp_path / "t.crfpp").startswith("WRONG")


def in_a_process(module: str, call: str) -> list[str]:
    """What is bad in the table of an attack that registers plugins of its own."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    code = f"from attacks import {module} as attack; print(attack.{call}.bad)"
    words = [sys.executable, "-c", code]
    variables = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(words, capture_output=True, text=True, env=variables)
    assert done.stdout.endswith("]\n"), done.stderr
    return list(ast.literal_eval(done.stdout.splitlines()[-1]))


def test_hostile_methods() -> None:
    names = [
        *("raise_unprintable", "raise_exit_0", "exit_now", "labels_repeated", "daemon", "grows"),
        *("variants_many", "writes_frames"),
        *("reads_the_file", "imports_the_generator", "replaces_the_scorer", "writes_a_record"),
        *("collects_garbage", "looks_into_frames"),
    ]
    assert in_a_process("methods", f"behave({names})") == []


@pytest.mark.skipif(not is_available(), reason="this kernel has no Landlock")
def test_ways_out_of_the_process_of_the_plugins() -> None:
    """``python -m attacks ways_out`` prints what can be reached from inside."""
    assert in_a_process("ways_out", "attack(1, 0)") == []


def test_what_is_bad_is_counted() -> None:
    table = Table()
    table.add("a", "fine")
    table.add("a", "fine", ["a traceback"])
    assert table.bad == ["a: a traceback"]
    assert str(table).splitlines()[2:] == [
        "| a | 2 | fine: 1; BAD: a traceback: 1 |",
        "| all | 2 | bad: 1 |",
    ]
