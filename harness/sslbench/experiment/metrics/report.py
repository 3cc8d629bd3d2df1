"""Scores in the format of conlleval.pl."""

from __future__ import annotations

from sslbench.experiment.metrics.scoring import Scores


def conlleval_report(scores: Scores) -> str:
    """The text that conlleval.pl prints for these scores; ValueError if chunks were not counted."""
    counts = scores.counts
    chunks = (counts.gold_chunks, counts.predicted_chunks, counts.correct_chunks)
    gold, predicted, correct = (None if count is None else int(count.sum()) for count in chunks)
    if gold is None:
        raise ValueError("no chunks were counted")
    percent = {name: 100 * value for name, value in scores.metrics.items()}
    lines = [
        f"processed {int(counts.n_tokens.sum())} tokens with {gold} phrases; "
        f"found: {predicted} phrases; correct: {correct}.",
        f"accuracy: {percent['accuracy']:6.2f}%; precision: {percent['precision']:6.2f}%; "
        f"recall: {percent['recall']:6.2f}%; FB1: {percent['f1']:6.2f}",
    ]
    for name, row in scores.types.items():
        p, r, f = 100 * row.precision, 100 * row.recall, 100 * row.f1
        shares = f"precision: {p:6.2f}%; recall: {r:6.2f}%; FB1: {f:6.2f}"
        lines.append(f"{name:>17}: {shares}  {row.predicted}")
    return "\n".join(lines)
