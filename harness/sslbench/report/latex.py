"""Tables for papers: LaTeX with the rules of booktabs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sslbench.report.board import Board
from sslbench.report.escape import latex_text
from sslbench.report.overview import Overview, overview
from sslbench.report.wording import percent

_COLUMNS = 5  # datasets of a table: so many fit the text of a page with one column
_PREAMBLE = "% in the preamble: \\usepackage{booktabs}\n\n"


def latex(board: Board, name: str) -> str:
    """Tables of methods by datasets for each size: mean, standard deviation, best mean in bold.

    name: of the board, for the labels.
    """
    tables = (
        _table(board, view, part, f"{name}-{view.size}-{number}")
        for view in (overview(board, size) for size in board.sizes)
        for number, part in enumerate(_parts(view.columns), 1)
    )
    return _PREAMBLE + "\n\n".join(tables) + "\n"


def _parts(columns: Sequence[int]) -> Iterator[Sequence[int]]:
    for first in range(0, len(columns), _COLUMNS):
        yield columns[first : first + _COLUMNS]


def _table(board: Board, view: Overview, part: Sequence[int], label: str) -> str:
    ranked = len(view.columns) > 1
    best = {i: max((_mean(board, name, i) for name in board.lines), default=0.0) for i in part}
    caption = (
        f"{board.title}, {view.size} labeled: mean over draws in percent, with its standard"
        " deviation; bold: the best mean."
    )
    if ranked:
        caption += f" Rank: the mean rank over all {len(view.columns)} datasets."
    heads = ["", *(["rank"] * ranked), *(board.columns[i].dataset for i in part)]
    metrics = ["method", *([""] * ranked), *(board.columns[i].metric for i in part)]
    rows = []
    for name in board.lines:
        if any((name, i) in board.places for i in part):
            means = view.line(name)
            rank = ["" if means is None else f"{means.rank:.2f}"] * ranked
            rows.append([latex_text(name), *rank, *(_cell(board, name, i, best[i]) for i in part)])
    lines = [
        r"\begin{table}",
        r"\centering\small",
        f"\\caption{{{latex_text(caption)}}}",
        f"\\label{{tab:{label}}}",
        f"\\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}",
        r"\toprule",
        _line(map(latex_text, heads)),
        _line(map(latex_text, metrics)),
        r"\midrule",
        *map(_line, rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _line(texts: Sequence[str] | Iterator[str]) -> str:
    return " & ".join(texts) + r" \\"


def _mean(board: Board, name: str, column: int) -> float:
    row = board.score(name, column)
    return -1.0 if row is None or row.mean is None else row.mean


def _cell(board: Board, name: str, column: int, best: float) -> str:
    row = board.score(name, column)
    if row is None or row.mean is None:
        return ""
    mean = percent(row.mean)
    text = f"\\textbf{{{mean}}}" if row.mean == best else mean
    return text if row.sd is None else f"{text} {{\\scriptsize {percent(row.sd)}}}"
