"""Which sentences of the unlabeled text to label next."""

from __future__ import annotations

import numpy as np

from sslbench.engine.corpus import Corpus, sentence_ids
from sslbench.engine.errors import UserError
from sslbench.engine.types import F64, I64
from sslbench.experiment.inputs.folding import similarities
from sslbench.experiment.inputs.problem import predicted_marginals
from sslbench.experiment.run.saved import TrainedTagger

#: the most uncertain sentences, among which those to label are unlike each other
POOL = 2000


def next_to_label(tagger: TrainedTagger, n: int) -> tuple[list[int], str]:
    """Return the numbers of the next n unlabeled sentences to label, and lines to correct.

    They are in the order of the text and numbered from 1. A comment gives the number of each
    sentence; a line has the columns of a token and, last, the label that the tagger predicts.
    UserError without unlabeled text, or for a tagger without probabilities.
    """
    external = tagger.trained.sample.dataset.external
    if external is None:
        raise no_text()
    text = Corpus.concatenate(list(external()))
    entropies = total_entropies(predicted_marginals(tagger.tagger, text), text.offsets)
    pool = np.sort(np.argsort(-entropies, kind="stable")[: max(n, POOL)])
    numbers = pool[uncertain_and_unlike(entropies[pool], similarities(text.select(pool)), n)]
    chosen = text.select(numbers)
    labels = iter(tagger.texts(chosen, tagger.tag(chosen)))
    columns = [chosen.sentences(name) for name in tagger.columns]
    lines = []
    for number, *rows in zip(numbers.tolist(), *columns, strict=True):
        lines.append(f"# sentence = {number + 1}")
        lines += ["\t".join([*token, next(labels)]) for token in zip(*rows, strict=True)]
        lines.append("")
    return [number + 1 for number in numbers.tolist()], "\n".join(lines)


def no_text() -> UserError:
    """The error of data without unlabeled text."""
    hint = "add a file called unlabeled to the folder of --data"
    return UserError("there are no unlabeled sentences to choose from", hint=hint)


def total_entropies(marginals: F64, offsets: I64) -> F64:
    """float64[S]: sums of the entropies of tokens ("total token entropy", Settles & Craven 2008).

    marginals: float64[N, L].  offsets: int64[S + 1].
    """
    logs = np.log(marginals, out=np.zeros_like(marginals), where=marginals > 0)
    entropies = -(marginals * logs).sum(axis=1)
    sums = np.bincount(sentence_ids(offsets), entropies, minlength=len(offsets) - 1)
    return sums.astype(np.float64)


def uncertain_and_unlike(uncertainty: F64, similarity: F64, n: int) -> I64:
    """int64[n], ascending: sentences that are uncertain and unlike each other, chosen in turn.

    The next one has the largest uncertainty times one minus its similarity to the nearest that is
    chosen. All of them if there are at most n.

    uncertainty: float64[S].  similarity: float64[S, S], in [0, 1].
    """
    chosen: list[int] = []
    novelty, open_to = np.ones(len(uncertainty)), np.ones(len(uncertainty), dtype=np.bool_)
    for _ in range(min(n, len(uncertainty))):
        chosen.append(int(np.argmax(np.where(open_to, uncertainty * novelty, -1.0))))
        open_to[chosen[-1]] = False
        novelty = np.minimum(novelty, np.clip(1 - similarity[chosen[-1]], 0.0, 1.0))
    return np.sort(np.array(chosen, dtype=np.int64))
