"""The details of one line in one column of a page: a list of names and texts."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence

from sslbench.engine.errors import printable
from sslbench.experiment.records.record import RunRecord
from sslbench.report.board import Column, Place, cost, good_records
from sslbench.report.gains import Parts
from sslbench.report.ledger import Line
from sslbench.report.rows import Row
from sslbench.report.wording import all_notes, interval, p_text, percent

Entry = tuple[str, str | list[str]]
_PHASES = 8  # that are named
_TRIALS = 20


def details(
    column: Column,
    place: Place,
    stale: Collection[str],
    parts: Mapping[str, Parts],
    printed: Sequence[Line],
) -> list[Entry]:
    """The entries of a place.

    stale: run ids.  parts: of the gain, by question.  printed: lines of the ledger.
    """
    entries: list[Entry] = [("protocol", column.protocol)]
    if place.gap:
        entries.append(("no score", place.gap))
    if place.row is not None:
        row = place.row
        entries += [*_result(row, column), *_made(row), *_cost(row)]
        entries += [(f"gain by {name}", _parts(each)) for name, each in parts.items() if each]
        entries += _origin(row, stale)
    entries += [("in the paper", _printed(line)) for line in printed]
    entries.append(("command", place.command))
    return [(name, _visible(value)) for name, value in entries if value]


def _visible(value: str | list[str]) -> str | list[str]:
    return printable(value) if isinstance(value, str) else [printable(text) for text in value]


def _result(row: Row, column: Column) -> Iterator[Entry]:
    sd = "" if row.sd is None else f", sd {percent(row.sd)}"
    yield column.metric, f"{percent(row.mean)} %{sd}"
    by_seed = zip(row.seeds, row.scores, strict=True)
    yield "by seed", ", ".join(f"{seed}: {percent(score)}" for seed, score in by_seed)
    if row.rank_low is not None:
        yield "rank", f"{row.rank}, possible {row.rank_low} to {row.rank_high}; group {row.group}"
    if row.paired is not None:
        gain = f"{100 * row.paired.difference:+.2f} points, {interval(row.paired)}"
        p = "" if row.p_holm is None else f", p {p_text(row.p_holm)} (Holm)"
        yield "gain, the methods", gain + p
    if row.taggers is not None:
        gain = f"{100 * row.taggers.difference:+.2f} points, {interval(row.taggers)}"
        yield "gain, these taggers", gain
    records = good_records(row)
    names = sorted({name for record in records for name in record.metrics.get("test", {})})
    means = {name: _mean(records, name) for name in names}
    shown = [f"{name} {percent(mean)}" for name, mean in means.items() if mean is not None]
    yield "metrics", ", ".join(shown)


def _mean(records: Sequence[RunRecord], name: str) -> float | None:
    values = [record.metrics.get("test", {}).get(name) for record in records]
    numbers = [value for value in values if value is not None]
    return statistics.fmean(numbers) if len(numbers) == len(values) and numbers else None


def _made(row: Row) -> Iterator[Entry]:
    records = good_records(row)
    names = sorted({name for record in records for name in record.params})
    by_name = {name: [_short(record.params.get(name), 6) for record in records] for name in names}
    for name, texts in by_name.items():
        by_name[name] = texts[:1] if len(set(texts)) == 1 else texts
    yield "parameters", [f"{name} = {', '.join(texts)}" for name, texts in by_name.items()]
    trials = records[0].tuning if records else []
    shown = []
    for trial in trials[:_TRIALS]:
        values = ", ".join(f"{k} {_short(v, 4)}" for k, v in trial.get("params", {}).items())
        score = trial.get("score")
        text = "failed" if score is None else percent(score)
        out = f", out after fold {trial['dropped_after']}" if "dropped_after" in trial else ""
        shown.append(f"{values}: {text}{out}")
    more = len(trials) - len(shown)
    yield "tuning trials", [*shown, *([f"and {more} more"] if more > 0 else [])]
    rounds = [len(r.trace["rounds"]) for r in records if isinstance(r.trace.get("rounds"), list)]
    yield "rounds", ", ".join(map(str, rounds))
    yield (
        "sentences",
        ", ".join(
            f"{name} {count}"
            for name, count in (records[0].data.get("sentences", {}) if records else {}).items()
        ),
    )


def _short(value: object, digits: int) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _cost(row: Row) -> Iterator[Entry]:
    spent = cost(row)
    if spent is not None:
        yield "CPU", f"{spent.train_s:.1f} s a training, {spent.tune_s:.1f} s of tuning"
    if row.wall_s is not None:
        memory = "" if row.peak_rss_mb is None else f", {row.peak_rss_mb:.0f} MiB"
        yield "wall time", f"{row.wall_s:.1f} s{memory}"
    phases: dict[str, list[float]] = {}
    records = good_records(row)
    for record in records:
        for name, seconds in record.timing.items():
            if name not in ("tune_stored", "compile"):  # not spent in this run
                phases.setdefault(name, []).append(seconds)
    medians = {name: statistics.median(each) for name, each in phases.items()}
    longest = sorted(medians, key=lambda name: -medians[name])[:_PHASES]
    yield "phases", ", ".join(f"{name} {medians[name]:.2f} s" for name in longest)


def _parts(parts: Parts) -> list[str]:
    total = sum(gain for _, gain in parts.values())
    shown = sorted(parts.items(), key=lambda part: -abs(part[1][1]))
    lines = [
        f"{name} ({100 * share:.1f} % of tokens): {gain:+.2f}" for name, (share, gain) in shown
    ]
    return [*lines[:10], f"all tokens: {total:+.2f} points of accuracy"]


def _origin(row: Row, stale: Collection[str]) -> Iterator[Entry]:
    runs = [row.cells[seed] for seed in sorted(row.cells)]
    yield (
        "runs",
        [
            f"seed {run.spec.protocol.seed}: {run.run_id}"
            + (", stale" if run.run_id in stale else "")
            + ("" if run.status == "ok" else f", {run.status}: {run.error}")
            for run in runs
        ],
    )
    code = {name: version for run in runs for name, version in run.code.items()}
    yield "code", ", ".join(f"{name} {version[:8]}" for name, version in sorted(code.items()))
    machine = runs[0].environment if runs else {}
    parts = ("cpu", "processor", "system")
    yield "machine", ", ".join(str(machine[name]) for name in parts if name in machine)
    duplicates = runs[0].audit.get("duplicates", {}) if runs else {}
    yield "duplicates", ", ".join(f"{name} {count}" for name, count in duplicates.items() if count)
    lines = dict.fromkeys(line for run in runs for line in run.warnings)
    yield "notes", list(dict.fromkeys([*all_notes(row), *lines]))


def _printed(line: Line) -> str:
    where = f"{line.paper}, {line.table}, {line.row}, {line.column}"
    return f"{line.printed} ({where}; {line.data} data): {line.verdict}"
