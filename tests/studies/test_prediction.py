"""What a board says of a family that it has not seen, on made-up gains."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from studies.prediction import gains, interval, outcomes, summary


def made_up(columns: dict[tuple[str, str], list[float]]) -> pd.DataFrame:
    table = pd.DataFrame(columns, index=["a", "b", "c"])
    table.attrs["corpora"] = dict.fromkeys(columns, 1)
    return table


def test_a_family_is_not_asked_about_itself() -> None:
    table = made_up(
        {("x", "tags"): [1.0, 2.0, 3.0], ("y", "tags"): [1.0, 2.0, 4.0], ("z", "spans"): [9, 0, 0]}
    )
    x, y, z = outcomes(table, same_kind=False)
    assert (z.first, z.gain, z.best, z.highest) == ("c", 0.0, "a", 9.0)
    assert (x.first, x.best) == ("a", "c")  # z counts as much as y
    assert z.correlation == pytest.approx(-np.sqrt(3) / 2)  # with a tie
    x, y = outcomes(table, same_kind=True)  # z has no other of its kind
    assert (x.first, x.correlation, y.gain, y.highest) == ("c", 1.0, 4.0, 4.0)
    assert "first is best in 2 of 2" in summary([x, y])


def test_the_interval_is_of_the_mean() -> None:
    values = np.random.default_rng(0).normal(3.0, 1.0, 100)
    low, high = interval(values)
    assert low < values.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 10, rel=0.05)


def test_gains_are_means_over_the_corpora_of_a_family(tmp_path: Path) -> None:
    rows = [
        *("ud_da,accuracy,m,0.01", "ud_de,accuracy,m,0.03", "conll00,f1,m,-0.02"),
        *("ud_da,accuracy,supervised,", "conll00,f1,half,0.5", "conll00,f1,gp_crf,0.5"),
    ]
    lines = [f"{row},labeled 100,x" for row in rows] + ["ud_da,accuracy,m,1,labeled 500,x"]
    file = tmp_path / "board.csv"
    head = "dataset,metric,method,difference,protocol,x"
    quoted = [line.replace("labeled 100,x", '"labeled 100, any",x') for line in lines]
    file.write_text("\n".join([head, *quoted]).replace("labeled 500,x", '"labeled 500, any",x'))
    table = gains(file)
    assert list(table.index) == ["m"]  # the others are not on all families, or a graph alone
    assert table.loc["m"].tolist() == pytest.approx([2.0, -2.0])  # treebanks, chunks
    assert sorted(table.attrs["corpora"].values()) == [1, 2]
