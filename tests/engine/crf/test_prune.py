"""Weights of plausible (attribute, label) pairs alone."""

from __future__ import annotations

import numpy as np
import pytest

from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainCRF, HardLabels, TrainingParams
from sslbench.engine.crf.prune import LEAST
from sslbench.engine.errors import UserError
from sslbench.engine.types import F64, Bool
from support.graph_toys import LABELED, STRICT, UNLABELED, Y, crf_over


def pairs_of(crf: ChainCRF, n_labels: int) -> Bool:
    """bool[A, L]: the state weights that there are."""
    layout = crf.layout
    assert layout.state_start is not None
    assert layout.state_label is not None
    found = np.zeros((layout.n_node, n_labels), np.bool_)
    found[np.repeat(np.arange(layout.n_node), np.diff(layout.state_start)), layout.state_label] = 1
    return found


def posterior(rng: np.random.Generator, corpus: Corpus) -> F64:
    """Rows in which labels are on either side of the limit, some exactly on it."""
    p = rng.dirichlet([0.05, 0.05, 0.05], corpus.n_tokens)
    p[0] = [1 - 2 * LEAST, LEAST, LEAST]
    return p


def test_pairs_seen_or_likely_at_a_token_are_kept_with_their_weights() -> None:
    rng = np.random.default_rng(5)
    crf = crf_over(LABELED, Y, UNLABELED, n_labels=3)
    crf.weights[:] = rng.normal(size=len(crf.weights))
    gold, text = crf.encode(LABELED), crf.encode(UNLABELED)
    p = posterior(rng, UNLABELED)
    wanted = np.zeros((4, 3), np.bool_)
    order = {name: i for i, name in enumerate(crf.index.node_text(i) for i in range(4))}
    for x, y in zip(LABELED.column("x").strings(), Y, strict=True):
        wanted[order[f"x[0]={x}"], y] = True
    for x, row in zip(UNLABELED.column("x").strings(), p, strict=True):
        wanted[order[f"x[0]={x}"]] |= row >= LEAST
    assert 0 < wanted.sum() < wanted.size
    small = crf.pruned(gold, Y, [(text, p)])
    np.testing.assert_array_equal(pairs_of(small, 3), wanted)
    state = crf.layout.part(crf.weights, "state").reshape(4, 3)
    np.testing.assert_array_equal(small.layout.part(small.weights, "state"), state[wanted])
    np.testing.assert_array_equal(
        small.weights[small.layout.bounds[1] :], crf.weights[crf.layout.bounds[1] :]
    )
    assert crf.layout.state_start is None  # the old one is as it was


def test_the_kept_weights_score_as_before_when_the_others_are_zero() -> None:
    crf = crf_over(LABELED, Y, UNLABELED, n_labels=3)
    gold, text = crf.encode(LABELED), crf.encode(UNLABELED)
    crf.train([(gold, HardLabels(Y))], TrainingParams(sigma2=4.0), options=STRICT)
    p = np.zeros((UNLABELED.n_tokens, 3))
    first = crf.pruned(gold, Y, [(text, p)])
    state = crf.layout.part(crf.weights, "state").reshape(4, 3)
    state[~pairs_of(first, 3)] = 0.0
    small = crf.pruned(gold, Y, [(text, p)])
    np.testing.assert_allclose(
        small.marginals(small.reencode(text)), crf.marginals(text), atol=1e-14
    )


def test_everything_plausible_is_everything() -> None:
    crf = crf_over(LABELED, Y, UNLABELED)
    crf.weights[:] = np.arange(len(crf.weights))
    parts = [(crf.encode(c), np.full((c.n_tokens, 2), 0.5)) for c in (LABELED, UNLABELED)]
    small = crf.pruned(parts[0][0], Y, parts)
    assert pairs_of(small, 2).all()
    np.testing.assert_array_equal(small.weights, crf.weights)


def test_only_from_weights_for_all_labels() -> None:
    crf = crf_over(LABELED, Y, UNLABELED)
    gold = crf.encode(LABELED)
    small = crf.pruned(gold, Y, [])
    with pytest.raises(UserError, match="state_support=all"):
        small.pruned(small.reencode(gold), Y, [])
