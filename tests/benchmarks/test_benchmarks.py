"""sslbench beside python-crfsuite: the same sentences, the same attributes, the same weights.

`sslbench bench` runs these on the whole corpus and prints a table. In a plain run of the tests they
take a few sentences and only show that both sides do the same work.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from problem import ROUNDS, TEMPLATES, Figure, Text

from sslbench.engine.compilation.threads import number_of_threads
from sslbench.engine.crf import HardLabels, Objective
from sslbench.engine.features import TemplateFeaturizer, load_template_file
from sslbench.plugins import registry

pytest.importorskip(
    "pycrfsuite", reason="python-crfsuite is not installed: no peer to compare with"
)

import ours
import peer
from traces import Trace

HERE = Path(__file__).parent
ITERATIONS = 8  # for what does not depend on them: L-BFGS has its six pairs of vectors then
TOLERANCE = 1e-4


def timed(benchmark: Any, work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Median seconds of the work after one unmeasured round; not a number when not measuring."""
    benchmark.pedantic(work, rounds=rounds, iterations=1, warmup_rounds=1)
    return float(benchmark.stats.stats.median) if benchmark.enabled else float("nan")


def conjunctions(featurizer: TemplateFeaturizer) -> list[peer.Conjunction]:
    """Templates as the peer's builder of strings takes them (an edge template as any other)."""
    place = {"word": 0, "pos": 1}
    return [tuple((a.offset, place[a.column]) for a in t.atoms) for t in featurizer.templates]


# -- attributes ------------------------------------------------------------------------------------
@pytest.fixture(scope="session")
def chunk39() -> TemplateFeaturizer:
    featurizer: TemplateFeaturizer = registry().featurizer("chunk39").load()()
    assert len(featurizer.templates) == 38
    return featurizer


FEATURES = "features: 38 templates, columns to ids / to strings"


def test_features_ours(benchmark: Any, figure: Figure, text: Text, chunk39: Any) -> None:
    def work() -> object:
        return chunk39.index(text.train).encode(text.train)

    figure(FEATURES, "s", ours=timed(benchmark, work))


def test_features_peer(benchmark: Any, figure: Figure, text: Text, chunk39: Any) -> None:
    sentences, templates = list(peer.read_sentences(str(text.train_file))), conjunctions(chunk39)

    def work() -> None:
        for sentence in sentences:
            peer.attributes(sentence, templates)

    figure(FEATURES, "s", peer=timed(benchmark, work))


def test_both_sides_get_the_same_attributes(text: Text, chunk39: TemplateFeaturizer) -> None:
    index = chunk39.index(text.train)
    attributes = index.encode(text.train)
    flat = itertools.chain.from_iterable(
        peer.attributes(sentence, conjunctions(chunk39))
        for sentence in itertools.islice(peer.read_sentences(str(text.train_file)), 40)
    )
    node = [t for t in chunk39.templates if not t.edge]
    for n, strings in enumerate(flat):
        values = [string.partition("=")[2] for string in strings]
        wanted = [v for v, t in zip(values, chunk39.templates, strict=True) if not t.edge]
        texts = [index.node_text(int(i)) for i in attributes.node[:, n]]
        assert [t.partition("=")[2] for t in texts] == wanted
        assert [t.partition("=")[0] for t in texts] == list(map(str, node))


# -- training --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Trainings:
    """Both trained to convergence; seconds before training, from columns in memory."""

    ours: Trace
    peer: Trace
    prepare_ours: float
    prepare_peer: float
    crf: ours.ChainCRF
    codes: ours.I32
    model: str


@pytest.fixture(scope="session")
def trainings(text: Text, tmp_path_factory: pytest.TempPathFactory) -> Trainings:
    from time import perf_counter

    model = str(tmp_path_factory.mktemp("model") / "peer.crfsuite")
    sentences = list(peer.read_sentences(str(text.train_file)))
    began = perf_counter()
    trainer = peer.load(sentences, peer.read_templates(str(TEMPLATES)))
    loaded = perf_counter()
    theirs = peer.train(trainer, model)
    del trainer
    featurizer = load_template_file(TEMPLATES, ours.COLUMNS)
    crf, codes = ours.prepare(text.train, featurizer)
    ours.train(crf, text.train, codes)  # compile
    ready = perf_counter()
    crf, codes = ours.prepare(text.train, featurizer)
    prepared = perf_counter()
    mine = ours.train(crf, text.train, codes)
    return Trainings(mine, theirs, prepared - ready, loaded - began, crf, codes, model)


def test_training_to_the_same_objective(trainings: Trainings, figure: Figure) -> None:
    mine, theirs = trainings.ours, trainings.peer
    assert mine.n_weights == theirs.n_weights
    target = max(mine.final, theirs.final) * (1 + 1e-9)
    # Neither may stop more than the tolerance above the other.
    assert target <= min(mine.final, theirs.final) * (1 + TOLERANCE)
    close = min(mine.final, theirs.final) * (1 + TOLERANCE)
    times = mine.time_to(close), theirs.time_to(close)
    figure("training: attributes to the same objective", "s", ours=times[0], peer=times[1])
    whole = times[0] + trainings.prepare_ours, times[1] + trainings.prepare_peer
    figure("training: columns to the same objective", "s", ours=whole[0], peer=whole[1])
    figure(
        "training: evaluations in all",
        "",
        ours=float(mine.evaluations),
        peer=float(theirs.evaluations),
    )
    figure("training: objective reached", "", ours=mine.final, peer=theirs.final)


def test_one_evaluation(benchmark: Any, trainings: Trainings, text: Text, figure: Figure) -> None:
    crf = trainings.crf
    objective = Objective(
        crf.layout, [(crf.encode(text.train), HardLabels(trainings.codes))], ours.SIGMA2
    )
    gradient = np.empty_like(crf.weights)
    seconds = timed(benchmark, lambda: objective.value_and_gradient(crf.weights, gradient))
    figure("objective and gradient, once", "s", ours=seconds, peer=trainings.peer.per_evaluation)
    value = objective.value_and_gradient(crf.weights, gradient)
    assert -value == pytest.approx(trainings.ours.final, rel=1e-9)
    figure(
        "training, per evaluation or pass",
        "s",
        ours=trainings.ours.per_evaluation,
        peer=trainings.peer.per_evaluation,
    )


def test_optimizer_alone(benchmark: Any, trainings: Trainings, figure: Figure) -> None:
    """Seconds per iteration on as many weights where the function itself costs next to nothing."""
    from time import perf_counter

    from scipy.optimize import minimize as scipy_minimize

    from sslbench.engine.crf.optim.lbfgs import Options, minimize

    n, iterations = len(trainings.crf.weights), 15
    curvature = np.random.default_rng(0).uniform(1.0, 100.0, n)

    def function(x: Any, gradient: Any) -> float:
        np.multiply(curvature, x, out=gradient)
        return 0.5 * float(gradient @ x)

    def both(x: Any) -> tuple[float, Any]:
        gradient = np.empty_like(x)
        return function(x, gradient), gradient

    options = Options(max_iterations=iterations, gtol=0.0, ftol=0.0)
    ours_s = timed(benchmark, lambda: minimize(function, np.ones(n), options))
    began = perf_counter()
    found = scipy_minimize(
        both,
        np.ones(n),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": iterations, "maxcor": options.memory, "ftol": 0.0, "gtol": 0.0},
    )
    theirs_s = perf_counter() - began
    assert found.nit == iterations
    figure(
        "optimizer alone, per iteration (peer: scipy)",
        "s",
        ours=ours_s / iterations,
        peer=theirs_s / iterations,
    )


# -- tagging ---------------------------------------------------------------------------------------
TAGGING = "tagging: columns to labels"
DECODING = "tagging: attributes to labels"


def test_tagging_ours(benchmark: Any, trainings: Trainings, text: Text, figure: Figure) -> None:
    bare = text.test.drop("label")
    seconds = timed(benchmark, lambda: trainings.crf.predict(bare))
    figure(TAGGING, "us/token", ours=1e6 * seconds / bare.n_tokens)


def test_tagging_peer(benchmark: Any, trainings: Trainings, text: Text, figure: Figure) -> None:
    sentences = list(peer.read_sentences(str(text.test_file)))
    templates, tagger = peer.read_templates(str(TEMPLATES)), peer.tagger(trainings.model)

    def work() -> list[list[str]]:
        return [tagger.tag(peer.attributes(sentence, templates)) for sentence in sentences]

    figure(TAGGING, "us/token", peer=1e6 * timed(benchmark, work) / text.test.n_tokens)
    labels = np.array(trainings.crf.labels)[trainings.crf.predict(text.test.drop("label"))]
    same = labels == np.array([label for row in work() for label in row])
    assert same.mean() > 0.995  # two optima within the tolerance of each other


def test_decoding_ours(benchmark: Any, trainings: Trainings, text: Text, figure: Figure) -> None:
    data = trainings.crf.encode(text.test)
    seconds = timed(benchmark, lambda: trainings.crf.decode(data))
    figure(DECODING, "us/token", ours=1e6 * seconds / text.test.n_tokens)


def test_decoding_peer(benchmark: Any, trainings: Trainings, text: Text, figure: Figure) -> None:
    templates, tagger = peer.read_templates(str(TEMPLATES)), peer.tagger(trainings.model)
    items = [
        peer.attributes(sentence, templates)
        for sentence in peer.read_sentences(str(text.test_file))
    ]
    seconds = timed(benchmark, lambda: [tagger.tag(item) for item in items])
    figure(DECODING, "us/token", peer=1e6 * seconds / text.test.n_tokens)


# -- memory ----------------------------------------------------------------------------------------
def test_peak_memory(text: Text, figure: Figure, tmp_path: Path) -> None:
    peaks = {}
    for side in ("ours", "peer"):
        words = [str(HERE / f"{side}.py"), str(text.train_file), str(TEMPLATES), str(ITERATIONS)]
        done = subprocess.run(
            [sys.executable, *words, str(tmp_path / "model")],
            capture_output=True,
            text=True,
            check=True,
        )
        peaks[side] = json.loads(done.stdout)["peak_mb"]
        assert peaks[side] > 1
    figure("peak memory: file to trained model", "MB", **peaks)


# -- JESS-CM ---------------------------------------------------------------------------------------
def test_jess_cm_unlabeled_pass(
    benchmark: Any, text: Text, figure: Figure, chunk39: TemplateFeaturizer
) -> None:

    from sslbench.engine.corpus import CorpusShards
    from sslbench.engine.corpus.units import TextUnits
    from sslbench.experiment.context.context import RunContext
    from sslbench.experiment.inputs.problem import Problem, relabeled
    from sslbench_methods.jess_cm.method import JessCM, Trainer
    from sslbench_methods.jess_cm.models import EmbeddedModels

    labeled = relabeled(text.train.select(np.arange(min(500, text.train.n_sentences))))
    raw = CorpusShards(text.train.drop("label"))
    problem = Problem(
        "spans",
        "IOB2",
        tuple(labeled.column("label").vocabulary.strings),
        labeled,
        raw,
        None,
        chunk39,
        ours.ChainModel(),
    )
    params = JessCM.Params(max_iterations=20)
    units = TextUnits(raw)
    models = EmbeddedModels.build(chunk39.templates, len(problem.labels), units, 2)
    crf = problem.crf(params, n_factors=models.n_models)
    trainer = Trainer(crf, models, problem, units, params, RunContext(0))
    trainer.round(1)  # tables that are not uniform
    trainer.fit_weights()
    seconds = timed(benchmark, lambda: models.expected_counts(crf, units), min(ROUNDS, 3))
    cores = min(number_of_threads(), ours.cores())
    figure(
        "JESS-CM: one pass of unlabeled text",
        "us/token/core",
        ours=1e6 * seconds * cores / raw.n_tokens,
    )
    counts = models.expected_counts(crf, units)
    assert counts.chain.sum() == pytest.approx(raw.n_tokens)
