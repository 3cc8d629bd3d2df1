"""scikit-learn's checks of estimators.

Those that fit nothing run as they are. The others fit tables of numbers; `test_checks_of_trainings`
asks the same of sentences.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks

from sslbench.sklearn import CRF, SequenceTagger
from support.synth_text import synth_text

TEXT = synth_text(30, 0)
Y = TEXT.sentences("label")
WORDS = TEXT.sentences("word")
DICTS = [[{"word": word, "length": float(len(word))} for word in row] for row in WORDS]
ESTIMATORS = [
    pytest.param(SequenceTagger, {}, WORDS, id="SequenceTagger"),
    pytest.param(SequenceTagger, {"method": "self_training"}, WORDS, id="self_training"),
    pytest.param(CRF, {"max_iterations": 20}, DICTS, id="CRF"),
]
#: those that fit nothing
OF_PARAMETERS = [
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]


@pytest.mark.parametrize("name", OF_PARAMETERS)
@pytest.mark.parametrize("kind", [SequenceTagger, CRF])
def test_checks_of_parameters(kind: Callable[..., Any], name: str) -> None:
    check = getattr(estimator_checks, name, None)
    if check is None:
        pytest.skip(f"this scikit-learn has no {name}")
    check(kind.__name__, kind())


@pytest.mark.parametrize(("kind", "params", "text"), ESTIMATORS)
def test_checks_of_trainings(kind: Callable[..., Any], params: Any, text: list[Any]) -> None:
    estimator = kind(**params)
    with pytest.raises(NotFittedError):
        estimator.predict(text)
    before, given, labels = estimator.get_params(), copy.deepcopy(text), copy.deepcopy(Y)
    assert estimator.fit(text, Y) is estimator
    own = {name for name in vars(estimator) if not name.startswith("_")}
    assert {name for name in own if not name.endswith("_")} == set(before), "fit sets a parameter"
    assert estimator.get_params() == before
    assert (text, Y) == (given, labels), "fit changes its arguments"

    first, state = estimator.predict(text), estimator.predict_proba(text)
    assert set(vars(estimator)) >= own
    order = np.random.default_rng(0).permutation(len(text))
    shuffled = estimator.predict([text[i] for i in order])
    assert list(shuffled) == [first[i] for i in order], "the order of sentences matters"
    parts = [*estimator.predict(text[:7]), *estimator.predict(text[7:])]
    assert parts == list(first), "a part has other labels"

    def same(other: Any) -> bool:
        proba = other.predict_proba(text)
        return all(np.array_equal(a, b) for a, b in zip(proba, state, strict=True))

    assert same(pickle.loads(pickle.dumps(estimator)))  # noqa: S301
    assert same(estimator.fit(text, Y)), "a second fit differs"
    assert same(clone(estimator).fit(text, Y)), "a clone differs"
    assert estimator.fit(text[:20], Y[:20]).predict(text[:1]) is not None
    assert not same(estimator), "a fit on fewer sentences keeps the tagger of before"
