"""Which sentences of the unlabeled text to label next."""

from __future__ import annotations

import numpy as np

from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.experiment.inputs.folding import similarities
from sslbench.experiment.inputs.labeled_by import POOL, total_entropies, uncertain_and_unlike
from sslbench.experiment.inputs.problem import predicted_marginals
from sslbench.experiment.run.saved import TrainedTagger


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
