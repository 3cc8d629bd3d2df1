"""The canaries: small runs that together execute every method, and each part of the engine.

Trainings are converged (`EXACT`) or stop after a few iterations, so that labels do not hang on the
last bits, which depend on the processor: with `sigma2` times 1 + 1e-12 they should be the same.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec

from canaries.data import SIZES, plugins, user_file
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.planning.settings import PLAIN
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.request.request import RunRequest
from sslbench.experiment.run.runner import execute

EXACT = ("ftol=1e-10",)
_SYNTH = tuple(f"synth.{name}={value}" for name, value in SIZES.items())
_FEW = {"labeled": 40, "unlabeled": 80}


def _on(dataset: str, method: str, *settings: str, **given: Any) -> dict[str, Any]:
    own = _SYNTH if dataset == "synth" else ()
    return {
        **_FEW,
        "method": [method],
        "dataset": [dataset],
        "params": [*own, *settings],
        "tune": 0,
        **given,
    }


def _synth(method: str, *settings: str, **given: Any) -> dict[str, Any]:
    return _on("synth", method, *settings, **given)


def _chunks(method: str, *settings: str, **given: Any) -> dict[str, Any]:
    return _on("canary_chunks", method, *settings, **given)


def _weak(method: str, *settings: str, **given: Any) -> dict[str, Any]:
    return _on("canary_weak", method, *settings, **given)


def _letters(method: str, *settings: str, **given: Any) -> dict[str, Any]:
    return _on("canary_letters", method, *settings, **given)


def _joint(method: str, *settings: str, **given: Any) -> dict[str, Any]:
    return _on("canary_joint", method, *settings, **given)


#: With a weak prior, the iteration at which a training meets its tolerance hangs on the last bits:
#: BLAS with and without AVX-512 (OPENBLAS_CORETYPE=SkylakeX, Haswell) gave other labels.
_SHORT = ("max_iterations=5", "m_iterations=5")
_GRAPH = ("neighbors=5", "symmetry=union")
#: the graph decides more than the chain
_STRONG = (*_GRAPH, "alpha=0.1", "eta=1", "nu=0.1")

#: fields of the request of each run, by name
RUNS: dict[str, dict[str, Any]] = {
    # the engine: orders, decoding, optimizer, kinds of features
    "first order": _synth("supervised", *EXACT),
    "second order": _synth("supervised", *EXACT, model="crf2"),
    "a few iterations": _synth("supervised", "max_iterations=5"),
    "decoding by posteriors": _synth("supervised", *EXACT, "decoding=posterior", "sigma2=1"),
    "rare features left out": _synth("supervised", *EXACT, "min_count=2", "state_support=observed"),
    "chunks": _chunks("supervised", *EXACT, labeled="all"),
    "chunks, second order": _chunks("supervised", *EXACT, model="crf2"),
    "pixels": _letters("supervised", *EXACT),
    "pixels, second order": _letters("supervised", *EXACT, featurizer="pixels", model="crf2"),
    "pixels, discounted": _letters("supervised", *EXACT, featurizer="pixels3_discounted"),
    "words and tags": _joint("supervised", "max_iterations=30"),
    "words and tags, second order": _joint("supervised", "max_iterations=30", model="crf2"),
    "segmentation": _on("canary_segmented", "supervised", *EXACT),
    # featurizers
    **{
        f"featurizer {name}": _synth("supervised", *EXACT, featurizer=name)
        for name in ("basic", "pos_adapt", "pos_window", "gene2005")
    },
    "featurizer ner79": _chunks("supervised", *EXACT, featurizer="ner79"),
    # the protocol: text, folds, tuning, the guard, a user's file
    "external text": _synth("self_training", *EXACT, text="external", labeled="all"),
    "all text, in tokens": _synth("self_training", text="all", unlabeled="700t", labeled="15%"),
    "another draw": _synth("supervised", *EXACT, seeds=[3]),
    "folds": _synth("supervised", *EXACT, folds=3),
    "tuned": _synth("self_training", *EXACT, tune=4),
    "tuned without dev": _synth("supervised", "synth.dev=0", *EXACT, tune=3),
    "guarded": _synth("graph_propagation", guard=True),
    "a file": {"method": ["supervised"], "columns": ("word", "label"), "tune": 0, "labeled": 60},
    # methods
    "self-training": _synth("self_training", *EXACT),
    "self-training, preset": _synth("self_training", preset="paper"),
    "self-training, second order": _chunks("self_training", "rounds=2", model="crf2"),
    "types": _synth("type_self_training", "rounds=3", "feature_pruning=none"),
    "graph self-training": _synth("graph_self_training", *_STRONG, "rounds=2", "mu=3"),
    "graph self-training, preset": _synth("graph_self_training", "rounds=2", preset="paper"),
    "graph self-training, solved": _synth(
        "graph_self_training", *_STRONG, "rounds=1", "propagation=optimum", "similarity=he2013"
    ),
    "graph self-training, centered": _synth(
        "graph_self_training",
        *("rounds=2", "transitions=centered", "count=graph", "edge_count=twice"),
        *_STRONG,
    ),
    "graph lift": _synth("graph_lift", "similarity=subramanya2010_listed"),
    "virtual evidence": _synth("virtual_evidence", *_GRAPH, "rounds=4", "alpha=3"),
    "virtual evidence, preset": _synth("virtual_evidence", "rounds=3", preset="paper"),
    "virtual evidence, l1": _synth("virtual_evidence", "rounds=3", "penalty=l1", "solver=direct"),
    "virtual evidence, l1sq": _synth(
        "virtual_evidence", "rounds=2", "penalty=l1sq", "normalize=true", "base_rates=kept"
    ),
    "virtual evidence, characters": _joint(
        "virtual_evidence", "rounds=2", "max_iterations=30", labeled=60
    ),
    "graph propagation": _synth("graph_propagation", *_GRAPH),
    "graph propagation, in steps": _synth("graph_propagation", "similarity=zeng2013", "mode=gd"),
    "chain of propagated labels": _synth("gp_crf", *EXACT, *_GRAPH),
    "graph regularization": _synth("graph_pr", *_GRAPH, "em_iters=2", "lam=1"),
    "graph regularization, preset": _synth(
        "graph_pr", "em_iters=2", "lam=1", *_SHORT, preset="paper"
    ),
    "graph regularization, released": _synth(
        "graph_pr", "em_iters=2", "lam=1", "schedule=release", "warm=carry"
    ),
    "a label in each sentence": _synth("pr1", "penalty=label_in_sentence", "lam=30"),
    "graph regularization, one round": _synth("pr1", *_GRAPH, "lam=1"),
    "entropy": _synth("entropy_regularization", *EXACT, "gamma=0.1"),
    "entropy, preset": _synth("entropy_regularization", preset="paper"),
    "entropy of tokens": _synth(
        "entropy_regularization", *EXACT, "gamma=0.05", "entropy_of=token", "anneal=geometric"
    ),
    **{
        f"self-training, selected by {select}": _synth(
            "selective_self_training", *EXACT, "rounds=2", f"select={select}"
        )
        for select in ("label", "threshold", "share")
    },
    "co-training": _synth("co_training", *EXACT, "rounds=2"),
    "jess_cm": _synth("jess_cm", *EXACT, "rounds=3"),
    "jess_cm, chunks": _chunks("jess_cm", "sign=free", "rounds=2"),
    "jess_cm, lambda": _synth("jess_cm", "m_step=lambda", "unknown=neutral", "rounds=2"),
    "hybrid": _synth("hybrid", *EXACT, "rounds=3"),
    "hybrid, preset": _synth("hybrid", "rounds=2", preset="paper"),
    "expectations": _synth("generalized_expectation", "joint_iterations=30"),
    "expectations alone": _synth(
        "generalized_expectation", "joint_iterations=20", "likelihood=false"
    ),
    "tri-training": _synth("tri_training", *EXACT, "rounds=3", "weight=0.1"),
    "tri-training by token": _synth(
        "tri_training", "rounds=2", "unit=token", "disagreement=true", "conditions=none"
    ),
    "subspace": _synth("aso_semi", "aso_words=30", "aso_size=8", "aso_min_count=2"),
    "pivots": _synth("structural_correspondence", "aso_words=30", "aso_size=8", "aso_min_count=2"),
    "clusters": _synth("brown_clusters", *EXACT, "clusters=20"),
    "vectors": _synth("word_vectors", *EXACT, "dimensions=6"),
    "vectors, by signs": _synth("word_vectors", *EXACT, "vector_form=signs", "dimensions=6"),
    "vectors, by clusters": _synth(
        "word_vectors", *EXACT, "vector_form=clusters", "vector_clusters=12", "dimensions=6"
    ),
    "pipeline": _joint("pipeline_st", *EXACT),
    "cluster features": _joint("cluster_features", "coarse=4", "fine=8", "cluster_min_count=2"),
    "votes": _weak("weak_vote", *EXACT),
    "fuzzy labels": _weak("fuzzy_crf", *EXACT),
    "noisy channel": _weak("noisy_channel", *EXACT, "rounds=2"),
    "trust": _weak("weak_trust", *EXACT, "folds=3"),
    **{
        f"soft targets, {name}": _weak("weak_soft", *EXACT, f"label_model={name}")
        for name in ("crf", "dawid_skene", "hmm", "vote")
    },
    # features learned from text, for any method
    "with clusters": _synth(
        "self_training", "brown_clusters.clusters=20", text_features=["brown_clusters"]
    ),
    "with vectors": _chunks(
        "supervised", "word_vectors.dimensions=6", *EXACT, text_features=["word_vectors"]
    ),
    "with a subspace": _synth(
        "self_training",
        "rounds=2",
        *("aso_semi.aso_words=30", "aso_semi.aso_size=8", "aso_semi.aso_min_count=2"),
        *EXACT,
        text_features=["aso_semi"],
    ),
    "with pivots": _synth(
        "self_training",
        "rounds=2",
        "structural_correspondence.aso_words=30",
        "structural_correspondence.aso_size=8",
        *EXACT,
        text_features=["structural_correspondence"],
    ),
}


def make(name: str, threads: int = 1) -> RunRecord:
    """The record of a canary, trained in this process."""
    with tempfile.TemporaryDirectory() as folder:
        fields = dict(RUNS[name])
        if name == "a file":
            fields["data"] = user_file(Path(folder))
        known = plugins()
        # Settings of a canary stand beside the same defaults on every task.
        request = RunRequest(**{"preset": PLAIN, **fields}, threads=threads)
        (task,) = plan(request, store=None, plugins=known, notice=lambda text: None)
        record = execute(msgspec.structs.replace(task, threads=threads), known)
    assert record.status == "ok", f"{name}: {record.error}"
    return record
