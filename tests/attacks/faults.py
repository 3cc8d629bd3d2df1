"""Every file operation of store, archive, cache, claims, checkpoints and models fails once.

Each scenario is run again and again: its first operation fails, then its second, until none does;
with every error, once and for good. Nothing that was stored may be lost, an error must be one line
that a user can read, and what only saves time must not fail at all.
"""

from __future__ import annotations

import os
import random
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from unittest import mock

import numpy as np

from attacks.command import Table
from sslbench.engine.crf.persist import read_model, write_model
from sslbench.engine.errors import UserError
from sslbench.engine.files import derived
from sslbench.experiment.context.checkpoints import Checkpoints, remove_checkpoints
from sslbench.experiment.execute import grid
from sslbench.experiment.execute.grid import Saving
from sslbench.experiment.records import archive
from sslbench.experiment.records.archive import pack
from sslbench.experiment.records.claims import Claims
from sslbench.experiment.records.reading import StoreWarning
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from support.faults import ERRORS, Faults
from support.packed_records import every_kind, predicted, texts

RECORDS = every_kind()[:8]
NEW = predicted("better", 99)
KEY = b"key"
OLD_STATE, NEW_STATE = ({"x": np.full(3, value)} for value in (1.0, 2.0))


@dataclass(frozen=True)
class Scenario:
    """What is done while an operation fails.

    prepare: makes the folder.  act: what may fail.  lost: what is wrong afterwards.
    raises: errors that say in a line what is wrong; none for what only saves time.
    """

    prepare: Callable[[Path], object]
    act: Callable[[Path], object]
    lost: Callable[[Path], list[str]]
    raises: tuple[type[Exception], ...] = ()


def filled(folder: Path) -> None:
    for record in RECORDS:
        Store(folder).save(record)


def packed(folder: Path) -> None:
    filled(folder)
    pack(Store(folder))


def loaded(folder: Path) -> dict[str, bytes]:
    store = Store(folder)
    ids = {*(path.stem for path in folder.glob("*.json")), *store.packed_ids()}
    return texts([record for run_id in ids if (record := store.load(run_id)) is not None])


def missing(folder: Path, records: list[RunRecord] = RECORDS) -> list[str]:
    """The records that are not in a store as they were, read alone or with all others."""
    store, expected = Store(folder), texts(records)
    alone, together = loaded(folder), texts(store.records())
    return [
        f"{what}: {name}"
        for what, there in (("lost", alone), ("not listed", together))
        for name, text in expected.items()
        if there.get(name) != text
    ]


def probe(folder: Path) -> None:
    Store(folder).probe()


def pack_all(folder: Path) -> None:
    pack(Store(folder))


def read(folder: Path) -> None:
    """A record that is read must be the right one."""
    expected = texts(RECORDS)
    for name, text in texts(Store(folder).records()).items():
        assert text == expected[name]


def replace(folder: Path) -> None:
    Store(folder).save(RECORDS[0])
    Store(folder).save(NEW)


def save_somewhere(folder: Path) -> None:
    """As a grid does: what the store does not take is in another folder or in memory."""
    with healthy():
        saving = Saving(Store(folder))
    for record in (RECORDS[0], NEW):
        saving.save(record)
    unsaved = saving.finish()
    assert not saving.lost
    stored = [path for _, path in saving.elsewhere.values()]
    assert unsaved == list(saving.elsewhere)
    with healthy():
        assert all(path.exists() for path in stored)
        assert NEW.run_id in unsaved or Store(folder).load(NEW.run_id) == NEW


def healthy() -> AbstractContextManager[object]:
    """No operation fails or counts."""
    return mock.patch.object(Faults, "meet")


def claim(folder: Path) -> None:
    with Claims(folder / "claims") as claims:
        claims.claim("a")
        claims.is_free("b")
        claims.release("a")


def cached(folder: Path) -> None:
    derived.keep(folder / "x", KEY, b"old")


def use_cache(folder: Path) -> None:
    assert derived.find(folder / "x", KEY) in (b"old", None)
    derived.keep(folder / "x", KEY, b"new")
    assert derived.find(folder / "x", KEY) in (b"old", b"new", None)
    derived.drop(folder / "y")


def cache_damage(folder: Path) -> list[str]:
    there = derived.find(folder / "x", KEY)
    return [] if there in (b"old", b"new", None) else [f"the cache gives {there!r}"]


def files_of(folder: Path) -> Checkpoints:
    return Checkpoints(folder / "checkpoints" / "run", {"engine": "1"}).of("training")


def begun(folder: Path) -> None:
    files_of(folder).save(OLD_STATE)
    files_of(folder).step("1", 0).save(OLD_STATE)


def train(folder: Path) -> None:
    files = files_of(folder)
    _read_state(files)
    files.save(NEW_STATE)
    files.forget_steps(2)
    _read_state(files)
    files.remove()
    remove_checkpoints(str(folder), "run")


def _read_state(files: Checkpoints) -> None:
    state = files.load()
    if state is not None:
        with suppress(ValueError):  # one that cannot be read any more: the training starts anew
            assert state["x"][0] in (1.0, 2.0)


def checkpoint_damage(folder: Path) -> list[str]:
    _read_state(files_of(folder))
    return []


def model(folder: Path) -> None:
    write_model(folder / "m", "k", OLD_STATE, {})


def replace_model(folder: Path) -> None:
    read_model(folder / "m")
    write_model(folder / "m", "k", NEW_STATE, {})


def model_damage(folder: Path) -> list[str]:
    return [] if read_model(folder / "m")[1]["x"][0] in (1.0, 2.0) else ["another model"]


SCENARIOS: Mapping[str, Scenario] = {
    "save two records": Scenario(filled, replace, missing, (OSError, UserError)),
    "save in a grid": Scenario(filled, save_somewhere, missing),
    "probe": Scenario(filled, probe, missing, (UserError,)),
    "read a store": Scenario(filled, read, missing, (UserError,)),
    "read a packed store": Scenario(packed, read, missing, (UserError,)),
    "pack": Scenario(filled, pack_all, missing, (OSError, UserError)),
    "pack again": Scenario(packed, pack_all, missing, (OSError, UserError)),
    "claim a run": Scenario(filled, claim, missing),
    "cache": Scenario(cached, use_cache, cache_damage),
    "checkpoints": Scenario(begun, train, checkpoint_damage),
    "save a model": Scenario(model, replace_model, model_damage, (OSError, UserError)),
}


def fail(scenario: Scenario, folder: Path, faults: Faults) -> tuple[str, list[str]]:
    """The outcome with these faults, and what is wrong with it."""
    problems: list[str] = []
    outcome = "done"
    try:
        with faults.active():
            scenario.act(folder)
    except scenario.raises as error:
        outcome = "refused in a line"
        text = str(error)
        if not text.isprintable():
            problems.append(f"not one line: {text!r}")
    except Exception as error:
        problems.append(f"{type(error).__name__}: {error}")
    try:
        problems += scenario.lost(folder)
    except Exception as error:
        problems.append(f"afterwards {type(error).__name__}: {error}")
    if not faults.failed:
        outcome = "nothing failed"
    return outcome, problems


def sweep(name: str, error: str, *, lasting: bool, step: int = 1, first: int = 1) -> Table:
    """Let each operation of a scenario fail, or every `step`-th from the `first` on."""
    table, faults = Table(), None
    positions = count(first, step)
    while faults is None or faults.failed:
        position = next(positions)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary, "store")
            folder.mkdir()
            environment = {"SSLBENCH_CACHE": str(Path(temporary, "cache"))}
            with (
                mock.patch.dict(os.environ, environment),
                mock.patch.object(grid, "_PAUSES", ()),
                mock.patch.object(archive, "RUNS", 4),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore", StoreWarning)
                SCENARIOS[name].prepare(folder)
                faults = Faults(folder, error, position, lasting=lasting)
                outcome, problems = fail(SCENARIOS[name], folder, faults)
        where = f"{error}{' for good' if lasting else ''} at {position} ({faults.failed})"
        table.add(name, outcome, [f"{where}: {problem}" for problem in problems])
    return table


def attack(number: int, seed: int) -> Table:
    """Sweeps of all scenarios and errors. number: percent of the operations that fail."""
    table, chance, step = Table(), random.Random(seed), -(-100 // number)
    for name in SCENARIOS:
        for error in ERRORS:
            for lasting in (False, True):
                first = chance.randint(1, step)
                table.merge(sweep(name, error, lasting=lasting, step=step, first=first))
    return table
