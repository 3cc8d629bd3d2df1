"""Do the tests notice faults? Faults in kernels and methods, each against a few tests.

    python tests/mutations.py            all of them
    python tests/mutations.py prior tie  those whose names begin so

Each fault is one piece of text, replaced in a temporary copy of the packages and tests; then a few
tests run on the copy and must fail. First the same tests must pass without any fault.
Not part of the test suite: kernels with a fault are compiled anew. The exit status is 1 if a fault
survives, 2 if a text does not occur exactly once in its file or if tests fail without a fault.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("harness", "methods", "datasets")


class Fault(NamedTuple):
    """Text in a file, what replaces it, and the tests that must notice."""

    name: str
    file: str
    text: str
    fault: str
    tests: tuple[str, ...]


FAULTS = (
    Fault(
        "backward pass with the forward transitions",
        "harness/sslbench/engine/crf/first_order/packs.py",
        "_backward(T, pack, transitions.ET, mu)",
        "_backward(T, pack, transitions.E, mu)",
        ("tests/engine/crf/test_batch.py::test_one_and_two_tokens[False]",),
    ),
    Fault(
        "products of scales without an upper bound",
        "harness/sslbench/engine/crf/first_order/packs.py",
        " or lanes.largest(product) > LARGE",
        "",
        ("tests/engine/crf/test_batch.py::test_long_sentences[9-0.0-False]",),
    ),
    Fault(
        "backward pass with the forward transitions, one sentence after the other",
        "harness/sslbench/engine/crf/first_order/scaled.py",
        "_backward(transitions.ET, live",
        "_backward(transitions.E, live",
        ("tests/engine/crf/test_batch.py::test_packs_and_one_by_one[3-0.0]",),
    ),
    Fault(
        "scores by position are lost where log space decides",
        "harness/sslbench/engine/crf/first_order/scaled.py",
        "        _put_back(live, saved)",
        "        pass",
        (
            "tests/engine/crf/test_live.py"
            "::test_messages_that_underflow_leave_the_scores_as_they_were",
        ),
    ),
    Fault(
        "marginals of transitions by position with the message of another label",
        "harness/sslbench/engine/crf/first_order/scaled.py",
        "a, b = np.uint64(left[k])",
        "a, b = np.uint64(right[k])",
        ("tests/engine/crf/test_live.py::test_posterior[5-0.0-0.4]",),
    ),
    Fault(
        "edges into the first token are kept",
        "harness/sslbench/engine/crf/first_order/varying.py",
        "own[0, a, b] = 0.0",
        "own[0, a, b] = 1.0",
        ("tests/engine/crf/test_batch.py::test_one_and_two_tokens[True]",),
    ),
    Fault(
        "slopes of bundles are not spread to their attributes",
        "harness/sslbench/engine/crf/objective.py",
        "        slopes.spread(gradient, data)",
        "        pass",
        ("tests/engine/crf/test_bundles.py::test_scores_and_gradients_are_those_without_bundles",),
    ),
    Fault(
        "sums of transitions by position are lost",
        "harness/sslbench/engine/crf/fused_kernels.py",
        "own.pairs[live.left[k], live.right[k]] = thread.live[k]",
        "own.pairs[live.left[k], live.right[k]] = 0.0",
        ("tests/engine/crf/test_fused.py::test_the_same_bits_as_with_the_potentials_of_batches",),
    ),
    Fault(
        "stop scores are missing",
        "harness/sslbench/engine/crf/objective.py",
        "node[batch.offsets[1:] - 1] += tables.stop",
        "pass",
        ("tests/engine/crf/test_weights.py::test_scores[state]",),
    ),
    Fault(
        "prior twice as strong",
        "harness/sslbench/engine/crf/objective.py",
        "subtract_prior(1.0 / self.sigma2, self.weight_copies",
        "subtract_prior(2.0 / self.sigma2, self.weight_copies",
        ("tests/engine/crf/test_objective.py::test_objective_and_gradient[hard-state]",),
    ),
    Fault(
        "normalizer of propagation without nu",
        "methods/sslbench_methods/graph_self_training/algorithm.py",
        "inverse(labeled + nu + coupling * edges.degree)",
        "inverse(labeled + coupling * edges.degree)",
        ("tests/methods/test_graph_self_training_propagation.py::test_g7_after_some_steps",),
    ),
    Fault(
        "tie of neighbors goes to the larger index",
        "harness/sslbench/engine/graph/neighbor_kernels.py",
        "(s == s2 and j > j2)",
        "(s == s2 and j < j2)",
        (
            "tests/engine/graph/test_neighbors.py::test_brute_force_with_ties_negative_values_and_empty_rows",
        ),
    ),
    Fault(
        "virtual evidence without the clamp",
        "harness/sslbench/engine/crf/terms.py",
        "node = potentials.node + self.alpha * np.where(",
        "node = potentials.node + 0.0 * np.where(",
        ("tests/methods/test_virtual_evidence.py::test_the_clamped_posterior",),
    ),
    Fault(
        "M-step of JESS-CM without eta",
        "methods/sslbench_methods/jess_cm/kernels.py",
        "(factor * count + eta) / total[k]",
        "(factor * count) / total[k]",
        ("tests/methods/test_jess_cm_oracles.py::test_m_step_with_prior",),
    ),
    Fault(
        "exponentiated gradient goes uphill",
        "methods/sslbench_methods/graph_pr/e_step.py",
        "combine(1.0 - eta, at, -eta * self.lam",
        "combine(1.0 - eta, at, eta * self.lam",
        ("tests/methods/test_graph_pr_oracles.py::test_p2_one_step_in_three_spaces",),
    ),
    Fault(
        "conlleval joins chunks of unlike types",
        "harness/sslbench/engine/corpus/encodings.py",
        "& (types[1:] == types[:-1])\n        & ((own == I)",
        "& ((own == I)",
        ("tests/experiment/test_metrics.py::test_conlleval_table",),
    ),
)


def copy(folder: Path) -> None:
    skip = shutil.ignore_patterns("__pycache__", "benchmarks")
    for name in (*PACKAGES, "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", folder)


def passes(folder: Path, tests: Sequence[str]) -> bool:
    """Run tests on a copy of the packages; stop if they cannot be run."""
    path = os.pathsep.join(str(folder / name) for name in PACKAGES)
    cache = str(folder.parent / "cache")  # kernels that a fault does not change are compiled once
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", *tests],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        print(done.stdout + done.stderr, file=sys.stderr)
        sys.exit(2)
    return done.returncode == 0


def noticed(fault: Fault, folder: Path) -> bool:
    path = folder / fault.file
    source = path.read_text(encoding="utf-8")
    if source.count(fault.text) != 1:
        times = source.count(fault.text)
        print(f"{fault.name}: {fault.text!r} stands {times} times in {fault.file}", file=sys.stderr)
        sys.exit(2)
    path.write_text(source.replace(fault.text, fault.fault), encoding="utf-8")
    try:
        return not passes(folder, fault.tests)
    finally:
        path.write_text(source, encoding="utf-8")


def main(names: Sequence[str]) -> int:
    chosen = [fault for fault in FAULTS if not names or fault.name.startswith(tuple(names))]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "copy")
        copy(folder)
        if not passes(folder, [test for fault in chosen for test in fault.tests]):
            print("the tests fail without a fault", file=sys.stderr)
            return 2
        survived = 0
        for fault in chosen:
            begin = time.perf_counter()
            caught = noticed(fault, folder)
            survived += not caught
            seconds = time.perf_counter() - begin
            print(
                f"{'caught' if caught else 'SURVIVED':8}  {fault.name} ({seconds:.0f} s)",
                flush=True,
            )
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
