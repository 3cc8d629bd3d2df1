"""Posterior regularization with bounds of a file: the E-step by enumeration, the file's errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from sslbench.engine.corpus import CorpusShards
from sslbench.engine.errors import UserError
from sslbench.engine.types import F64
from sslbench.testing.cases import FittedCase, method_case
from sslbench.testing.toys import toy_dataset
from sslbench_methods.constraints.bounds import Bounds, read_lines
from sslbench_methods.constraints.method import ConstrainedPosterior

LINES = """
# every sentence has a verb, and few of anything
sentence\tV\tat least 1
sentence\tN D\tat most 1
word.lower=rid\tP N\tat least 0.75
word.suffix1=n\tV\tat most .2
word=nowhere\tV\tat least 1
"""


def fitted(path: Path, lines: str = LINES, **params: Any) -> FittedCase:
    file = path / "bounds.tsv"
    file.write_text(lines)
    given = {"constraints": str(file), "ftol": 1e-9, **params}
    return method_case("posterior_constraints", given, ()).fit(toy_dataset(), labeled=12)


def test_rows_by_loops(tmp_path: Path) -> None:
    case = fitted(tmp_path, rounds=1)
    file = tmp_path / "bounds.tsv"
    bounds = Bounds.of(read_lines(str(file)), case.problem, str(file))
    text, labels = next(iter(case.problem.unlabeled)), case.problem.labels
    n, S, words = text.n_tokens, text.n_sentences, text.column("word").strings()
    q = np.random.default_rng(0).dirichlet(np.ones(len(labels)), n)
    at = {label: labels.index(label) for label in labels}
    sentences = [range(text.offsets[i], text.offsets[i + 1]) for i in range(S)]
    expected = [sum(q[t, at["V"]] for t in sentence) for sentence in sentences]
    expected += [sum(q[t, at["N"]] + q[t, at["D"]] for t in sentence) for sentence in sentences]
    ba = [t for t in range(n) if words[t].lower() == "rid"]
    ends = [t for t in range(n) if words[t].endswith("n") and len(words[t]) > 0]
    expected += [sum(q[t, at["P"]] + q[t, at["N"]] for t in ba)] if ba else []
    expected += [sum(q[t, at["V"]] for t in ends)]
    assert bounds.counts(q) == pytest.approx(np.array(expected))
    assert bounds.size.tolist() == [1] * (2 * S) + ([len(ba)] if ba else []) + [len(ends)]
    mu = np.random.default_rng(1).random(len(expected))
    # scores and counts are transposed maps
    assert (bounds.scores(mu) * q).sum() == pytest.approx(
        float((bounds.sign * mu) @ bounds.counts(q))
    )
    lack = bounds.lack(bounds.counts(q))
    assert lack[0] == pytest.approx(max(0.0, 1 - expected[0]))
    assert lack[S] == pytest.approx(max(0.0, expected[S] - 1))
    assert lack[-1] == pytest.approx(max(0.0, expected[-1] / len(ends) - 0.2))


def test_the_e_step_by_enumeration(tmp_path: Path) -> None:
    """q minimizes KL(q || p) + penalty sum n lack^2 over all distributions of label sequences."""
    penalty, labels = 0.7, "DNPV"
    case = fitted(tmp_path, rounds=1)
    crf, text = case.own_tagger, next(iter(case.problem.unlabeled))
    lines = "sentence\tV\tat least 2\nsentence\tN D\tat most 0.5\nword.suffix1=n\tP\tat least 0.9\n"
    file = tmp_path / "few.tsv"
    file.write_text(lines)
    short = text.select(np.flatnonzero(text.lengths <= 3)[:2])
    assert short.n_sentences == 2
    problem = replace(case.problem, unlabeled=CorpusShards(short))
    bounds = Bounds.of(read_lines(str(file)), problem, str(file))
    assert tuple(problem.labels) == tuple(labels)
    encoded = problem.encode(crf)
    posterior = ConstrainedPosterior(bounds, penalty)
    arrays, facts = posterior.minimized(crf, encoded)
    data = encoded.unlabeled[0]
    sequences, log_p = [], []
    for i, best in enumerate(crf.n_best(data, 4**3)):
        sequences.append(best.labels)
        log_p.append(best.log_probability)
        assert len(best.labels) == 4 ** int(short.lengths[i])
    sizes = [len(each) for each in log_p]

    def marginals(parts: list[F64]) -> F64:
        rows: list[list[float]] = []
        for q, paths, length in zip(parts, sequences, short.lengths, strict=True):
            every = range(int(length))
            rows += [[q[paths[:, t] == label].sum() for label in range(4)] for t in every]
        return np.array(rows)

    def regularized(z: F64) -> float:
        parts = [np.exp(part - np.logaddexp.reduce(part)) for part in np.split(z, sizes[:1])]
        kl = sum(
            float(q @ (np.log(np.maximum(q, 1e-300)) - p))
            for q, p in zip(parts, log_p, strict=True)
        )
        lack = bounds.lack(bounds.counts(marginals(parts)))
        return kl + penalty * float(bounds.size @ lack**2)

    found = minimize(regularized, np.concatenate(log_p), method="BFGS", options={"gtol": 1e-7})
    evidence = bounds.scores(arrays["mu"])
    best = np.split(found.x, sizes[:1])
    expected = marginals([np.exp(part - np.logaddexp.reduce(part)) for part in best])
    assert crf.marginals(data, evidence) == pytest.approx(expected, abs=2e-3)
    value, slope, _ = posterior.dual(arrays["mu"], crf, encoded)
    free, _, _ = posterior.dual(np.zeros(len(bounds.bound)), crf, encoded)
    assert value - free == pytest.approx(found.fun, rel=1e-4)  # no gap of duality
    assert facts["lack"] < facts["lack_model"]
    assert (arrays["mu"] > 0).any()
    step = 1e-5 * np.eye(len(slope))[0]
    up, down = (posterior.dual(arrays["mu"] + s * step, crf, encoded)[0] for s in (1, -1))
    assert (up - down) / 2e-5 == pytest.approx(slope[0], abs=1e-4)


def test_bounds_that_hold_change_little_and_true_ones_help(tmp_path: Path) -> None:
    data = toy_dataset(train=200, test=100)
    gold, test = data.splits["train"], data.splits["test"]
    words, labels = gold.column("word").strings(), gold.column("label").strings()
    by_word: dict[str, list[str]] = {}
    for word, label in zip(words, labels, strict=True):
        by_word.setdefault(word, []).append(label)
    lines = []
    for word, own in sorted(by_word.items()):
        for label in sorted(set(own)):
            share = own.count(label) / len(own)
            lines.append(f"word={word}\t{label}\tat least {share - 0.02:.3f}".replace("-0", "0"))
    file = tmp_path / "true.tsv"
    file.write_text("\n".join(lines))

    def right(method: str, **params: Any) -> float:
        case = method_case(method, {"ftol": 1e-7, **params}, ()).fit(data, labeled=6)
        answers = test.column("label").strings()
        return float(np.mean([a == b for a, b in zip(case.predicted(test), answers, strict=True)]))

    plain = right("supervised")
    assert right("posterior_constraints", constraints=str(file), weight=10.0) > plain + 0.03


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("sentence\tV", "no constraint"),
        ("sentence\tV\tat least", "no constraint"),
        ("sentence\tV\tabout 1", "no constraint"),
        ("sentence\t\tat least 1", "no constraint"),
        ("sentence\tV\tat least nan", "no constraint"),
        ("sentence\tV\tat least -1", "no constraint"),
        ("the\tV\tat least 1", "no constraint"),
        ("word=the\tV\tat least 1\tmore", "no constraint"),
        ("word=the\tV\tat least 1.5", "no share"),
        ("sentence\tVERB\tat least 1", "no label 'VERB'"),
        ("stem=the\tV\tat least 1", "no column 'stem'"),
        ("word.lowr=the\tV\tat least 1", "no column 'word.lowr'"),
    ],
)
def test_lines_that_cannot_be_read_are_named(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as error:
        fitted(tmp_path, f"# bounds\n{line}\n")
    assert "bounds.tsv, line 2" in str(error.value) or error.value.line == 2


def test_a_file_without_lines_and_no_file(tmp_path: Path) -> None:
    for lines in ("", "# nothing\n"):
        with pytest.raises(UserError, match="no constraint"):
            fitted(tmp_path, lines)
