"""Label constraints on text."""

from __future__ import annotations

import numpy as np

from sslbench.engine.corpus import Column, Vocabulary
from sslbench_datasets.ud.load import PUNCTUATION
from support.graph_oracle import WORDS, he2013_excludes
from support.label_constraints import CONSTRAINT, labeled
from support.texts import corpus_of


def test_a_token_is_constrained_if_all_its_characters_are() -> None:
    text = labeled([["..", "a.", ":", "A"], ["", ",!?;"]], "ABCPAB")
    assert CONSTRAINT.applies(text).tolist() == [True, False, True, False, False, True]
    imposed = CONSTRAINT.impose(text)
    assert imposed.column("label").strings() == ["P", "B", "P", "P", "A", "P"]
    assert text.column("label").strings() == list("ABCPAB")
    assert CONSTRAINT.forced_labels(text, ("A", "P")).tolist() == [1, -1, 1, -1, -1, 1]
    assert CONSTRAINT.forced_labels(text, ("A", "B")).tolist() == [-1] * 6
    codes = np.array([0, 0, 0, 0, 0, 1], np.int32)
    assert CONSTRAINT.apply_to(codes, text, ("A", "P")).tolist() == [1, 0, 1, 0, 0, 1]
    assert CONSTRAINT.apply_to(codes, text, ("A", "B")).tolist() == codes.tolist()


def test_a_label_that_the_text_lacks_is_imposed_all_the_same() -> None:
    text = corpus_of([["."]]).with_column("label", Column(Vocabulary("A"), [0]))
    imposed = CONSTRAINT.impose(text).column("label")
    assert imposed.strings() == ["P"]
    assert text.column("label").vocabulary.strings == ["A"]


def test_the_treebanks_constrain_the_tokens_outside_of_the_papers_graph() -> None:
    words = [*WORDS, "?!", "a.b", "-", "(", ".-"]
    assert PUNCTUATION.applies(corpus_of([words])).tolist() == list(map(he2013_excludes, words))
    assert PUNCTUATION.label == "."
