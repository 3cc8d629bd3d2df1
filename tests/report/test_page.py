"""The page of a board: what it shows, that it is one file, and how it is used."""

from __future__ import annotations

import html.parser
import itertools
import json
import re
from dataclasses import replace
from importlib import resources
from typing import Any

import msgspec
import numpy as np
import pytest

from sslbench.experiment.records.record import RunRecord
from sslbench.report.board import Board, board_of_tables
from sslbench.report.ledger import Line
from sslbench.report.overview import (
    Overview,
    critical_svg,
    front,
    overview,
    overview_table,
    pairs_table,
    pareto_svg,
)
from sslbench.report.page.build import Sources, page
from sslbench.report.page.glance import glance
from sslbench.report.render import markdown
from sslbench.report.svg import Plot
from support.board_records import DATASETS, SKILL, board, boards, records_on, row_of

VOID = {"meta", "input", "br", "path", "circle", "polyline"}


class Outline(html.parser.HTMLParser):
    """Tags with their attributes; all of them are closed in the right order."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def outline(text: str) -> Outline:
    parser = Outline()
    parser.feed(text)
    assert parser.open == []
    return parser


def places(text: str) -> dict[str, tuple[str, list[tuple[str, str | list[str]]]]]:
    actual = re.search(r'id="places">(.*?)</script>', text, re.S)
    assert actual is not None
    data = json.loads(actual[1])

    def told(value: Any) -> Any:
        return data["texts"][value] if isinstance(value, int) else [told(part) for part in value]

    return {key: told(place) for key, place in data["places"].items()}


def test_it_is_one_file_that_loads_nothing(shown: Board) -> None:
    text = page(shown, Sources(summary="all"))
    actual = outline(text)
    assert len(actual.ids) == len(set(actual.ids))
    for tag, attributes in actual.tags:
        assert tag not in ("link", "img", "iframe", "object"), tag
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#") or "download" in attributes
        assert all(not name.startswith("on") for name in attributes)
    targets = {link["href"] for link in actual.all("a") if "download" not in link}
    assert {f"#{name}" for name in actual.ids} >= targets
    assert "default-src 'none'" in text
    assert "url(" not in text
    assert len(text) < 3_000_000
    assert page(shown, Sources(summary="all")) == text
    assert not [link for link in actual.all("a") if "download" in link]
    links = outline(page(shown, Sources(), "x")).all("a")
    beside = [link["href"] for link in links if "download" in link]
    assert beside == ["x.csv", "x.tex", "x.md"]


def test_the_first_screen_answers(shown: Board) -> None:
    views = [overview(shown, size) for size in shown.sizes]
    better = views[0].lines[0]
    answer = glance(shown, views)
    assert answer is not None
    assert answer.answer.startswith("100 labeled: better has the best mean rank of 3 methods")
    low, high = better.gains
    for part in (
        f"over 7 datasets, {better.gain:+.2f} points over supervised (95 %: {low:+.2f} to",
        "for 10.0 CPU seconds of a training (supervised: 1.0)",
    ):
        assert part in answer.answer
    assert answer.more == (
        "How sure: tests over families of datasets set all others apart from it; with other"
        " datasets of the kind it would have the best mean score with probability 1.00.",
        f"None gains more for less: supervised +0.00 for 1.0 s, better {better.gain:+.2f} for"
        " 10.0 s.",
    )
    interval = f"{low:+.2f} to {high:+.2f}"
    assert answer.rows[0] == ("better", f"{better.gain:+.2f}", interval, "10.0")
    text = page(shown, Sources())
    assert text.index(answer.answer) < text.index('id="all"')


def test_the_first_screen_of_few_datasets_claims_little() -> None:
    few = board(records_on("set0", "set1", sizes=(100,)))
    answer = glance(few, [overview(few, "100")])
    assert answer is not None
    assert "95 %:" not in answer.answer
    assert answer.more[0].startswith("How sure: 2 of the 6 families that a test needs")
    assert answer.head == ("method", "gain", "CPU s")
    assert {len(row) for row in answer.rows} == {3}
    alone = board([r for r in records_on("set0") if r.method == "better"])
    assert glance(alone, [overview(alone, size) for size in alone.sizes]) is None


def test_a_bar_leaves_out_what_is_not_of_its_group(shown: Board) -> None:
    view = overview(shown, "100")
    ranks = (1.0, 2.0, 3.0)
    for groups, n_bars, covered in ((("a", "b", "a"), 2, 0), (("a", "a", "a"), 1, 1)):
        lines = [
            replace(line, group=group, rank=rank)
            for line, group, rank in zip(view.lines, groups, ranks, strict=True)
        ]
        picture = critical_svg(replace(view, lines=tuple(lines)))
        bars = re.findall(r'class="bar" d="M([\d.]+) [\d.]+L([\d.]+)', picture)
        ticks = re.findall(r'class="axis" d="M([\d.]+) 36', picture)
        middle = float(ticks[1])
        assert len(bars) == n_bars
        assert sum(float(a) < middle < float(b) for a, b in bars) == covered


def test_it_can_be_read_without_a_mouse_or_eyes_on_any_screen(shown: Board) -> None:
    text = page(shown, Sources())
    actual = outline(text)
    assert actual.all("html") == [{"lang": "en"}]
    assert any(each.get("name") == "viewport" for each in actual.all("meta"))
    assert len(re.findall(r"<table", text)) == len(re.findall(r"<caption>", text))
    assert all("scope" in each for each in actual.all("th"))
    pictures = actual.all("svg")
    assert len(pictures) == 2 * 2 + len(DATASETS)  # ranks and cost by size, curves
    assert all(each.get("aria-label") and each["role"] == "img" for each in pictures)
    assert all("tabindex" in each or "pictures" in text for each in actual.all("div"))
    css = (resources.files("sslbench.report.page") / "page.css").read_text()
    assert "prefers-color-scheme: dark" in css
    assert "max-width: 40em" in css
    assert "focus-visible" in css


def test_the_first_table_has_scores_ranks_gains_and_costs(shown: Board) -> None:
    text = page(shown, Sources())
    table = next(t for t in shown.tables if t.dataset == "set0" and t.labeled == 100)
    better = row_of(table, "better")
    line = text[text.index('<tr data-line="better">') :]
    line = line[: line.index("</tr>")]
    cell = next(c for c in line.split("<td ") if f"{100 * (better.mean or 0):.2f}</b>" in c)
    assert better.paired is not None
    assert f"{100 * better.paired.difference:+.2f} (" in cell
    assert 'class="best up"' in cell
    assert ">10 s<" in cell
    heads = re.findall(r'<th scope="col" data-size="(\d+)"', text)
    assert heads == ["100"] * 8 + ["500"] * 8  # each with its mean
    details = dict(places(text)[re.search(r'data-place="(p\d+)"', cell)[1]][1])
    assert details["command"] == "make better"
    assert "seed 0: " in details["runs"][0]
    assert "possible 1" in details["rank"]


def test_trials_that_left_the_race_are_marked() -> None:
    records = records_on(*DATASETS)
    for each in records:
        each.tuning = [
            {"params": {"sigma2": 10.0}, "score": 0.5},
            {"params": {"sigma2": 2.0}, "score": 0.25, "dropped_after": 2},
            {"params": {"sigma2": 3.0}, "score": None},
        ]
    text = page(board(records), Sources())
    details = dict(places(text)["p0"][1])
    assert details["tuning trials"] == [
        "sigma2 10: 50.00",
        "sigma2 2: 25.00, out after fold 2",
        "sigma2 3: failed",
    ]


def test_one_draw_ranks_no_method() -> None:
    text = page(board([r for r in records_on(*DATASETS) if r.spec.protocol.seed == 0]), Sources())
    assert text.count("untested</") == len(SKILL) * len(DATASETS) * 2
    assert 'class="best' not in text


def test_a_line_that_lacks_a_score_has_no_mean() -> None:
    some = [r for r in records_on(*DATASETS) if (r.method, r.dataset) != ("better", "set3")]
    text = page(board(some), Sources())
    line = text[text.index('<tr data-line="better">') :]
    assert '<td class="gap" data-score=""' in line[: line.index("</td>")] + "</td>"
    assert "100 labeled, no mean for lack of a score: better (set3)" in text


def test_ranks_over_datasets_against_a_count_by_hand(shown: Board) -> None:
    view = overview(shown, "100")
    better, base, worse = view.lines
    names = [line.name for line in view.lines]
    assert names == ["better", "supervised", "worse"]
    means = [
        [row_of(t, name).mean or 0 for t in shown.tables if t.labeled == 100] for name in names
    ]
    ranks = 1 + np.array(
        [[sum(o > each for o in c) for each in c] for c in zip(*means, strict=True)]
    )
    assert [line.rank for line in view.lines] == pytest.approx(ranks.mean(axis=0))
    assert better.gain == pytest.approx(100 * np.mean(np.subtract(means[0], means[1])))
    assert [line.group for line in view.lines] == ["a", "b", "c"]  # always in the same order
    assert (better.cpu_s, base.cpu_s, worse.cpu_s) == pytest.approx((10.0, 1.0, 5.0))
    assert front(view) == ["supervised", "better"]
    cheap = replace(view, lines=[better, base, replace(worse, cpu_s=0.5)])
    assert front(cheap) == front(view), "what is below the baseline is no bargain"
    head, rows = pairs_table(view)
    assert head == ["method", "better", "supervised", "worse"]
    n = len(view.columns)
    assert rows[0][1:3] == ["", f"{better.gain:+.2f}* ({n}:0)"]
    assert rows[2][2] == f"{worse.gain:+.2f}* (0:{n})"
    assert "better 1.00" in critical_svg(view)
    assert "worse" in pareto_svg(view)
    few = overview(board(records_on("set0", "set1", sizes=(100,))), "100")
    assert critical_svg(few) == ""
    assert len({line.group for line in few.lines}) == 1  # two families tell nothing apart
    assert {(line.gains, line.ranks) for line in few.lines} == {((-np.inf, np.inf),) * 2}
    assert "*" not in "".join(map("".join, pairs_table(few)[1]))


def test_a_family_of_datasets_counts_once() -> None:
    tables = boards(records_on(*DATASETS, sizes=(100,)))
    families = dict.fromkeys(DATASETS[:4], "one")
    view = overview(board_of_tables(tables, lambda row: "", families), "100")
    assert view.families == ("one",) * 4 + DATASETS[4:]
    scores = {line.name: np.array(line.scores) for line in view.lines}
    for line in view.lines:
        gains = scores[line.name] - scores["supervised"]
        assert line.gain == pytest.approx(np.mean([gains[:4].mean(), *gains[4:]]))
        assert line.ranks == (-np.inf, np.inf)  # four families
    assert len({line.group for line in view.lines}) == 1
    assert sum(line.first for line in view.lines) == pytest.approx(1.0)
    assert {tuple(row[2:4]) for row in overview_table(view)[1]} == {("", "")}


def test_gains_that_are_significant_are_counted_at_a_false_discovery_rate(shown: Board) -> None:
    view = overview(shown, "100")
    tests = [
        (line.name, row.paired)
        for line in view.lines
        for i in view.columns
        if (row := shown.score(line.name, i)) is not None and row.paired is not None
    ]
    ordered = sorted(test.p_value for _, test in tests)
    accepted = [p for k, p in enumerate(ordered, 1) if p <= 0.05 * k / len(ordered)]
    largest = max(accepted, default=0.0)
    for line in view.lines:
        own = [test for name, test in tests if name == line.name and test.p_value <= largest]
        assert line.better == sum(test.difference > 0 for test in own)
        assert line.worse == sum(test.difference < 0 for test in own)
    assert any(line.better for line in view.lines)


def test_lines_far_below_are_named_beside_the_picture(shown: Board) -> None:
    def with_gains(*gains: float) -> Overview:
        view = overview(shown, "100")
        lines = [replace(line, gain=gain) for line, gain in zip(view.lines, gains, strict=True)]
        return replace(view, lines=tuple(lines))

    picture = pareto_svg(with_gains(2.0, 0.0, -7.0))
    assert picture.count("<circle") == 2 + 2  # two lines, which are the front too
    assert "far below: worse -7.0" in picture
    near = with_gains(2.0, 0.0, -6.0)
    assert "far below" not in pareto_svg(near)
    two = replace(near, lines=with_gains(2.0, 0.0, -7.0).lines[1:])
    assert "far below" not in pareto_svg(two)  # one line alone is no picture


def test_labels_of_points_at_one_place_do_not_overlap() -> None:
    plot = Plot([1.0, 10.0], [0.0, 1.0], "x", "y")
    for i in range(6):
        plot.label(200.0, 100.0, f"name{i}")
    places = [float(y) for y in re.findall(r'y="([\d.]+)">name', "".join(plot.parts))]
    assert len(places) == 6
    assert min(b - a for a, b in itertools.pairwise(sorted(places))) >= 13
    assert 0 < min(places) < max(places) < plot.height - 40


def test_gains_by_task_and_the_lowest_one() -> None:
    actual = records_on(*DATASETS[:4], sizes=(100,))
    for made in actual:
        made.data["task"] = "spans" if made.dataset == DATASETS[2] else "tagging"
    shown = board(actual)
    view = overview(shown, "100")
    i, worse = next((i, line) for i, line in enumerate(view.lines) if line.name == "worse")
    gains = {}
    for column in shown.columns:
        assert column.table is not None
        own, base = (row_of(column.table, name).mean or 0 for name in ("worse", "supervised"))
        gains[column.dataset] = 100 * (own - base)
    assert view.tasks == ("tagging", "spans")
    spans = gains.pop(DATASETS[2])
    assert worse.by_task == pytest.approx((np.mean(list(gains.values())), spans))
    gains[DATASETS[2]] = spans
    lowest = min(gains, key=gains.__getitem__)
    assert worse.lowest == (pytest.approx(gains[lowest]), lowest)
    head, rows = overview_table(view)
    assert head[5:10] == ["mean gain", "95 % of gain", "tagging", "spans", "lowest gain"]
    assert rows[i][7:10] == [
        f"{worse.by_task[0]:+.2f}",
        f"{spans:+.2f}",
        f"{gains[lowest]:+.2f} {lowest}",
    ]
    without = replace(view, lines=tuple(replace(line, gain=None) for line in view.lines))
    assert overview_table(without)[0][5:] == ["better", "worse", "CPU s"]
    assert {len(row) for row in overview_table(without)[1]} == {8}
    one_task = overview(board(records_on(*DATASETS[:3], sizes=(100,))), "100")
    assert "spans" not in overview_table(one_task)[0]


def test_printed_numbers_stand_beside_ours() -> None:
    runs = records_on("set0", sizes=(100,))
    fields = dict.fromkeys(Line.__struct_fields__, "") | {"data": "same", "reason": "<because>"}
    ours = next(run.run_id for run in runs if run.method == "better")
    line = Line(
        **fields
        | {"paper": "A 2000", "printed": "80.0", "runs": ours, "ours": "79.0"}
        | {"low": "78.5", "high": "79.2", "margin": "2", "verdict": "agrees"}
    )
    text = page(board(runs), Sources(ledger=[line]))
    assert '<tr class="v-agrees">' in text
    assert "&lt;because&gt;" in text
    entries = [dict(entry) for _, entry in places(text).values()]
    actual = [entry["in the paper"] for entry in entries if "in the paper" in entry]
    assert actual == ["80.0 (A 2000, , , ; same data): agrees"]


def test_it_stays_small_with_many_methods_and_datasets() -> None:
    """14 methods on 20 corpora in two sizes: the details of all cells, and the tables."""
    per_cell = len(page(board(records_on(*DATASETS[:2])), Sources())) / (2 * 2 * 3)
    assert per_cell * 14 * 20 * 2 < 3_000_000


def test_records_without_counts_or_costs_make_a_page() -> None:
    bare = records_on("set0")
    for run in bare:
        run.cpu_s = None
        run.data = {"test_sha256": "t"}
    plain = msgspec.convert(msgspec.to_builtins(bare[0]), RunRecord)
    plain.counts = {}
    outline(page(board([plain, *bare[1:]]), Sources()))


def test_lines_of_markdown_are_short(shown: Board) -> None:
    text = markdown(shown, "word " * 40)
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 120
    assert "word " * 23 + "word\nword" in text
