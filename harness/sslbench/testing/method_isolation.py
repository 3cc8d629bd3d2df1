"""Checks of methods: nothing but the problem, the parameters and the seed decides the result."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
import numpy as np

from sslbench.engine.corpus import Corpus, CorpusShards
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.inputs.problem import Problem
from sslbench.experiment.planning.values import file_params

from .cases import LABELED, MethodCase, external_text, require_same
from .guard import Watch, no_datasets, watched
from .results import CheckFailure, CheckSkipped, require
from .toys import with_hidden_permuted

#: share of the predicted labels that may change with the order of sentences: sums are rounded
ROUNDING = 0.01


def check_hidden_labels(case: MethodCase) -> None:
    """Permuting the labels that are hidden from the method changes nothing that it does."""
    for dataset in [case.toy(), _transductive(case), *case.datasets]:
        labeled = "all" if dataset.transductive else LABELED
        fitted = case.fit(dataset, labeled=labeled)
        other = with_hidden_permuted(dataset, fitted.trained.sample.drawn.hidden)
        changed_fit = case.fit(other, labeled=labeled)
        require_same(
            changed_fit.evidence, fitted.evidence, f"with hidden labels permuted{_on(dataset)}"
        )


def check_files(case: MethodCase) -> None:
    """`fit` and `predict` read only files that parameters name, no dataset, and no network.

    Code, the package of the method, ``run.cache`` and files written in the same training may be
    read, too.
    """
    watch = Watch.of_module(case.cls.__module__, DataHome())
    named = (case.params.get(name) for name in file_params(case.cls.Params))
    watch.allow(*(Path(path) for path in named if path))

    error: Exception | None = None
    with tempfile.TemporaryDirectory() as folder:
        watch.allow(Path(folder))
        try:
            fitted = case.fit(case.toy(), cache=Path(folder), inside=partial(_closed, watch))
            with _closed(watch):
                fitted.predicted(fitted.dataset.splits["test"])
        except Exception as problem:  # whatever a refused file leads to; the watch has the reason
            error = problem
    if watch.refused:
        raise CheckFailure(f"the method {'; '.join(watch.refused)}") from error
    if error is not None:
        raise error


def check_threads(case: MethodCase) -> None:
    """One and two threads give the same bits."""
    dataset = case.toy(train=160)  # text of several blocks, in which sums are reduced
    one, two = (case.fit(dataset, labeled=40, threads=threads) for threads in (1, 2))
    require_same(two.evidence, one.evidence, "with 2 threads instead of 1")
    if numba.config.NUMBA_NUM_THREADS < 2:  # type: ignore[attr-defined]  # set when imported
        raise CheckSkipped("the loops of numba had one thread: start with NUMBA_NUM_THREADS=2")


def check_seed(case: MethodCase) -> None:
    """The same seed gives the same bits again, also when derived data is in the cache."""
    with tempfile.TemporaryDirectory() as folder:
        for when in ("with the same seed again", "with a filled cache"):
            changed_fit = case.fit(case.toy(), cache=Path(folder))
            require_same(changed_fit.evidence, case.base.evidence, when)


def check_global_random_state(case: MethodCase) -> None:
    """The global random states of Python and numpy are neither used nor changed.

    A thread of another library may draw while a method is fitted, so that only a change that is
    seen in each of two fits is the method's.
    """
    changed = _global_states_changed_by_fit(case)
    if changed:
        changed = [name for name in _global_states_changed_by_fit(case) if name in changed]
    names = " and of ".join(changed)
    require(not changed, f"fit() changes the global state of {names}; use run.rng")


def _global_states_changed_by_fit(case: MethodCase) -> list[str]:
    states: list[Any] = []

    @contextmanager
    def seeded() -> Iterator[None]:
        before = random.getstate(), np.random.get_state()  # noqa: NPY002
        random.seed(17)
        np.random.seed(17)  # noqa: NPY002
        marks = _random_state()
        try:
            yield
            states.append((marks, _random_state()))
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])  # noqa: NPY002

    changed_fit = case.fit(case.toy(), inside=seeded)
    require_same(changed_fit.evidence, case.base.evidence, "with other global random states")
    ((before, after),) = states
    names = ("random", "numpy.random")
    return [name for name, a, b in zip(names, before, after, strict=True) if a != b]


def check_sentence_order(case: MethodCase) -> None:
    """The order of the unlabeled sentences does not matter to a method that declares so.

    The declaration is the class attribute ``order_invariant = True``. One predicted label in a
    hundred may differ, since sums are rounded in another order.
    """
    if not getattr(case.cls, "uses_unlabeled", True):
        raise CheckSkipped("it does not read unlabeled text")
    if not getattr(case.cls, "order_invariant", False):
        raise CheckSkipped(f"{case.cls.__name__} does not declare order_invariant = True")
    dataset = case.toy(external=40)
    expected = case.fit(dataset, labeled="all")
    text = external_text(dataset)
    order = np.random.default_rng(2).permutation(text.n_sentences)
    for ids in (order, order[::-1]):
        shuffled = CorpusShards(text.select(ids))
        other = replace(dataset, external=partial(_same, shuffled))
        changed_fit = case.fit(other, labeled="all")
        _require_nearly_same(
            changed_fit.predicted(text), expected.predicted(text), "the unlabeled text"
        )
        test = dataset.splits["test"]
        _require_nearly_same(changed_fit.predicted(test), expected.predicted(test), "test")


def check_inputs_unchanged(case: MethodCase) -> None:
    """`fit` does not change the problem, `predict` does not change the corpus."""
    before: dict[str, str] = {}
    fitted = case.fit(case.toy(), before=lambda problem: before.update(_digests(problem)))
    after = _digests(fitted.problem)
    for name, digest in before.items():
        require(after.get(name) == digest, f"fit() changes {name}")
    test = fitted.dataset.splits["test"].drop("label")
    digests = _corpus_digests("test", test)
    fitted.tagger.predict(test)
    for name, value in _corpus_digests("test", test).items():
        require(digests[name] == value, f"predict() changes {name} of the corpus that it is given")


def _transductive(case: MethodCase) -> Dataset:
    """A toy whose test sentences are the unlabeled text."""
    dataset = case.toy(train=LABELED)
    text = dataset.splits["test"].drop("label")
    return replace(dataset, external=lambda: CorpusShards(text), transductive=True)


def _same(shards: CorpusShards) -> CorpusShards:
    return shards


def _on(dataset: Dataset) -> str:
    return "" if dataset.name == "toy" else f" on {dataset.name}"


@contextmanager
def _closed(watch: Watch) -> Iterator[None]:
    with no_datasets(watch), watched(watch):
        yield


def _random_state() -> tuple[str, str]:
    kind, keys, *rest = np.random.get_state(legacy=True)  # noqa: NPY002
    return repr(random.getstate()), repr((kind, np.asarray(keys).tobytes(), rest))


def _require_nearly_same(actual: list[str], expected: list[str], what: str) -> None:
    changed = sum(a != b for a, b in zip(actual, expected, strict=True))
    require(
        changed <= ROUNDING * len(expected),
        f"with the unlabeled sentences in another order, {changed} of {len(expected)}"
        f" predicted labels of {what} differ",
    )


def _digests(problem: Problem) -> dict[str, str]:
    """A digest of every array and vocabulary of a problem, by name."""
    digests = _corpus_digests("problem.labeled", problem.labeled)
    for number, shard in enumerate(problem.unlabeled):
        digests |= _corpus_digests(f"problem.unlabeled[{number}]", shard)
    if problem.dev is not None:
        digests |= _corpus_digests("problem.dev", problem.dev)
    digests["problem.labels"] = _digest(repr(problem.labels).encode())
    digests["problem.featurizer"] = _digest(repr(problem.featurizer.templates).encode())
    if problem.transition_mask is not None:
        digests["problem.transition_mask"] = _digest(problem.transition_mask.tobytes())
    return digests


def _corpus_digests(name: str, corpus: Corpus) -> dict[str, str]:
    digests = {f"{name}.offsets": _digest(corpus.offsets.tobytes())}
    for key, column in corpus.columns.items():
        where = f"{name}.column({key!r})"
        digests[f"{where}.codes"] = _digest(column.codes.tobytes())
        digests[f"{where}.vocabulary"] = _digest("\0".join(column.vocabulary.strings).encode())
    return digests


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
