"""Which sentences of train are labeled, where they are chosen and not drawn at random.

The first half of a labeled sample is random. The others are chosen from the next sentences of the
draw, at most `POOL`, as an annotator would be asked for them: those that a supervised CRF of the
first half is uncertain of, or those that are unlike the sentences that are labeled. The choice is a
property of the draw: all methods of a comparison get the same sentences. No label outside of the
first half is read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sslbench.engine.corpus import Corpus, sentence_ids
from sslbench.engine.crf import ChainModel, HardLabels, TrainingParams
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import F64, I64
from sslbench.experiment.data.weak import source_names
from sslbench.experiment.inputs.folding import similarities
from sslbench.experiment.inputs.problem import relabeled
from sslbench.experiment.request.request import LabeledBy

#: the most sentences that are chosen from
POOL = 2000


def chosen_order(train: Corpus, order: I64, n: int, by: LabeledBy) -> I64:
    """int64[S]: the sentences of train, the n labeled ones first.

    order: int64[S], that of the draw.
    UserError if two sentences or fewer are labeled: there is no half to choose by.
    """
    half = (n + 1) // 2
    if n - half < 1:
        raise UserError(f"{n} labeled sentences: the second half is chosen by the first")
    first, pool = order[:half], order[half : half + max(POOL, n - half)]
    text = train.select(np.concatenate([first, pool]))
    if by == "uncertainty":
        labeled = relabeled(train.select(first))
        wanted = total_entropies(*_marginals(labeled, train.select(pool)))
    else:
        wanted = np.ones(len(pool))
    chosen = uncertain_and_unlike(wanted, similarities(text), n - half, range(half))
    chosen = pool[chosen]
    return np.concatenate([first, chosen, order[half:][~np.isin(order[half:], chosen)]])


def _marginals(labeled: Corpus, pool: Corpus) -> tuple[F64, I64]:
    """float64[N, L] of the tokens of a pool by a CRF of words, and the offsets of the pool."""
    hidden = {"label", *source_names(pool.columns)}
    columns = [name for name in pool.columns if name not in hidden]
    word = "word" if "word" in columns else columns[0]
    templates = [f"{word}[{place}]" for place in (-1, 0, 1)]
    suffixes = [f"{word}.suffix{n}[0]" for n in (2, 3)]
    labels = labeled.column("label")
    model = ChainModel(order=1)
    featurizer = TemplateFeaturizer(["bias", *templates, *suffixes])
    crf = model.prepare(featurizer, labeled, labels.codes, labels.vocabulary.strings)
    crf.train([(crf.encode(labeled), HardLabels(labels.codes))], TrainingParams())
    return crf.marginals(crf.encode(pool)), pool.offsets


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
