"""What a tagger returns is checked before it is scored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sslbench.experiment.inputs.problem import predicted
from support.texts import corpus_of

CORPUS = corpus_of([["a", "b"], ["c"]])


class Tagger:
    def __init__(self, codes: Any, labels: Any = ("A", "B")) -> None:
        self.labels = labels
        self.codes = codes

    def predict(self, _corpus: object) -> Any:
        return self.codes


def test_codes_of_any_integer_type() -> None:
    for dtype in (np.int8, np.int64, np.uint16):
        codes = predicted(Tagger(np.array([1, 0, 1], dtype)), CORPUS)
        assert codes.dtype == np.int32
        assert codes.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "labels", [("A", "A"), ("A", None), ("A", 1), (b"A", "B"), ("A", float("nan")), [["A"], ["B"]]]
)
def test_labels_that_are_no_distinct_texts(labels: Any) -> None:
    with pytest.raises(RuntimeError, match="no distinct texts"):
        predicted(Tagger(np.array([0, 0, 0]), labels), CORPUS)


@pytest.mark.parametrize(
    "codes",
    [
        [0, 1, 0],
        (0, 1, 0),
        None,
        np.array([0.0, 1.0, 0.0]),
        np.array([np.nan, 0.0, 0.0]),
        np.array([False, True, False]),
        np.array(["0", "1", "0"]),
        np.array([0, 1, None], object),
        np.array([0, 1]),
        np.array([[0, 1, 0]]),
        np.array([0, 1, 2]),
        np.array([0, -1, 0]),
        np.array([0, 2**32, 0]),
    ],
    ids=repr,
)
def test_arrays_that_are_no_codes(codes: Any) -> None:
    with pytest.raises(RuntimeError, match=r"predict\(\) gave"):
        predicted(Tagger(codes), CORPUS)
