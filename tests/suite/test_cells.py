"""Which cells there are, in which order they are run, and what they will cost."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import msgspec
import pytest

from sslbench.experiment.records.cost import Prices
from sslbench.experiment.records.store import Store
from sslbench.plugins import registry
from sslbench.suite.cells import Budget, in_order, planned, wall_seconds
from support.suite_fakes import TOY, Made, made, opened, suite_file

pytestmark = pytest.mark.usefixtures("fake_plugin")


def test_states(tmp_path: Path) -> None:
    path = suite_file(tmp_path)
    suite, cells = opened(path)
    assert {cell.state for cell in cells} == {"missing"}
    store = Store(suite.store)
    good, old, bad = (made(cell) for cell in cells[:3])
    old.code = {**old.code, "method": "0"}
    bad.status, bad.error, bad.error_kind = "timeout", "too long", "timeout"
    bad.metrics, bad.counts, bad.anatomy = {}, {}, {}
    for record in (good, old, bad):
        store.save(record)
    _, found = opened(path)
    assert [cell.state for cell in found[:4]] == ["done", "stale", "failed", "missing"]
    assert found[0].record is not None
    assert found[0].record.run_id == good.run_id


def test_runs_on_data_that_have_changed_since_are_marked(tmp_path: Path) -> None:
    path = suite_file(tmp_path)
    suite, cells = opened(path)
    column = [cell for cell in cells if cell.column == cells[0].column]
    first, second, *_ = column
    Store(suite.store).save(made(first, data="before"))
    newer = made(second, data="after")
    newer.created = "2027"
    Store(suite.store).save(newer)
    _, found = opened(path)
    states = {cell.key: cell.state for cell in found}
    assert (states[first.key], states[second.key]) == ("other data", "done")


def test_cells_of_a_model_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are found where the folder is not; other files in it are other data."""
    monkeypatch.chdir(tmp_path)
    path = suite_file(
        tmp_path,
        TOY.replace("nothing", "transformer").replace("[10, 20]", "[10]")
        + 'set = ["transformer.folder=models/one"]\n',
    )
    suite, cells = opened(path)
    store = Store(suite.store)
    assert len(cells) == 6

    def run(number: int, content: str) -> None:
        record = made(cells[number])
        inputs = {"models/one/config.json": hashlib.sha256(content.encode()).hexdigest()}
        record.spec = msgspec.structs.replace(record.spec, inputs=inputs)
        record.run_id = record.spec.run_id
        record.created = f"202{number}"
        store.save(record)

    def states() -> list[str]:
        return [cell.state for cell in opened(path)[1][:3]]

    run(0, "one")
    run(1, "one")
    assert states() == ["done", "done", "missing"]
    run(2, "two")
    assert states() == ["other data", "other data", "done"]
    (tmp_path / "models" / "one").mkdir(parents=True)
    (tmp_path / "models" / "one" / "config.json").write_text("one", encoding="utf-8")
    assert states() == ["other data"] * 3


def test_an_altered_record_is_refused(tmp_path: Path) -> None:
    path = suite_file(tmp_path)
    suite, cells = opened(path)
    file = Store(suite.store).save(made(cells[0]))
    text = file.read_text()
    file.write_text(text.replace('"wall_s": 5.0', '"wall_s": 4.0'))
    assert text != file.read_text()
    with pytest.warns(UserWarning, match="the file was changed"):
        _, found = opened(path)
    assert found[0].state == "missing"


def test_a_draw_of_everything_before_the_next_of_anything_and_cheap_before_dear(
    tmp_path: Path,
) -> None:
    path = suite_file(tmp_path)
    _, cells = opened(path)
    costs = {"majority": 30.0, "peeking": 3.0}
    first = [made(cell, cpu_s=costs[cell.spec.method]) for cell in cells if cell.seed == 0]
    prices = Prices(Made(first))
    shuffled = random.Random(0).sample(cells, len(cells))
    order = [(cell.seed, cell.spec.method) for cell in in_order(shuffled, prices)]
    assert order == [(s, m) for s in range(3) for m in ("peeking",) * 2 + ("majority",) * 2]
    unknown = Prices(Made([made(cell) for cell in cells if cell.spec.method == "majority"]))
    assert [cell.spec.method for cell in in_order(cells, unknown)][:4] == [
        *("majority", "majority", "peeking", "peeking")
    ]


def test_prices_count_the_trials_of_the_draw_that_is_tuned_on(tmp_path: Path) -> None:
    text = TOY.replace("seeds = 3", "seeds = 3\ntune = 5\ntune_seed = 1").replace(
        'majority", "peeking', "majority"
    )
    _, cells = opened(suite_file(tmp_path, text))
    record = made(cells[0], cpu_s=10.0)  # of draw 0, with its trials in the store
    prices = [Prices(Made([record])).of(cell.spec) for cell in cells[:3]]
    # A trial trains on four fifths of the sample five times.
    assert [price.cpu_s for price in prices if price] == [10.0, 10.0 * (1 + 5 * 4), 10.0]
    assert not any(price.guess for price in prices if price)
    other = Prices(Made([record])).of(cells[-1].spec)
    assert other is not None
    assert other.guess


def test_a_budget_admits_what_will_end_within_it(tmp_path: Path) -> None:
    _, cells = opened(suite_file(tmp_path))
    tasks = [cell.task for cell in cells]
    now = [0.0]
    prices = {task.spec.run_id: 10.0 for task in tasks}
    budget = Budget(25.0, prices, clock=lambda: now[0])
    assert budget.admits(tasks[0])
    now[0] = 15.0
    assert budget.admits(tasks[1])
    now[0] = 16.0
    assert not budget.admits(tasks[2])
    now[0] = 1.0
    assert not budget.admits(tasks[3])  # nothing after the first one that does not fit
    assert budget.left == tasks[2]
    unknown = Budget(25.0, {}, clock=lambda: now[0])
    assert unknown.admits(tasks[0])


def test_what_is_left_is_planned_with_the_settings_of_all(tmp_path: Path) -> None:
    text = TOY.replace('["toy"]', '["toy", "drawn"]').replace("[10, 20]", "[10]")
    text += 'set = ["sleep=0.0", "toy.train=40"]\n'  # peeking has no sleep, drawn no train
    suite, cells = opened(suite_file(tmp_path, text))
    left = [cell for cell in cells if cell.spec.method == "peeking" and cell.seed < 2]
    store = Store(suite.store)
    tasks = planned(left, Prices(), store, registry(), jobs=1, notice=lambda text: None)
    assert [(t.spec.dataset, t.spec.protocol.seed) for t in tasks] == [
        *[("toy", 0), ("drawn", 0), ("toy", 1), ("drawn", 1)]
    ]
    assert {t.spec.method for t in tasks} == {"peeking"}
    assert all(t.spec.data.fingerprint for t in tasks)
    assert tasks[0].spec.data.options == {"train": 40}


def test_wall_seconds() -> None:
    assert wall_seconds([], 4) == 0.0
    assert wall_seconds([1.0, 2.0, 3.0], 2) == 3.0
    assert wall_seconds([2.0] * 10, 2) == 10.0
