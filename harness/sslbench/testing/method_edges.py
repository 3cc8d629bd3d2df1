"""Checks of methods: unusual problems, and parameters at the ends of their ranges."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import inspect

from sslbench.engine.corpus import Column, Corpus, CorpusShards, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.experiment.data import Dataset
from sslbench.experiment.data.weak import without_weak

from .cases import LABELED, FittedCase, MethodCase, external_text
from .method_outputs import require_codes, unseen
from .results import CheckFailure, CheckFunction, require


def check_one_label(case: MethodCase) -> None:
    """The labeled sentences may all have one and the same label."""
    dataset = case.toy()
    label = dataset.splits["train"].column("label").vocabulary.strings[0]
    train = _relabeled(without_weak(dataset.splits["train"]), label)
    fitted = case.fit(replace(dataset, splits={**dataset.splits, "train": train}))
    predicted = set(fitted.predicted(dataset.splits["test"]))
    require(
        predicted == {label},
        f"trained on the label {label!r} alone, it predicts {sorted(predicted)}",
    )


def check_one_token(case: MethodCase) -> None:
    """All sentences may have one token only."""
    dataset = case.toy(external=8)
    splits = {name: _first_tokens(corpus) for name, corpus in dataset.splits.items()}
    _train_and_predict(case, replace(dataset, splits=splits, external=None))


def _case(name: str, rule: str, labeled: int | str = LABELED, **sizes: Any) -> CheckFunction:
    """A check that trains on an unusual number of sentences. sizes: see `toy_dataset`."""

    def check(case: MethodCase) -> None:
        unlabeled = sizes.get("unlabeled")
        toy = case.toy(**{key: n for key, n in sizes.items() if key != "unlabeled"})
        _train_and_predict(case, toy, labeled=labeled, unlabeled=unlabeled)

    check.__name__, check.__doc__ = f"check_{name}", rule
    return check


check_one_sentence = _case("one_sentence", "There may be one labeled sentence only.", labeled=1)
check_no_unlabeled_text = _case("no_unlabeled_text", "There may be no unlabeled text.", unlabeled=0)
check_all_labeled = _case("all_labeled", "All sentences of train may be labeled.", labeled="all")
check_no_dev = _case("no_dev", "There may be no development sentences.", dev=0)


def check_unseen_labels(case: MethodCase) -> None:
    """Development sentences may have labels that no labeled sentence has (code -1)."""
    dataset = case.toy()
    dev = _relabeled(dataset.splits["dev"], "S-ZZ" if dataset.encoding == "BMES" else "B-ZZ")
    _train_and_predict(case, replace(dataset, splits={**dataset.splits, "dev": dev}))


def check_unseen_words(case: MethodCase) -> None:
    """Words that occur in no sentence of the problem are tagged."""
    require_codes(case.base, unseen(case))


def check_shards(case: MethodCase) -> None:
    """The unlabeled text may come in several shards."""
    dataset = case.toy(external=30)
    text = external_text(dataset)
    few = CorpusShards(text, text.n_tokens // 3)
    _train_and_predict(case, replace(dataset, external=lambda: few), labeled="all")


def check_parameter_bounds(case: MethodCase) -> None:
    """Every parameter at the end of its range trains, or is refused with a UserError."""
    dataset = case.toy(train=12, dev=2, test=4)
    for name, value in extreme_values(case.cls.Params):
        try:
            fitted = case.fit(dataset, labeled=6, params={name: value})
        except UserError:
            continue
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            raise CheckFailure(f"{name}={value!r}: {text}") from error
        require_codes(fitted, dataset.splits["test"], f" ({name}={value!r})")


def extreme_values(params: type[Any]) -> Iterator[tuple[str, Any]]:
    """(field, value): the ends of its range, every choice, yes and no, None where it is allowed."""
    info = inspect.type_info(params)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        for value in _extremes(field.type):
            yield field.name, value


def _extremes(kind: Any) -> list[Any]:
    if isinstance(kind, inspect.Metadata):
        return _extremes(kind.type)
    if isinstance(kind, inspect.UnionType):
        return [value for part in kind.types for value in _extremes(part)]
    if isinstance(kind, inspect.NoneType):
        return [None]
    if isinstance(kind, inspect.BoolType):
        return [False, True]
    if isinstance(kind, inspect.LiteralType):
        return list(kind.values)
    if isinstance(kind, inspect.IntType):
        return _ends(kind, lambda bound, step: bound + step)
    if isinstance(kind, inspect.FloatType):
        return _ends(kind, lambda bound, step: _beside(bound, step))
    return []


def _ends(kind: Any, beside: Callable[[Any, int], Any]) -> list[Any]:
    """The least and the greatest value of a range, as far as it has them."""
    ends = [bound for bound in (kind.ge, kind.le) if bound is not None]
    if kind.gt is not None:
        ends.append(beside(kind.gt, 1))
    if kind.lt is not None:
        ends.append(beside(kind.lt, -1))
    return ends


def _beside(bound: float, step: int) -> float:
    """A number close to a bound that is itself not allowed, yet not so close that it overflows."""
    return bound + step * 1e-3 * max(1.0, math.fabs(bound))


def _train_and_predict(
    case: MethodCase,
    dataset: Dataset,
    *,
    labeled: int | str = LABELED,
    unlabeled: int | None = None,
) -> FittedCase:
    fitted = case.fit(dataset, labeled=labeled, unlabeled=unlabeled)
    require_codes(fitted, fitted.dataset.splits["test"])
    return fitted


def _relabeled(corpus: Corpus, label: str) -> Corpus:
    vocabulary = Vocabulary([label])
    return corpus.with_column("label", Column(vocabulary, np.zeros(corpus.n_tokens, np.int32)))


def _first_tokens(corpus: Corpus) -> Corpus:
    """The first token of every sentence."""
    first = corpus.offsets[:-1]
    columns = {n: Column(c.vocabulary, c.codes[first]) for n, c in corpus.columns.items()}
    return Corpus(columns, np.arange(corpus.n_sentences + 1))
