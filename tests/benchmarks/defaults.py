"""What should a parameter be if nobody sets it? Candidates for each task, on development parts.

    PYTHONPATH=tests python -m benchmarks.defaults run STORE [TASK ...] [METHOD ...]
    PYTHONPATH=tests python -m benchmarks.defaults show STORE [TASK ...]

The first makes missing records, the second prints the tables of docs/defaults.md. A TASK is
tagging, spans, segmentation or joint; without one, all.

Each corpus is cut: train without its development part, which is the test here. The test splits of
the corpora are not in the data that runs see. 100 labeled sentences, 500 others without labels.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from statistics import fmean
from typing import Any

import numpy as np

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.planning.description import method_description
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.planning.settings import PLAIN, method_params
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import content_id
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest
from sslbench.experiment.run.runner import execute
from sslbench.plugins import Registry, registry
from sslbench.plugins.registered import Origin
from sslbench.plugins.registrations import DatasetInfo

#: by task the corpora
KINDS = {
    "tagging": "ud_el ud_en ud_sv wsj_sample nps_chat questions ocr",
    "spans": "conll00 conll03 bc2gm bc5cdr wikigold ebm_nlp",
    "segmentation": "zh_gsd zh_zx",
    "joint": "zh_gsd_tags zh_zx_tags",  # the same with the tags of words
}
KIND_OF = {corpus: kind for kind, names in KINDS.items() for corpus in names.split()}
#: runs on characters with tags take ten times as long as others: one draw, and without the method
#: of which a run takes four to ten minutes
ONE_DRAW = ("joint",)
TOO_DEAR = {"joint": ("hybrid",)}
SEEDS, LABELED, UNLABELED, LARGEST_TEST = (0, 1), 100, 500, 1000
_TYPES = "eta=0.5 alpha=0.4 rounds=3"
_PAIRS = "similarity=he2013 neighbors=60 symmetry=mutual"
_PR = "lam=1 em_iters=6 m_iterations=30"
_EVIDENCE = f"{_PAIRS} normalize=true alpha=2 rounds=6"


def _with_priors(*texts: str) -> tuple[str, ...]:
    """Each of the settings with three variances of the prior."""
    priors = ("", "sigma2=100", "sigma2=1000")
    return tuple(f"{text} {prior}".strip() for text in texts for prior in priors)


#: by method the values that a default is chosen from, as texts of settings; "" = its own defaults
CANDIDATES: dict[str, tuple[str, ...]] = {
    "supervised": (*_with_priors(""), "sigma2=1", "sigma2=300", "sigma2=10000"),
    "graph_self_training": _with_priors("", f"{_TYPES} {_PAIRS}"),
    "graph_pr": _with_priors("", _PR),
    "jess_cm": (*_with_priors("", "sign=free"), "eta=1"),
    "virtual_evidence": (*_with_priors("", _EVIDENCE), "alpha=1.5"),
    "entropy_regularization": _with_priors("", "gamma=0.01"),
    "self_training": (*_with_priors(""), "weight=0.03 sigma2=100", "weight=0.3 sigma2=100"),
    "type_self_training": _with_priors("", _TYPES),
    "graph_lift": (*_with_priors(""), "eta=0.3", "eta=3"),
    "pr1": _with_priors("", "lam=1"),
    "word_vectors": _with_priors(""),
    "brown_clusters": _with_priors(""),
    "generalized_expectation": _with_priors(""),
    "aso_semi": _with_priors(""),
    "selective_self_training": (
        *_with_priors(""),
        "select=share sigma2=100",
        "select=threshold sigma2=100",
    ),
    # their trainings do not say whether they converged
    "tri_training": ("", "sigma2=100"),
    "hybrid": ("", "sigma2=100"),
}
SORTED = ("ocr",)  # by spelling
FEATURES = {"ocr": "pixels3"} | dict.fromkeys(KINDS["segmentation"].split(), "zh_char")
TAGS = "_tags"


#: part of the warning of a training that did not converge
OPEN = "before it converged"


class Loaders:
    """A loader of each corpus, as an attribute: the target of a registration names it."""

    def __getattr__(self, corpus: str) -> Any:
        return partial(load, corpus)


loaders = Loaders()


def registered(corpus: str) -> DatasetInfo:
    """What is registered of the whole corpus."""
    return registry().dataset(corpus.removesuffix(TAGS))


def load(corpus: str, home: DataHome) -> Dataset:
    """The corpus with a development part as its test."""
    info = registered(corpus)
    whole: Dataset = info.load()(DataHome(None, dataset=info.name))
    train, dev = whole.splits["train"], whole.splits.get("dev")
    if dev is None:  # the last fifth of train
        order = np.arange(train.n_sentences)
        if corpus in SORTED:
            order = np.random.default_rng(0).permutation(order)
        first = train.n_sentences - train.n_sentences // 5
        train, dev = train.select(order[:first]), train.select(order[first:])
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
        info = registered(corpus)
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
            featurizer=FEATURES.get(corpus, info.featurizer if kind == "joint" else "basic"),
            protocol="train without a development part, which is the test",
            files=info.files,
            graph=info.graph,
        )
        if ("datasets", cut.name) not in found.origins:
            found.add("datasets", cut, Origin("study", "sslbench", ""))
    return found


def tasks(kinds: Sequence[str], methods: Sequence[str]) -> Iterator[RunTask]:
    """The runs: seed by seed, the papers' methods first."""
    for seed in SEEDS:
        for method in methods:
            for text in CANDIDATES[method]:
                own = [kind for kind in studied(method, kinds) if seed in seeds(kind)]
                yield from planned(method, text, seed, corpora(own))


def studied(method: str, kinds: Sequence[str]) -> list[str]:
    """The kinds of tasks that a method is studied on."""
    return [kind for kind in kinds if method not in TOO_DEAR.get(kind, ())]


def seeds(kind: str) -> tuple[int, ...]:
    """The draws of a kind of tasks."""
    return SEEDS[:1] if kind in ONE_DRAW else SEEDS


def corpora(kinds: Sequence[str]) -> list[str]:
    """The corpora of some kinds of tasks."""
    return [corpus for corpus, kind in KIND_OF.items() if kind in kinds]


def planned(method: str, text: str, seed: int, names: Sequence[str]) -> Iterator[RunTask]:
    """The runs of a candidate with a seed."""
    for corpus in names:
        request = RunRequest(
            method=[method],
            dataset=[f"dev_{corpus}"],
            seeds=[seed],
            labeled=LABELED,
            unlabeled=UNLABELED,
            params=[f"{method}.{each}" for each in _settings(text, registered(corpus).graph)],
            preset=PLAIN,
            threads=1,
        )
        yield from plan(request, store=None, plugins=plugins(), notice=lambda text: None)


def run(store: Store, made: Iterator[RunTask]) -> None:
    """Make the missing records, in this process."""
    for task in made:
        if store.load(task.spec.run_id) is None:
            record = execute(task, plugins())
            score = record.error if record.score is None else f"{100 * record.score:.2f}"
            print(record.cpu_s, task.spec.method, task.spec.dataset, score, flush=True)
            store.save(record)


Gains = dict[str, tuple[float, ...]]  # points over `supervised` as it was, by corpus and seed


def read(
    store: Store, kinds: Sequence[str]
) -> tuple[dict[str, dict[str, Gains]], dict[str, list[str]]]:
    """Gains by method and candidate; by method the candidates that may be chosen.

    These are the ones whose trainings converge, but for a tenth of the runs; else the plain one.
    KeyError if a record is missing.
    """
    records = {
        _key(r.method, r.dataset, r.spec.protocol.seed, r.params): r for r in store.records()
    }
    scores: dict[str, dict[str, Gains]] = defaultdict(dict)
    settled: dict[str, list[str]] = defaultdict(list)
    for method, texts in CANDIDATES.items():
        own = studied(method, kinds)
        for text in texts if own else ():
            cells = {
                corpus: [
                    records[_key(method, f"dev_{corpus}", s, params)]
                    for s in seeds(KIND_OF[corpus])
                ]
                for corpus, params in _params_by_corpus(method, text, own).items()
            }
            scores[method][text] = {
                corpus: tuple(100 * (record.score or 0.0) for record in found)
                for corpus, found in cells.items()
            }
            runs = [record for found in cells.values() for record in found]
            open_ones = sum(any(OPEN in line for line in record.warnings) for record in runs)
            settled[method] += [text] * (open_ones <= len(runs) / 10)
    base = scores["supervised"][""]
    gains = {
        method: {text: _differences(cells, base) for text, cells in candidates.items()}
        for method, candidates in scores.items()
    }
    return gains, {method: settled[method] or [""] for method in gains}


def _key(method: str, dataset: str, seed: int, params: Mapping[str, Any]) -> str:
    return content_id([method, dataset, seed, params])


def _params_by_corpus(method: str, text: str, kinds: Sequence[str]) -> dict[str, dict[str, Any]]:
    found = registry()
    own = method_description(found, method, {}).params
    by_corpus = {}
    for corpus in corpora(kinds):
        graph = registered(corpus).graph
        by_corpus[corpus] = own | method_params(_settings(text, graph), found, method, PLAIN, graph)
    return by_corpus


def _settings(text: str, graph: Mapping[str, Any]) -> list[str]:
    """The settings of a candidate; what a corpus says of its graph goes before them."""
    return [each for each in text.split() if each.split("=")[0] not in graph]


def _differences(cells: Gains, base: Gains) -> Gains:
    return {
        name: tuple(x - y for x, y in zip(values, base[name], strict=True))
        for name, values in cells.items()
    }


@cache
def families(kind: str) -> dict[str, list[str]]:
    """The corpora of a kind by family."""
    found: dict[str, list[str]] = defaultdict(list)
    for corpus in KINDS[kind].split():
        found[registered(corpus).family or corpus].append(corpus)
    return found


def mean(cells: Gains, kind: str, names: Sequence[str] | None = None) -> float:
    """The mean over families, all or these, of the means over corpora."""
    by_family = families(kind)
    chosen = by_family if names is None else names
    return fmean(fmean(fmean(cells[each]) for each in by_family[name]) for name in chosen)


def show(store: Store, kinds: Sequence[str]) -> None:
    """Markdown: gains by family; what is chosen without each family, and what it gives there."""
    found, settled = read(store, kinds)
    columns = [(kind, name) for kind in kinds for name in families(kind)]
    heads = [name for _, name in columns]
    print("| method, candidate |", " | ".join([*heads, *kinds, "worst run"]), "|")
    print("|---|" + "---:|" * (len(heads) + len(kinds)) + "---|")
    for method, candidates in found.items():
        own = studied(method, kinds)
        for text, cells in candidates.items():
            row = [mean(cells, kind, [name]) if kind in own else None for kind, name in columns]
            row += [mean(cells, kind) if kind in own else None for kind in kinds]
            worst = min(cells, key=lambda name: min(cells[name]))
            texts = " | ".join("" if value is None else f"{value:+.1f}" for value in row)
            print(f"| {method} {shown(text)} | {texts} | {worst} {min(cells[worst]):+.1f} |")
    print("\n| task | method | chosen | mean | without one family | mean there | worst family |")
    print("|---|---|---|---:|---|---:|---|")
    for kind in kinds:
        for method, candidates in found.items():
            if kind in studied(method, kinds):
                possible = {text: candidates[text] for text in settled[method]}
                print(left_out(kind, method, possible))


def shown(text: str) -> str:
    """A candidate with the graph of He et al. in one word."""
    return text.replace(_PAIRS, "he2013").strip()


def left_out(kind: str, method: str, candidates: dict[str, Gains]) -> str:
    """A row: the choice with each family left out, and what it gives on that family."""
    names = list(families(kind))

    def best(part: Sequence[str]) -> str:
        return max(candidates, key=lambda text: mean(candidates[text], kind, part))

    chosen, rest = best(names), {}
    if len(names) > 1:
        rest = {name: best([other for other in names if other != name]) for name in names}
    found = {name: mean(candidates[text], kind, [name]) for name, text in rest.items()}
    counts = Counter(shown(text) or "plain" for text in rest.values()).most_common()
    others = "; ".join(f"{text} ({number})" for text, number in counts)
    worst = min(found, key=found.__getitem__) if found else ""
    there = f"{fmean(found.values()):+.2f} | {worst} {found[worst]:+.1f}" if found else " | "
    gain = mean(candidates[chosen], kind)
    return f"| {kind} | {method} | {shown(chosen) or 'plain'} | {gain:+.2f} | {others} | {there} |"


if __name__ == "__main__":
    command, folder, *names = sys.argv[1:]
    chosen = [name for name in KINDS if name in names] or list(KINDS)
    if command == "run":
        methods = [name for name in CANDIDATES if name in names] or list(CANDIDATES)
        run(Store(folder), tasks(chosen, methods))
    else:
        show(Store(folder), chosen)
