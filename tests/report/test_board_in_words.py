"""The figures of docs/board.md and README are those of the tables that are made from records."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from sslbench.plugins import registry
from sslbench.report.families import mean_interval, mean_p_value
from sslbench.suite.cells import suite_cells
from sslbench.suite.file import read_suite
from studies.prediction import gains as gains_by_family
from studies.prediction import interval, outcomes
from studies.prediction import main as print_prediction
from support.markdown import Rows, table

ROOT = Path(__file__).parents[2]
GRAPH_ALONE = ("gp_crf", "graph_propagation")


@pytest.fixture(scope="module")
def means() -> Rows:
    return table(_tables()[0])


@pytest.fixture(scope="module")
def gains() -> dict[str, dict[str, float]]:
    """Points over the baseline by method and corpus."""
    rows = table(_tables()[1])
    base = rows["supervised"]
    corpora = [name for name in base if name not in ("method", "mean rank")]
    return {
        method: {c: float(row[c]) - float(base[c]) for c in corpora if row[c]}
        for method, row in rows.items()
    }


def _tables() -> list[str]:
    return _tables_of("standard", 100)


def _tables_of(name: str, size: int) -> list[str]:
    """The tables of a board with so many labeled sentences."""
    text = (ROOT / f"leaderboards/{name}.md").read_text(encoding="utf-8")
    part = re.split(r"^## (\d+) labeled", text, flags=re.M)
    chosen = part[part.index(str(size)) + 1]
    return [each for each in chosen.split("\n\n") if each.startswith("|")]


def words(name: str) -> str:
    """A file without its tables, line breaks as blanks."""
    text = (ROOT / name).read_text(encoding="utf-8")
    text = text[: text.index("## The same defaults")] if name == "docs/board.md" else text
    return " ".join(line.strip() for line in text.splitlines() if not line.startswith("|"))


def test_mean_gains_and_their_intervals(means: Rows) -> None:
    low_high = {
        method: tuple(f"{float(end):+.1f}" for end in row["95 % of gain"].split(" to "))
        for method, row in means.items()
    }
    known = {
        method: (f"{float(row['mean gain']):+.1f}", *low_high[method])
        for method, row in means.items()
    }
    number = r"([+-]\d+\.\d)"
    text = words("docs/board.md")
    named = re.findall(rf"`(\w+)`,? \(?{number} \[{number}, {number}\]", text)
    assert len(named) >= 9
    for method, *figures in named:
        assert tuple(figures) == known[method], method
    for figures in re.findall(rf"{number} \[{number}, {number}\]", text):
        assert figures in known.values()


def test_figures_of_the_ten_sentences(means: Rows, gains: dict[str, dict[str, float]]) -> None:
    text = words("docs/board.md")
    real = [m for m in means if m not in (*GRAPH_ALONE, "supervised")]
    cells = [gains[method][c] for method in real for c in gains["supervised"]]
    clear = {name: sum(int(means[m][name]) for m in real) for name in ("better", "worse")}
    best = {c: max(gains[m][c] for m in real) for c in gains["supervised"]}
    first = {c: max(real, key=lambda m: gains[m][c]) for c in best}
    treebanks = [c for c in best if c.startswith("ud_")]
    of_banks = sorted(best[c] for c in treebanks)

    def gain(method: str, corpus: str) -> str:
        return f"{gains[method][corpus]:+.1f}"

    def lost(method: str, corpus: str) -> str:
        return f"{-gains[method][corpus]:.1f}"

    expected = [
        f"first in {100 * float(means['virtual_evidence']['first']):.0f} % of other choices",
        f"all 27 corpora, {means['virtual_evidence']['lowest gain'].split()[0]} at least",
        f"(`genetag` {gain('jess_cm', 'genetag')}, `anatem` {gain('jess_cm', 'anatem')})",
        f"letters ({gain('jess_cm', 'ocr')}) and on `bio` ({gain('jess_cm', 'bio')})",
        f"{gain('word_vectors', 'zh_gsd')} and {gain('word_vectors', 'zh_zx')} on Chinese",
        f"{float(means['graph_self_training']['tagging']):+.1f} and"
        f" {float(means['graph_pr']['tagging']):+.1f} points there, `graph_pr`"
        f" {gain('graph_pr', 'ocr')} on letters",
        f"loses {lost('hybrid', 'nps_chat')} on chat",
        f"{best['bc5cdr']:+.1f} on `bc5cdr`, {best['genetag']:+.1f} on `genetag`,"
        f" {best['anatem']:+.1f} on `anatem` and {best['zh_gsd']:+.1f} on `zh_gsd`",
        f"treebanks it is {of_banks[0]:+.1f} to {of_banks[-1]:+.1f}, on `conll03`"
        f" {best['conll03']:+.1f} and on `masc` {best['masc']:+.1f}",
        f"{float(means['self_training']['tagging']):+.1f} on tags, and"
        f" {gain('self_training', 'zh_gsd')} on `zh_gsd`",
        f"{gain('selective_self_training', 'bc2gm')[1:]} to"
        f" {gain('selective_self_training', 'genetag')[1:]} on genes and `bc5cdr`,"
        f" {float(means['selective_self_training']['tagging']):.1f} on tags; it loses on Chinese"
        f" ({gain('selective_self_training', 'zh_gsd')},"
        f" {gain('selective_self_training', 'zh_zx')})",
        f"a loss of {lost('entropy_regularization', 'zh_gsd')} on `zh_gsd`",
        f"{clear['worse']} of {len(cells)} gains are clearly negative, and"
        f" {sum(each <= -1 for each in cells)} are below -1",
        f"lose {-float(means['gp_crf']['mean gain']):.0f} and"
        f" {-float(means['graph_propagation']['mean gain']):.0f} points",
        f"{sum(clear.values())} of the {len(cells)} differences are clear",
        f"`hybrid` costs {_cpu(means, 'hybrid') / _cpu(means, 'jess_cm'):.1f} times as much",
    ]
    assert [each for each in expected if each not in text] == []
    assert min(gains["virtual_evidence"].values()) > 0
    assert min(gains["graph_lift"].values()) > 0
    assert {first["genetag"], first["anatem"]} == {"jess_cm"}
    assert sum(first[c] == "jess_cm" for c in treebanks) == 9
    assert _cpu(means, "word_vectors") - _cpu(means, "supervised") < 1


def _cpu(means: Rows, method: str) -> float:
    return float(means[method]["CPU s"])


def test_what_is_set_apart(means: Rows) -> None:
    group = {method: set(row["group"]) for method, row in means.items()}
    near = {m for m in means if group[m] & group["virtual_evidence"]} - {"virtual_evidence"}
    assert near == {"graph_lift", "jess_cm"}
    for method in ("self_training", "supervised"):
        assert not group[method] & group["selective_self_training"]
    for method in ("brown_clusters", "tri_training", "generalized_expectation"):
        assert group[method] & group["supervised"]


def test_numbers_of_corpora_families_and_runs() -> None:
    suite, plugins = read_suite("standard"), registry()
    corpora = {cell.spec.dataset for cell in suite_cells(suite, plugins)}
    families = {plugins.dataset(name).family or name for name in corpora}
    assert f"sentences of {len(corpora)} corpora" in words("README.md")
    assert f"a mean over {len(families)} families" in words("README.md")
    text = words("docs/board.md")
    assert f"{len(corpora)} corpora, every method" in text
    assert f"the {len(families)} families" in text
    board = (ROOT / "leaderboards/standard.md").read_text(encoding="utf-8")
    runs, hours = re.findall(r"^(\d+) runs: \1 done; ([\d.]+) CPU hours", board, re.M)[0]
    assert f"# {int(runs):,} runs, {float(hours):.1f} CPU hours" in text


def test_what_is_said_of_families_that_were_left_out() -> None:
    table = gains_by_family(ROOT / "leaderboards/standard.csv")
    text = words("docs/board.md")
    for same_kind in (False, True):
        found = outcomes(table, same_kind)
        for digits, values in (
            (2, [each.correlation for each in found]),
            (1, [each.gain for each in found]),
            (1, [each.highest - each.gain for each in found]),
        ):
            low, high = interval(np.array(values))
            mean, *ends = (f"{number:.{digits}f}" for number in (np.mean(values), low, high))
            assert re.search(rf"{mean}( points)? \[{', '.join(ends)}\]", text), (mean, ends)
        right = sum(each.first == each.best for each in found)
        assert f"in {right} of {len(found)}" in text


def test_the_table_of_families_that_were_left_out() -> None:
    shown = CliRunner().invoke(print_prediction, [str(ROOT / "leaderboards/standard.csv")]).output
    lines = [line for line in shown.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 15
    assert "\n".join(lines) in (ROOT / "docs/board.md").read_text(encoding="utf-8")


def test_gains_on_the_ten_treebanks() -> None:
    text = (ROOT / "docs/board.md").read_text(encoding="utf-8")
    (part,) = (each for each in text.split("\n\n") if each.startswith("| ten treebanks"))
    board = pd.read_csv(ROOT / "leaderboards/tuned_cv.csv")
    scores = board[board.dataset.str.startswith("ud_")].pivot(
        index="dataset", columns="method", values="mean"
    )
    assert len(scores) == 10
    methods = scores.columns.drop("supervised")
    rows = table(part)
    assert set(rows) == set(methods)
    for method in methods:
        values = 100 * (scores[method] - scores["supervised"]).to_numpy()
        low, high = mean_interval(values)
        assert list(rows[method].values())[1:] == [
            f"{values.mean():+.2f}",
            f"{low:+.2f} to {high:+.2f}",
            f"{values.min():+.2f}",
            f"{values.max():+.2f}",
            f"{mean_p_value(values):.3f}",
        ]


def test_equal_tuning_over_families() -> None:
    text = (ROOT / "leaderboards/tuned_cv.md").read_text(encoding="utf-8")
    part = text[text.index("## 100 labeled") :]
    rows = table(next(each for each in part.split("\n\n") if each.startswith("|")))
    base = set(rows["supervised"]["group"])
    apart = {method for method in rows if not set(rows[method]["group"]) & base}
    assert apart == {"virtual_evidence", "jess_cm", "graph_self_training"}
    for name in ("README.md", "docs/board.md"):
        said = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        for method in apart:
            low, high = map(float, rows[method]["95 % of gain"].split(" to "))
            figures = f"{float(rows[method]['mean gain']):.1f}( points)?,? "
            assert re.search(rf"{figures}\[{low:.1f}, {high:.1f}\]", said), (name, method)


def test_equal_tuning_by_corpus() -> None:
    board = pd.read_csv(ROOT / "leaderboards/tuned_cv.csv")
    scores = 100 * board.pivot(index="dataset", columns="method", values="mean")
    gains = scores.sub(scores["supervised"], axis=0).round(1)
    jess, evidence, banks = (
        gains["jess_cm"],
        gains["virtual_evidence"],
        gains.filter(like="ud_", axis=0),
    )
    said = " ".join((ROOT / "docs/board.md").read_text(encoding="utf-8").split())
    better = evidence[evidence > 0]
    expected = [
        f"`jess_cm` {jess['twitter']} on `twitter`, {jess['anatem']} on `anatem` and `bc5cdr`,"
        f" {jess['zh_gsd']} and {jess['zh_zx']} on Chinese, {jess['conll00']} on `conll00` and"
        f" {banks['jess_cm'].min()} to {banks['jess_cm'].max()} on the treebanks, and it loses"
        f" {-jess['wikigold']} on `wikigold`, {-jess['ocr']} on letters and {-jess['conll03']} on",
        f"gains on {len(better)} of {len(gains)}, {better.min()} to {better.max()}, does nothing on"
        f" `wikigold` and loses {-evidence['conll03']} on `conll03`",
    ]
    assert [each for each in expected if each not in said] == []
    assert evidence["wikigold"] == 0


def test_what_the_boards_cost() -> None:
    text = (ROOT / "docs/board.md").read_text(encoding="utf-8")
    text = text[text.index("## What the boards cost") :]
    rows = table(next(each for each in text.split("\n\n") if each.startswith("|")))
    total = 0.0
    for name, row in rows.items():
        folder = ROOT / "replications" / name
        page = (folder if folder.is_dir() else ROOT / "leaderboards") / f"{name}.md"
        runs, hours = re.findall(
            r"^(\d+) runs: \d+ done.*; ([\d.]+) CPU hours", page.read_text("utf-8"), re.M
        )[0]
        assert "failed" not in page.read_text("utf-8").split(" CPU hours")[0].splitlines()[-1]
        assert (row["runs"], row["CPU hours"]) == (f"{int(runs):,}", f"{float(hours):.1f}"), name
        total += float(hours)
    assert set(rows) == {path.stem for path in (ROOT / "leaderboards").glob("*.md")} | {
        path.name for path in (ROOT / "replications").iterdir() if path.is_dir()
    }
    words = " ".join(text.split())
    assert f"The rows add up to {total:.1f} hours" in words
    assert ("This misses the aim of 40 hours" in words) == (total > 40)


def test_what_to_do() -> None:
    fewer, more, means = (
        table(_tables_of(name, size)[0])
        for name, size in (("fewer_labels", 50), ("more_labels", 500), ("standard", 100))
    )
    text = " ".join((ROOT / "docs/board.md").read_text(encoding="utf-8").split())

    def mean(rows: Rows, method: str, column: str = "mean gain") -> str:
        return f"`{method}` ({float(rows[method][column]):+.1f}"

    expected = [
        f"{mean(fewer, 'virtual_evidence')}), on names {mean(fewer, 'jess_cm', 'spans')}), on tags"
        f" {mean(fewer, 'graph_lift', 'tagging')}, which",
        f"`self_training` loses {-float(fewer['self_training']['mean gain']):.1f}",
        f"{mean(means, 'virtual_evidence')}), on names {mean(means, 'jess_cm', 'spans')}); where"
        f" nothing may be lost, {mean(means, 'graph_lift')})",
        f"{mean(more, 'graph_lift')}) or {mean(more, 'word_vectors')})",
        f"`hybrid` gains {float(more['hybrid']['mean gain']):+.1f}",
        f"gains {_more_labels(200):.1f} points, with 500 {_more_labels(500):.1f}",
        *(
            f"{float(fewer[m]['mean gain']):+.1f} ({float(means[m]['mean gain']):+.1f}"
            for m in ("virtual_evidence", "jess_cm", "graph_lift", "selective_self_training")
        ),
    ]
    assert [each for each in expected if each not in text] == []
    assert float(fewer["graph_lift"]["lowest gain"].split()[0]) > 0
    lowest = fewer["jess_cm"]["lowest gain"].split()
    assert f"loses {-float(lowest[0]):.1f} on letters" in text
    assert lowest[1] == "ocr"
    assert _cpu(more, "hybrid") / _cpu(more, "word_vectors") == pytest.approx(10, abs=0.5)
    assert _more_labels(200) > max(float(row["mean gain"]) for row in means.values())
    assert sum(int(row["better"]) + int(row["worse"]) for row in fewer.values()) == 1
    scores = table(_tables_of("fewer_labels", 50)[1])
    corpora = [name for name in scores["supervised"] if name not in ("method", "mean rank")]
    best = [max(scores, key=lambda m: float(scores[m][c])) for c in corpora]
    assert (len(corpora), best.count("jess_cm")) == (15, 11)


def _more_labels(size: int) -> float:
    """The mean gain of the baseline over its 100 labeled sentences, over families."""
    board = pd.read_csv(ROOT / "leaderboards/standard.csv").query("method == 'supervised'")
    labeled = board.protocol.str.extract(r"labeled (\d+),")[0].astype(int)
    scores = board.assign(labeled=labeled).pivot(index="dataset", columns="labeled", values="mean")
    gained = 100 * (scores[size] - scores[100]).dropna()
    families = [registry().dataset(name).family or name for name in gained.index]
    return float(gained.groupby(families).mean().mean())
