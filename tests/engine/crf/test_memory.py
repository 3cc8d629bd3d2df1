"""Memory of long sentences, in a process of its own: O(T L) in every form, never O(T L^2)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from sslbench.engine.crf.memory import check_weights
from sslbench.engine.errors import UserError
from support import peak_memory

# Each call is made with a short sentence before, which compiles its kernels.
CODE = """
import json
import numpy as np
from sslbench.engine.crf.data import Batch
from sslbench.engine.crf.entropy import BatchEntropy
from sslbench.engine.crf.first_order.batch import BatchPotentials
from support.log_space_chain import Potentials, negative_entropy
from support.peak_memory import extra_bytes

def batch(T, scale, L=100):
    rng = np.random.default_rng(0)
    cut = Batch(0, T, 0, 1, np.array([0, T]))
    return BatchPotentials(cut, scale * rng.normal(size=(T, L)), rng.normal(size=(1, L, L)))

def chain(T, L=150):
    rng = np.random.default_rng(0)
    return Potentials(rng.normal(size=(T, L)), rng.normal(size=(1, L, L)))

found = {}
for name, call in {
    "posterior": lambda p: p.posterior(),
    "entropy": lambda p: BatchEntropy.build(p, np.ones(1)),
}.items():
    for scale in (1, 1000):
        call(batch(3, scale))
        long = batch(4000, scale)
        found[f"{name}, scale {scale}"] = extra_bytes(lambda: call(long))
negative_entropy(chain(2), per_position=False)
long = chain(5000)
found["entropy gradient"] = extra_bytes(lambda: negative_entropy(long, per_position=False))
print(json.dumps(found))
"""


@pytest.mark.skipif(not peak_memory.KNOWN, reason="reads the peak from /proc")
def test_long_sentences() -> None:
    """In log space too: T L is 3.2 MB here, T L^2 320 MB; of the last one 6 MB and 900 MB."""
    path = os.pathsep.join(sys.path)
    run = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_NUM_THREADS": "1", "PYTHONPATH": path},
    )
    found = json.loads(run.stdout)
    assert len(found) == 5
    assert {name: extra for name, extra in found.items() if extra > 100e6} == {}


@pytest.mark.parametrize(
    ("order", "observed", "hint"),
    [
        (1, False, "set state_support=observed, or raise min_count"),
        (1, True, "raise min_count"),
        (2, False, "use --model crf1, or fewer labels"),
    ],
)
def test_a_model_that_does_not_fit_names_what_would(order: int, observed: bool, hint: str) -> None:
    with pytest.raises(UserError, match=r"1500 labels would take .* GiB of memory") as caught:
        check_weights(10**12, 1500, order, observed=observed)
    assert str(caught.value).endswith(f"; {hint}")
