"""Record golden predictions anew, after a version was raised or a canary was added.

    python tests/canaries/record.py           all canaries
    python tests/canaries/record.py NAME...   some of them

An entry whose predictions changed beside the same versions is refused, with exit status 1.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from canaries import golden
from canaries.runs import RUNS, make
from sslbench.experiment.records.record import RunRecord


def updated(old: golden.Golden | None, record: RunRecord) -> golden.Golden | None:
    """The entry of a canary; None if its versions must be raised first."""
    today = golden.recorded(record)
    if old is None:
        return golden.entry(record, [])
    if (today.code, today.digest) == (old.last.code, old.last.digest):
        return old
    known = {(line.code, line.run_id): line.digest for line in old.history}
    if known.get((today.code, today.run_id), today.digest) != today.digest:
        return None
    return golden.entry(record, old.history)


def main(names: list[str]) -> int:
    """Exit status."""
    entries = golden.read() if golden.FILE.exists() else {}
    refused = 0
    for name in names or RUNS:
        record = make(name)
        new = updated(entries.get(name), record)
        if new is None:
            refused += 1
            print(f"{name}: refused\n{golden.verdict(entries[name], record)}\n", file=sys.stderr)
        elif new != entries.get(name):
            entries[name] = new
            golden.write({each: entries[each] for each in RUNS if each in entries})
            print(f"{name}: recorded, {record.primary_metric} {new.score:.4f}", flush=True)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
