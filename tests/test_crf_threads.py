"""Oracle 16: the number of threads changes no bit of objective, gradient, fit or prediction.

The numbers come from a process of its own with four threads, whatever the machine and the
environment of the test run: ``python test_crf_threads.py`` prints them.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from sslbench.corpus import Column, Corpus, Vocabulary
from sslbench.crf import ChainCRF, ChainModel, HardLabels, Objective, Options, PartialLabels
from sslbench.features import TemplateFeaturizer
from sslbench.types import I32

LABELS = ("a", "b", "c", "d", "e")
SENTENCES, THREADS = 2000, (1, 2, 4)
STATE = ("word[0]", "word[-1]", "word[1]", "bag: word[-4..-2]")
TEMPLATES = {"shared": STATE, "varying": (*STATE, "edge: word[0]", "edge: word[-1]|word[0]")}


def text() -> tuple[Corpus, I32]:
    rng = np.random.default_rng(0)
    offsets = np.cumsum([0, *rng.integers(1, 10, SENTENCES)])
    n = offsets[-1]
    words = np.where(rng.random(n) < 0.5, rng.zipf(1.5, n) % 100, rng.integers(0, 8000, n))
    labels = ((words + (rng.random(n) < 0.2)) % len(LABELS)).astype(np.int32)
    vocabulary = Vocabulary(map(str, range(8000)))
    return Corpus({"word": Column(vocabulary, words)}, offsets), labels


def bits(*arrays: np.ndarray) -> str:
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()


def facts(crf: ChainCRF, corpus: Corpus, labels: I32) -> dict[str, object]:
    """What may not depend on the number of threads."""
    rng = np.random.default_rng(1)
    data = crf.encode(corpus)
    allowed = rng.random((len(labels), len(LABELS))) < 0.5
    allowed[np.arange(len(labels)), labels] = True
    weights, gradient = rng.normal(size=crf.layout.size), np.empty(crf.layout.size)
    out: dict[str, object] = {"blocks": len(data.blocks), "weights": crf.layout.size}
    terms = {
        "labels": HardLabels(labels),
        "weighted": HardLabels(labels, rng.random(SENTENCES)),
        "partial": PartialLabels(allowed),
    }
    for name, term in terms.items():
        objective = Objective(crf.layout, [(data, term)], 3.0)
        out[name] = objective.value_and_gradient(weights, gradient).hex()
        out[f"{name}, gradient"] = bits(gradient)
    crf.weights[:] = 0.0
    result = crf.train([(data, terms["labels"])], 3.0, options=Options(max_iterations=8))
    out["fit"] = [result.iterations, result.evaluations, result.objective.hex(), bits(crf.weights)]
    out["predictions"] = bits(crf.predict(corpus), crf.marginals(data))
    return out


def main() -> None:
    corpus, labels = text()
    out: dict[str, dict[str, object]] = {}
    for name, templates in TEMPLATES.items():
        support = "observed" if name == "varying" else "all"
        crf = ChainModel().prepare(
            TemplateFeaturizer(templates), corpus, labels, LABELS, state_support=support
        )
        for threads in THREADS:
            numba.set_num_threads(threads)
            assert numba.get_num_threads() == threads
            out[f"{name} {threads}"] = facts(crf, corpus, labels)
    print(json.dumps(out))


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, object]]:
    run = subprocess.run(
        [sys.executable, __file__], capture_output=True, text=True, check=True,
        env={**os.environ, "NUMBA_NUM_THREADS": str(max(THREADS))},
    )  # fmt: skip
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("threads", THREADS[1:])
def test_threads_change_no_bit(found: dict, name: str, threads: int) -> None:
    one, many = found[f"{name} 1"], found[f"{name} {threads}"]
    assert one["blocks"] > 1
    assert one["weights"] > 16_384  # more than one chunk of `kernels.vectors`
    for key, value in one.items():
        assert many[key] == value, key


if __name__ == "__main__":
    main()
