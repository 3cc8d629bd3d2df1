"""Do the methods help with their defaults? Candidates for defaults, chosen on development parts.

    PYTHONPATH=tests python -m benchmarks.defaults run STORE [METHOD ...]    makes missing records
    PYTHONPATH=tests python -m benchmarks.defaults guard STORE [METHOD ...]    makes guarded ones
    PYTHONPATH=tests python -m benchmarks.defaults forecast STORE [METHOD ...]    with forecasts
    PYTHONPATH=tests python -m benchmarks.defaults show STORE    prints tables of docs/defaults.md
    PYTHONPATH=tests python -m benchmarks.defaults roc STORE FILE.svg    those of the forecasts

Each corpus is cut: train without its development part, which is the test here. The test splits of
the corpora are not in the data that runs see. 100 labeled sentences, 500 others without labels.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import numpy as np

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest
from sslbench.experiment.run.runner import execute
from sslbench.plugins import Origin, Registry, registry
from sslbench.plugins.registrations import DatasetInfo
from sslbench.report.forecasts import HEADINGS, Cell, cells_of, forecast_rows, forecast_svg

KINDS = {
    "tags": "ud_da ud_el ud_en ud_pt wsj_sample questions",
    "spans": "conll00 conll02 conll03 bc2gm genetag",
    "segmentation": "zh_gsd zh_zx sxu",
}
KIND_OF = {corpus: kind for kind, names in KINDS.items() for corpus in names.split()}
SLOW = ("wsj_sample", "questions")  # only for quick methods and their first candidates
SEEDS, LABELED, UNLABELED, LARGEST_TEST = (0, 1), 100, 500, 1000
#: by method the values that a default is chosen from, as texts of settings
CANDIDATES: dict[str, tuple[str, ...]] = {
    "supervised": ("sigma2=10",),
    "self_training": (
        "weight=0.1 weight_scale=sentence",
        "weight=0.03 weight_scale=sentence",
        "weight=0.003 weight_scale=sentence",
    ),
    "entropy_regularization": ("gamma=0.003", "gamma=0.001"),
    "graph_self_training": ("omega=0 sigma2=10 eta_scale=sentence",),
    "type_self_training": ("omega=0 sigma2=10 eta_scale=sentence",),
    "virtual_evidence": ("base_rates=removed alpha=0.7",),
    "graph_lift": ("beta=1 eta=0.1 eta_scale=sentence steps=10",),
    "graph_pr": ("lam=0.1 sigma2=10 em_iters=3 decoding=viterbi",),
    "jess_cm": ("eta=0.01",),
    "word_vectors": (
        "vector_length=1 dimensions=25 vector_window=1",
        "vector_length=0.7 dimensions=25 vector_window=2",
        "vector_length=0.7 dimensions=50 vector_window=2",
        "vector_form=clusters vector_clusters=100 vector_window=2",
    ),
}
#: for comparison: what papers print, lift without edges; on few corpora, with one seed
CONTRASTS = {
    "self_training": "weight=1 weight_scale=sentence",
    "entropy_regularization": "gamma=0.1",
    "graph_self_training": "omega=1 sigma2=50 eta_scale=sentence",
    "type_self_training": "omega=1 sigma2=50 eta_scale=sentence",
    "virtual_evidence": "base_rates=kept alpha=0.7",
    "graph_lift": "beta=1 eta=0.1 eta_scale=sentence steps=0",
    "graph_pr": "lam=1 sigma2=10000 em_iters=3 decoding=posterior",
}
FEW = ("ud_da", "ud_en", "conll00", "conll02", "conll03", "bc2gm", "genetag", "zh_gsd")
#: of the guard: values that help and that harm, with one seed
GUARDED = {
    "virtual_evidence": "base_rates=removed alpha=0.7",
    "graph_lift": "beta=1 eta=0.1 eta_scale=sentence steps=10",
    "self_training": "weight=1 weight_scale=sentence",
    "entropy_regularization": "gamma=0.1",
}
GUARDED_CORPORA = ("bc2gm", "ud_da", "conll02")


class Loaders:
    """A loader of each corpus, as an attribute: the target of a registration names it."""

    def __getattr__(self, corpus: str) -> Any:
        return partial(load, corpus)


loaders = Loaders()


def load(corpus: str, home: DataHome) -> Dataset:
    """The corpus with a development part as its test."""
    info = registry().dataset(corpus)
    whole: Dataset = info.load()(DataHome(None, dataset=corpus))
    train, dev = whole.splits["train"], whole.splits.get("dev")
    if dev is None:  # the last fifth of train
        first = train.n_sentences - train.n_sentences // 5
        train, dev = (
            train.select(np.arange(first)),
            train.select(np.arange(first, train.n_sentences)),
        )
    dev = dev.select(np.arange(min(dev.n_sentences, LARGEST_TEST)))
    splits = {"train": train, "test": dev}
    same: dict[str, Any] = {"splits": splits, "codec": None, "alternatives": {}, "metadata": {}}
    if KIND_OF[corpus] == "segmentation":
        same["splits"] = {name: without_types(part) for name, part in splits.items()}
        return replace(whole, task="segmentation", metric="seg_f1", **same)
    return replace(whole, metric=whole.metric.removeprefix("alt_"), **same)


def without_types(corpus: Corpus) -> Corpus:
    """Labels such as B-NN as B."""
    tags = Vocabulary("BMES")
    label = corpus.column("label")
    table = np.array([tags.lookup(text[0]) for text in label.vocabulary.strings], dtype=np.int32)
    return corpus.with_column("label", Column(tags, table[label.codes]))


def plugins() -> Registry:
    """The registry, with the cut corpora."""
    found = registry()
    for corpus, kind in KIND_OF.items():
        info = found.dataset(corpus)
        metric = "seg_f1" if kind == "segmentation" else info.metric.removeprefix("alt_")
        task = "segmentation" if kind == "segmentation" else info.task
        cut = DatasetInfo(
            name=f"dev_{corpus}",
            summary=f"development part of {corpus}",
            reference=info.reference,
            target=f"benchmarks.defaults:loaders.{corpus}",
            licence=info.licence,
            task=task,
            metric=metric,
            featurizer="zh_char" if kind == "segmentation" else "basic",
            protocol="train without a development part, which is the test",
            files=info.files,
        )
        if ("datasets", cut.name) not in found.origins:
            found.add("datasets", cut, Origin("study", "sslbench", ""))
    return found


def tasks(methods: list[str]) -> Iterator[RunTask]:
    """The runs: first candidates, further ones, contrasts."""
    for row in zip_longest(*CANDIDATES.values()):
        given = dict(zip(CANDIDATES, row, strict=True))
        yield from planned(given, methods, [name for name in KIND_OF if name not in SLOW])
        if row[0]:
            quick = {name: given[name] for name in list(CANDIDATES)[:5]}
            yield from planned(quick, methods, SLOW)
    yield from planned(CONTRASTS, methods, FEW, SEEDS[:1])


def guarded_tasks(methods: list[str]) -> Iterator[RunTask]:
    """The runs with a guard."""
    return planned(GUARDED, methods, GUARDED_CORPORA, SEEDS[:1], guard=True)


def foreseen_tasks(methods: list[str]) -> Iterator[RunTask]:
    """The first candidates and the contrasts, on few corpora with one seed."""
    yield from planned({m: texts[0] for m, texts in CANDIDATES.items()}, methods, FEW, SEEDS[:1])
    yield from planned(CONTRASTS, methods, FEW, SEEDS[:1])


def planned(
    given: Mapping[str, str | None],
    methods: list[str],
    corpora: Sequence[str],
    seeds: Sequence[int] = SEEDS,
    *,
    guard: bool = False,
) -> Iterator[RunTask]:
    """The runs of methods with settings, method by method."""
    chosen = {m: text for m, text in given.items() if text and (not methods or m in methods)}
    if chosen:
        request = RunRequest(
            method=list(chosen),
            dataset=[f"dev_{name}" for name in corpora],
            seeds=seeds,
            labeled=LABELED,
            unlabeled=UNLABELED,
            params=[f"{m}.{text}" for m, texts in chosen.items() for text in texts.split()],
            guard=guard,
            threads=1,
        )
        found = plan(request, store=None, plugins=plugins(), notice=lambda text: None)
        yield from sorted(found, key=lambda task: list(chosen).index(task.spec.method))


def run(store: Store, made: Iterator[RunTask]) -> None:
    """Make the missing records, in this process."""
    for task in made:
        if store.load(task.spec.run_id) is None:
            record = execute(task, plugins())
            score = record.error if record.score is None else f"{100 * record.score:.2f}"
            print(record.cpu_s, task.spec.method, task.spec.dataset, score, flush=True)
            store.save(record)


Cells = dict[tuple[str, int], float]  # points of difference to supervised, by corpus and seed


def differences(store: Store) -> dict[str, dict[str, Cells]]:
    """What the records say, by method and candidate."""
    records = {
        (r.method, _chosen(r), r.dataset[4:], r.spec.protocol.seed): r
        for r in store.records()
        if r.dataset[4:] in KIND_OF and r.spec.guard is msgspec.UNSET
    }
    found: dict[str, dict[str, Cells]] = defaultdict(lambda: defaultdict(dict))
    for (method, candidate, corpus, seed), record in records.items():
        baseline = records["supervised", CANDIDATES["supervised"][0], corpus, seed]
        if candidate and record.score is not None and baseline.score is not None:
            found[method][candidate][corpus, seed] = 100 * (record.score - baseline.score)
    return found


def candidates_of(method: str) -> list[str]:
    """What was tried."""
    return [*CANDIDATES.get(method, ()), *filter(None, [CONTRASTS.get(method)])]


def _chosen(record: RunRecord) -> str:
    """The candidate of a record; "" for none."""
    for candidate in candidates_of(record.method):
        settings = dict(setting.split("=") for setting in candidate.split())
        values = {key: str(record.params.get(key)) for key in settings}
        if all(values[key] in (value, f"{value}.0") for key, value in settings.items()):
            return candidate
    return ""


def average(cells: Cells, without: str = "") -> float:
    """The mean over kinds of the means over corpora, one of them left out."""
    means = [of_kind(cells, kind, without) for kind in KINDS]
    return fmean(mean for mean in means if mean is not None)


def of_kind(cells: Cells, kind: str, without: str = "") -> float | None:
    """The mean over the corpora of a kind."""
    found = [v for (name, _), v in cells.items() if KIND_OF[name] == kind and name != without]
    return fmean(found) if found else None


def show(store: Store) -> None:
    """Markdown: differences by corpus; what is chosen without each corpus, and what it gives."""
    corpora, found = list(KIND_OF), differences(store)
    print("| method, candidate |", " | ".join([*corpora, *KINDS, "worst cell"]), "|")
    print("|---|" + "---|" * (len(corpora) + len(KINDS) + 1))
    for method in CANDIDATES:
        for candidate in [name for name in candidates_of(method) if name in found[method]]:
            cells = found[method][candidate]
            by_corpus = [[v for (name, _), v in cells.items() if name == each] for each in corpora]
            means = [fmean(part) if part else None for part in by_corpus]
            row = [*means, *(of_kind(cells, kind) for kind in KINDS)]
            (name, seed), worst = min(cells.items(), key=lambda item: item[1])
            texts = ["" if v is None else f"{v:+.1f}" for v in row]
            print(
                f"| {method} {candidate} |", " | ".join(texts), f"| {name}, {seed}: {worst:+.1f} |"
            )
    print("\n| method | chosen with all | without one corpus | its mean there | worst corpus |")
    print("|---|---|---|---|---|")
    for method in CANDIDATES:
        tried = {name: found[method][name] for name in CANDIDATES[method] if name in found[method]}
        if len(tried) > 1:
            print(left_out(method, tried))
    show_guarded(store, found)
    show_forecasts(store)


def show_guarded(store: Store, found: dict[str, dict[str, Cells]]) -> None:
    """Markdown: of each guarded run, without it, on held-out labeled sentences, and with it."""
    print("\n| corpus | method | unguarded | on held-out sentences | kept | guarded |")
    print("|---|---|---|---|---|---|")
    for record in store.records():
        if record.spec.guard is not msgspec.UNSET and record.status == "ok":
            candidate, name = _chosen(record), record.dataset[4:]
            alone = found[record.method][candidate].get((name, record.spec.protocol.seed))
            guard = record.trace["guard"]
            held_out = 100 * (guard["method_score"] - guard["baseline_score"])
            result = 0.0 if guard["kept"] == "baseline" else alone
            texts = ["?" if v is None else f"{v:+.1f}" for v in (alone, held_out, result)]
            kept = f"{texts[0]} | {texts[1]} | {guard['kept']} | {texts[2]}"
            print(f"| {name} | {record.method} {candidate} | {kept} |")


def show_forecasts(store: Store, picture: str = "") -> None:
    """Markdown: whether forecasts told the sign of the gain; the picture goes to a file."""
    runs = {
        (r.method, _chosen(r), r.dataset[4:], r.spec.protocol.seed): r
        for r in store.records()
        if r.dataset[4:] in KIND_OF and r.spec.guard is msgspec.UNSET
    }
    cells: list[Cell] = []
    for (method, candidate, corpus, seed), record in sorted(runs.items(), key=lambda item: item[0]):
        base = runs["supervised", CANDIDATES["supervised"][0], corpus, seed]
        if candidate:
            cells += cells_of(method, {seed: record}, {seed: base})
    print(f"\n| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}")
    for row in forecast_rows(cells):
        print(f"| {' | '.join(row)} |")
    if picture:
        Path(picture).write_text(forecast_svg(cells), encoding="utf-8")


def left_out(method: str, candidates: dict[str, Cells]) -> str:
    """A row: the choice with each corpus left out, and what it gives on that corpus."""
    common = set.intersection(*(set(cells) for cells in candidates.values()))
    same = {name: {key: cells[key] for key in common} for name, cells in candidates.items()}
    chosen = {
        corpus: max(same, key=lambda name: average(same[name], corpus))
        for corpus in sorted({corpus for corpus, _ in common})
    }
    gains = {
        corpus: fmean(v for (name, _), v in same[choice].items() if name == corpus)
        for corpus, choice in chosen.items()
    }
    counts = Counter(chosen.values()).most_common()
    others = ", ".join(f"{name} ({n})" for name, n in counts)
    worst = min(gains, key=gains.__getitem__)
    best = max(same, key=lambda name: average(same[name]))
    mean = f"{fmean(gains.values()):+.1f}"
    return f"| {method} | {best} | {others} | {mean} | {worst} {gains[worst]:+.1f} |"


if __name__ == "__main__":
    command, folder, *names = sys.argv[1:]
    if command == "run":
        run(Store(folder), tasks(names))
    elif command == "guard":
        run(Store(folder), guarded_tasks(names))
    elif command == "forecast":
        run(Store(folder), foreseen_tasks(names))
    elif command == "roc":
        show_forecasts(Store(folder), *names)
    else:
        show(Store(folder))
