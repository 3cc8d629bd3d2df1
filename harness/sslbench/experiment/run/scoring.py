"""From a trained tagger to its predictions and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from sslbench.engine.corpus import Corpus
from sslbench.engine.corpus.encodings import Scheme, Task
from sslbench.engine.types import I32
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem, Tagger, predicted, without_labels
from sslbench.experiment.inputs.protocol import Sample, unlabeled_text
from sslbench.experiment.metrics import Alternatives, Coverage, Scores, coverage, score


@dataclass(frozen=True)
class Scored:
    """Predictions for a split, and their scores.

    codes: int32[N], predictions of the tagger as codes into `labels`.
    scores: the scores of each variant of the tagger; "" = the tagger.
    """

    labels: Sequence[str]
    codes: I32
    scores: dict[str, Scores]


def score_split(
    clock: RunContext, sample: Sample, problem: Problem, tagger: Tagger, split: str
) -> Scored:
    """Predict a split of the dataset, and score the predictions of all variants of the tagger.

    problem: the problem that the tagger was trained on.
    """
    dataset = sample.dataset
    corpus = dataset.splits[split]
    with clock.phase("predict"):
        codes = predict(tagger, corpus)
    with clock.phase("score"):
        cover = _coverage(corpus, sample, problem)
        variants = {"": tagger, **getattr(tagger, "variants", {})}
        scores = {
            name: score_labels(
                dataset.task,
                dataset.encoding,
                corpus,
                each,
                codes if each is tagger else predict(each, corpus),
                cover,
                dataset.alternatives.get(split),
            )
            for name, each in variants.items()
        }
    return Scored(tagger.labels, codes, scores)


def predict(tagger: Tagger, corpus: Corpus) -> I32:
    """int32[N]: predicted label codes of a corpus; its own labels are dropped first."""
    return predicted(tagger, without_labels(corpus))


def score_labels(
    task: str,
    encoding: str | None,
    corpus: Corpus,
    tagger: Tagger,
    codes: I32,
    cover: Coverage | None = None,
    alternatives: Alternatives | None = None,
) -> Scores:
    """Score predictions against the label column of a corpus.

    codes: int32[N], codes into `tagger.labels`.  cover, alternatives: see `score`.
    """
    gold = corpus.column("label")
    return score(
        cast(Task, task),
        (gold.vocabulary.strings, gold.codes),
        (tagger.labels, codes),
        corpus.offsets,
        encoding=cast(Scheme | None, encoding),
        coverage=cover,
        alternatives=alternatives,
    )


def _coverage(corpus: Corpus, sample: Sample, problem: Problem) -> Coverage | None:
    """Which words of the corpus the protocol shows; None for data without words.

    The rest of train counts also for a method that reads no text, so that methods have the same
    parts; external text is not read for this alone.
    """
    if "word" not in corpus.columns:
        return None
    text, protocol = problem.unlabeled, sample.spec.protocol
    if not text.n_sentences and protocol.text == "rest":
        text = unlabeled_text(sample.dataset, protocol)
    return coverage(corpus, problem.labeled, text if text.n_sentences else None)
