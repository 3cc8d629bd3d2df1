"""Decoding of the supervised CRF."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sslbench.engine.crf import ChainCRF, read_model
from sslbench.experiment.context.context import RunContext
from sslbench.taggers import PosteriorTagger
from sslbench_methods.supervised import KIND, Supervised
from support.graph_problems import random_problem


def test_posterior_decoding_takes_the_likeliest_label_of_each_token(tmp_path: Path) -> None:
    problem = random_problem(7)
    method = Supervised()
    crf = method.fit(problem, Supervised.Params(sigma2=0.3), RunContext())
    params = Supervised.Params(sigma2=0.3, decoding="posterior")
    tagger = method.fit(problem, params, RunContext())
    assert isinstance(crf, ChainCRF)
    assert isinstance(tagger, PosteriorTagger)
    np.testing.assert_array_equal(tagger.crf.weights, crf.weights)
    (text, *_) = problem.unlabeled
    wanted = crf.predict_marginals(text).argmax(axis=1)
    np.testing.assert_array_equal(tagger.predict(text), wanted)
    assert (wanted != crf.predict(text)).any()  # else the test says nothing
    tagger.save(tmp_path / "model")
    kind, arrays, facts = read_model(tmp_path / "model")
    assert kind == KIND
    np.testing.assert_array_equal(Supervised.restore(arrays, facts).predict(text), wanted)
