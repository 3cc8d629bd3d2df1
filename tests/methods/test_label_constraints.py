"""Every method obeys label constraints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sslbench.engine.corpus.codecs import PreviousType
from sslbench.engine.crf import ChainCRF, read_model
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.data import Dataset
from sslbench.experiment.inputs.problem import Problem, relabeled
from sslbench.experiment.inputs.protocol import Sample
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import ProtocolSpec, RunSpec
from sslbench.experiment.run.fitting import Session
from sslbench.plugins import registry
from support.graph_problems import random_problem
from support.label_constraints import CONSTRAINT, labeled

pytestmark = pytest.mark.usefixtures("own_cache")


METHODS = (
    *("supervised", "self_training", "jess_cm", "graph_self_training"),
    *("type_self_training", "virtual_evidence", "entropy_regularization", "graph_pr"),
    *("pr1", "graph_propagation", "gp_crf"),
)
FAST = {
    "neighbors": 4,
    "symmetry": "mutual",
    "rounds": 2,
    "em_iters": 2,
    "max_iterations": 20,
    "gamma": 0.1,
    "eta": 0.5,
}


def constrained(problem: Problem) -> Problem:
    """The problem with a label constraint, as the harness gives it to methods."""
    labeled = relabeled(CONSTRAINT.impose(problem.labeled))
    assert tuple(labeled.column("label").vocabulary.strings) == problem.labels
    return replace(problem, labeled=labeled, label_constraint=CONSTRAINT)


def fitted(name: str, problem: Problem, **options: Any) -> Any:
    method = registry().method(name).load()
    own = {k: v for k, v in {**FAST, **options}.items() if k in method.Params.__struct_fields__}
    return method().fit(problem, method.Params(**own), RunContext())


def restored(path: Path) -> Any:
    kind, arrays, facts = read_model(path)
    engine = kind == "chain_crf"
    restore = ChainCRF.from_arrays if engine else registry().method(kind).load().restore
    return restore(arrays, facts)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_obeys_also_after_it_was_saved(name: str, tmp_path: Path) -> None:
    # "." is labeled nowhere: no method has learned what it is
    problem = constrained(random_problem(3, marks=(",",)))
    fit = fitted(name, problem)
    (text, *_) = problem.unlabeled
    marks = CONSTRAINT.applies(text)
    assert marks.any()
    predicted = fit.predict(text)
    assert {fit.labels[code] for code in predicted[marks]} == {"P"}
    assert {fit.labels[code] for code in predicted[~marks]} != {"P"}
    fit.save(tmp_path / "model")
    assert restored(tmp_path / "model").predict(text).tolist() == predicted.tolist()


def test_labels_spread_to_vertices_do_not_overrule(tmp_path: Path) -> None:
    # the templates of Subramanya et al. have punctuation in the graph
    problem = constrained(random_problem(4, marks=(",",)))
    for name in ("graph_propagation", "gp_crf"):
        fit = fitted(name, problem, similarity="subramanya2010")
        fit.save(tmp_path / "model")
        (text, *_) = problem.unlabeled
        for tagger in (fit, restored(tmp_path / "model")):
            assert {tagger.labels[c] for c in tagger.predict(text)[CONSTRAINT.applies(text)]} == {
                "P"
            }


def test_the_harness_hands_out_a_sample_that_agrees() -> None:
    text = labeled([["a", ","], ["b", "."], ["c", "!"], ["a"]], "ACBCCAA")
    dataset = Dataset(
        "d", "tagging", "accuracy", None, {"train": text, "test": text}, label_constraint=CONSTRAINT
    )
    spec = RunSpec(
        method="supervised",
        dataset="d",
        featurizer="basic",
        model="crf1",
        params={},
        protocol=ProtocolSpec(labeled=4, seed=0),
    )
    sample = Sample.of(spec, dataset)
    session = Session.open(RunTask(spec, "accuracy"), registry())
    problem = session.problem(sample, sample.drawn.labeled)
    assert problem.label_constraint == CONSTRAINT
    assert problem.labels == ("A", "B", "C", "P")
    assert problem.labeled.column("label").strings() == list("APBPCPA")
    # what is scored stays as it is
    assert sample.dataset.splits["test"].column("label").strings() == list("ACBCCAA")


def test_none_under_a_codec() -> None:
    with pytest.raises(ValueError, match="codec"):
        constrained(random_problem(3)).coded(PreviousType(("O",)))
