"""Labeled samples whose second half is chosen, as an active learner chooses it.

The first half of a sample is random. The second half is chosen from the next sentences of the draw,
at most `POOL`: those of which a supervised CRF, trained on the first half, is most uncertain, or
those that are least like the labeled ones. The choice belongs to the draw: all methods get the same
sentences. Only labels of the first half are read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sslbench.engine.corpus import Corpus, sentence_ids
from sslbench.engine.crf import ChainModel, HardLabels, TrainingParams
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import F64, I64
from sslbench.experiment.data.weak import without_weak
from sslbench.experiment.inputs.folding import similarities
from sslbench.experiment.inputs.problem import relabeled
from sslbench.experiment.request.request import LabeledBy

#: the largest number of sentences among which some are chosen
POOL = 2000


def chosen_order(train: Corpus, order: I64, n: int, by: LabeledBy) -> I64:
    """int64[S]: the sentences of train, the n labeled ones first.

    order: int64[S], that of the draw.
    UserError if there is no half to choose: fewer than two sentences are labeled, or all of them.
    """
    half = (n + 1) // 2
    if n < 2 or n == len(order):
        message = f"{n} of {len(order)} sentences are labeled: none can be chosen"
        raise UserError(message, hint=f"give --labeled from 2 to {len(order) - 1}")
    first, later = order[:half], order[half:]
    pool = later[: max(POOL, n - half)]
    if by == "uncertainty":
        wanted = _uncertainty(relabeled(train.select(first)), train.select(pool))
    else:
        wanted = np.ones(len(pool))
    similarity = similarities(train.select(np.concatenate([first, pool])))
    chosen = pool[uncertain_and_unlike(wanted, similarity, n - half, range(half))]
    return np.concatenate([first, chosen, later[~np.isin(later, chosen)]])


def _uncertainty(labeled: Corpus, pool: Corpus) -> F64:
    """float64[S]: the entropies of the sentences of a pool under a CRF of words and suffixes."""
    text = without_weak(pool.drop("label"))
    word = "word" if "word" in text.columns else next(iter(text.columns))
    templates = [f"{word}[{place}]" for place in (-1, 0, 1)]
    suffixes = [f"{word}.suffix{n}[0]" for n in (2, 3)]
    labels = labeled.column("label")
    featurizer = TemplateFeaturizer(["bias", *templates, *suffixes])
    crf = ChainModel(order=1).prepare(featurizer, labeled, labels.codes, labels.vocabulary.strings)
    crf.train([(crf.encode(labeled), HardLabels(labels.codes))], TrainingParams())
    return total_entropies(crf.marginals(crf.encode(text)), text.offsets)


def total_entropies(marginals: F64, offsets: I64) -> F64:
    """float64[S]: sums of the entropies of tokens ("total token entropy", Settles & Craven 2008).

    marginals: float64[N, L].  offsets: int64[S + 1].
    """
    logs = np.log(marginals, out=np.zeros_like(marginals), where=marginals > 0)
    entropies = -(marginals * logs).sum(axis=1)
    sums = np.bincount(sentence_ids(offsets), entropies, minlength=len(offsets) - 1)
    return sums.astype(np.float64)


def uncertain_and_unlike(
    uncertainty: F64, similarity: F64, n: int, known: Sequence[int] = ()
) -> I64:
    """int64[n], ascending: sentences that are uncertain and unlike each other, chosen in turn.

    The next one has the largest uncertainty times one minus its similarity to the nearest that is
    chosen or known. All of them if there are at most n.

    uncertainty: float64[S].  similarity: float64[K + S, K + S], in [0, 1]; the K known come first.
    """
    chosen: list[int] = []
    open_to = np.ones(len(uncertainty), dtype=np.bool_)
    near = similarity[:, len(known) :]
    novelty = np.clip(1 - near[list(known)].max(axis=0, initial=0.0), 0.0, 1.0)
    for _ in range(min(n, len(uncertainty))):
        chosen.append(int(np.argmax(np.where(open_to, uncertainty * novelty, -1.0))))
        open_to[chosen[-1]] = False
        novelty = np.minimum(novelty, np.clip(1 - near[len(known) + chosen[-1]], 0.0, 1.0))
    return np.sort(np.array(chosen, dtype=np.int64))
