"""Gains: what they are worth in labels, and their parts."""

from __future__ import annotations

import pytest

from sslbench.experiment.metrics.anatomy import IN_TEXT, NOWHERE, SEEN, UNSEEN
from sslbench.report.gains import gain_parts, labels_worth
from support.board_records import boards, record, row_of


def test_labels_worth() -> None:
    curve = [(100, 70.0), (400, 80.0), (1600, 80.0)]
    assert labels_worth(75.0, curve) == (pytest.approx(200.0), "")
    assert labels_worth(80.0, curve) == (pytest.approx(400.0), "")
    assert labels_worth(60.0, curve) == (100, "<")
    assert labels_worth(81.0, curve) == (1600, ">")


def test_the_parts_of_a_gain_add_up() -> None:
    runs = [record(method, seed) for method in ("supervised", "better") for seed in (0, 1)]
    for run in runs:
        right = sum(run.counts["test"]["correct_tokens"])
        seen = min(right, 300)
        run.anatomy = {"words": {SEEN: [400, seen], IN_TEXT: [150, right - seen], NOWHERE: [50, 0]}}
    (table,) = boards(runs)
    ours, base = row_of(table, "better"), row_of(table, "supervised")
    parts = gain_parts(ours, base, "words")
    assert set(parts) == {SEEN, IN_TEXT, NOWHERE}
    gain = 100 * ((ours.mean or 0) - (base.mean or 0))
    assert sum(gain for _, gain in parts.values()) == pytest.approx(gain)
    assert sum(share for share, _ in parts.values()) == pytest.approx(1)
    for run in runs:
        if run.method == "supervised":  # it has not read the text
            words = run.anatomy["words"]
            hidden = [words[IN_TEXT][i] + words[NOWHERE][i] for i in (0, 1)]
            run.anatomy = {"words": {SEEN: words[SEEN], UNSEEN: hidden}}
    (table,) = boards(runs)
    parts = gain_parts(row_of(table, "better"), row_of(table, "supervised"), "words")
    assert set(parts) == {SEEN, UNSEEN}
    assert sum(gain for _, gain in parts.values()) == pytest.approx(gain)
