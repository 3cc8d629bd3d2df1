"""Does `choose` keep its promise on text in document order? Windows of adjacent sentences.

    PYTHONPATH=tests python -m benchmarks.windows FOLDER [--budget 180] [CORPUS ...]

People label a file from its beginning. So a window is 200 adjacent sentences of a corpus whose
files are abstracts one after the other, with the next 1,500 as text without labels. `choose`
promises a range and names a method. The truth is the official test part: each method that was tried
is trained on the whole window and scored there. A finished window is kept in FOLDER.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np

from sslbench.choosing import Candidate, choose
from sslbench.engine.corpus import Corpus
from sslbench.experiment.data.userdata import load_user_data
from sslbench.experiment.metrics import ratios
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest, TrainRequest
from sslbench.experiment.run.saved import train_tagger

CORPORA = ("BC5CDR-IOB", "AnatEM-IOB")
WINDOWS, LABELED, TEXT = 5, 200, 1500
#: points of F1 below which the best method of a window is as good as another
NEAR = 0.5
COLUMNS = ("word", "label")


class Window(msgspec.Struct):
    """What was promised and what came, in points of F1.

    tests: of each method that was tried.  close: what `choose` cannot tell from its choice.
    """

    corpus: str
    start: int
    chosen: str
    close: tuple[str, ...]
    low: float
    high: float
    promised: float
    tests: dict[str, float]

    @property
    def inside(self) -> bool:
        return self.low <= self.tests[self.chosen] <= self.high

    @property
    def verdict(self) -> str:
        if max(self.tests.values()) - self.tests[self.chosen] <= NEAR:
            return "right"
        return "cannot tell" if self.close else "wrong"


@dataclass(frozen=True)
class Study:
    folder: Path
    budget: float

    def window(self, corpus: str, number: int) -> Window:
        """One window; made if it is not there."""
        file = self.folder / f"{corpus}-{number}.json"
        if file.exists():
            return msgspec.json.decode(file.read_bytes(), type=Window)
        files = Path(os.environ["SSLBENCH_DATA"]) / "mtl-bioinformatics-2016" / corpus
        whole = load_user_data(files, COLUMNS).splits
        train, test = whole["train"], whole["test"]
        start = number * (train.n_sentences - LABELED - TEXT) // (WINDOWS - 1)
        data = self.folder / f"{corpus}-{number}"
        data.mkdir(parents=True, exist_ok=True)
        _write(data / "train.txt", train, start, LABELED, COLUMNS)
        _write(data / "unlabeled.txt", train, start + LABELED, TEXT, COLUMNS[:1])
        request = RunRequest((), data=str(data), columns=COLUMNS, folds=5, threads=1)
        choice = choose(request, budget=self.budget, store=Store(data / "runs"))
        tests = {str(each): self._test(data, each, test) for each in choice.tried}
        promise = choice.ranges[choice.chosen]
        low, high, value = (100 * v for v in (promise.low, promise.high, promise.value))
        close = tuple(map(str, choice.close))
        done = Window(corpus, start, str(choice.chosen), close, low, high, value, tests)
        file.write_bytes(msgspec.json.encode(done))
        return done

    def _test(self, data: Path, candidate: Candidate, test: Corpus) -> float:
        """F1 in points on the test part after a training on the window."""
        request = TrainRequest(
            candidate.method,
            data=str(data),
            columns=COLUMNS,
            featurizer=candidate.featurizer,
            threads=1,
            guard=False,
        )
        tagger = train_tagger(request, notice=lambda text: None, quiet=True)
        counts, _ = tagger.counts(test, tagger.tag(test))
        table = counts.table()
        return 100 * float(ratios(table.rows.sum(axis=0), table.fields)["f1"])


def _write(path: Path, corpus: Corpus, start: int, n: int, columns: tuple[str, ...]) -> None:
    part = corpus.select(np.arange(start, start + n))
    rows = zip(*(part.column(name).strings() for name in columns), strict=True)
    lines = iter(["\t".join(row) for row in rows])
    sizes = np.diff(part.offsets).tolist()
    path.write_text("".join("\n".join(islice(lines, size)) + "\n\n" for size in sizes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("corpora", nargs="*", default=CORPORA)
    parser.add_argument("--budget", type=float, default=180.0, help="seconds of a choice")
    given = parser.parse_args()
    study = Study(given.folder, given.budget)
    print("| corpus | from sentence | promised | range | chosen | its test | best test | verdict |")
    print("|---|---:|---:|---|---|---:|---|---|")
    done = []
    for corpus in given.corpora:
        for number in range(WINDOWS):
            window = study.window(corpus, number)
            done.append(window)
            best = max(window.tests, key=lambda name: window.tests[name])
            cells = [
                corpus,
                window.start,
                f"{window.promised:.1f}",
                f"{window.low:.1f} to {window.high:.1f}",
                window.chosen,
                f"{window.tests[window.chosen]:.1f}",
                f"{best}, {window.tests[best]:.1f} of {len(window.tests)}",
                f"{window.verdict}, {'inside' if window.inside else 'outside'}",
            ]
            print("|", " | ".join(map(str, cells)), "|", flush=True)
    verdicts = [window.verdict for window in done]
    inside = sum(window.inside for window in done)
    print(f"\n{inside} of {len(done)} tests inside the range;", end=" ")
    print(
        ", ".join(f"{name}: {verdicts.count(name)}" for name in ("right", "cannot tell", "wrong"))
    )


if __name__ == "__main__":
    main()
