"""The draw of a protocol: labeled, unlabeled and development sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sslbench.corpus import ChainedShards, CorpusShards, HeadShards, Shards
from sslbench.errors import UserError
from sslbench.experiment.data import Dataset
from sslbench.experiment.record import ProtocolSpec
from sslbench.types import I64

# Makes the sample's random numbers independent of the others of a seed. It is part of the protocol:
# changing it changes every labeled sample.
SAMPLE_STREAM = 0x6C61626C
#: parts into which the labeled sample is cut for tuning where there is no development split
TUNING_FOLDS = 5

DevSource = Literal["own", "folds", "none"]
#: sentences to train on, sentences held out; int64, ascending
Fold = tuple[I64, I64]


@dataclass(frozen=True)
class Draw:
    """One draw of a protocol. Sentences are indices into train, ascending.

    Attributes
    ----------
    labeled: int64[n], the labeled sample.
    hidden: int64[m], the sentences that lose their labels.
    dev_source: of development data: "own" split of the dataset, "folds" of the labeled sample, or
        "none".
    folds: of the labeled sample, for tuning; () where there is no need.
    """

    labeled: I64
    hidden: I64
    dev_source: DevSource
    folds: tuple[Fold, ...] = ()


def parse_labeled(text: str) -> int | str:
    """Parse ``--labeled``: a number of sentences, ``all``, or a share such as ``10%``."""
    text = text.strip()
    if text == "all":
        return text
    if re.fullmatch(r"\d+", text) and int(text) > 0:
        return int(text)
    if re.fullmatch(r"\d+(\.\d+)?%", text) and 0 < float(text[:-1]) <= 100:
        return "all" if float(text[:-1]) == 100 else f"{float(text[:-1]):g}%"
    raise UserError(f"--labeled {text!r}", hint="give a number above 0, 'all' or e.g. '10%'")


def labeled_size(labeled: int | str, n_train: int) -> int:
    """Number of labeled sentences for a value of `parse_labeled` and `n_train` sentences."""
    if labeled == "all":
        return n_train
    if isinstance(labeled, str):
        return max(1, round(n_train * float(labeled.rstrip("%")) / 100))
    if labeled > n_train:
        raise UserError(
            f"{labeled} labeled sentences requested, but train has {n_train}",
            hint="give a smaller --labeled, or leave it out to use all",
        )
    return labeled


def sample(n_train: int, n_labeled: int, seed: int) -> tuple[I64, I64]:
    """Draw `n_labeled` of `n_train` sentences.

    Returns the drawn sentences and the others, int64 and ascending. The draws of one seed are
    nested: they are the first entries of one permutation.
    """
    order = draw_order(n_train, seed)
    return np.sort(order[:n_labeled]), np.sort(order[n_labeled:])


def draw_order(n_train: int, seed: int) -> I64:
    """int64[n_train]: the sentences of train in the order in which a seed draws them."""
    return np.random.default_rng([seed, SAMPLE_STREAM]).permutation(n_train)


def folds(n: int, k: int) -> list[Fold]:
    """Cut n items into k parts whose sizes differ by at most one; each is held out once.

    Item i is held out in fold i mod k. Of items in the order of a draw, folds are random, and those
    of a larger draw of the same seed contain those of a smaller one. UserError when n < k.
    """
    if not 2 <= k <= n:
        raise UserError(f"{n} labeled sentences cannot be cut into {k} folds")
    part = np.arange(n, dtype=np.int64) % k
    return [(np.flatnonzero(part != fold), np.flatnonzero(part == fold)) for fold in range(k)]


def tuning_folds(drawn: I64) -> tuple[Fold, ...]:
    """Folds of a labeled sample, in `TUNING_FOLDS` parts or as many as there are sentences.

    drawn: int64[n], the sample in the order of the draw.
    """
    if len(drawn) < 2:
        raise UserError(
            "tuning needs at least 2 labeled sentences",
            hint="the dataset has no development split; give --tune 0 or more --labeled",
        )
    cut = folds(len(drawn), min(TUNING_FOLDS, len(drawn)))
    return tuple((np.sort(drawn[train]), np.sort(drawn[held])) for train, held in cut)


def draw(dataset: Dataset, protocol: ProtocolSpec) -> Draw:
    """Draw the labeled sample, and development data from it if the dataset has none."""
    n_train = dataset.splits["train"].n_sentences
    n_labeled = labeled_size(protocol.labeled, n_train)
    labeled, hidden = sample(n_train, n_labeled, protocol.seed)
    if "dev" in dataset.splits:
        return Draw(labeled, hidden, "own")
    if protocol.tuned:
        drawn = draw_order(n_train, protocol.seed)[:n_labeled]
        return Draw(labeled, hidden, "folds", tuning_folds(drawn))
    return Draw(labeled, hidden, "none")


def unlabeled_text(
    dataset: Dataset, protocol: ProtocolSpec, hidden: I64, held_out: I64 | None = None
) -> Shards:
    """The unlabeled text: the rest of train, or the external text of the dataset.

    External text is used, if the dataset has any, when all of train is labeled, and always in
    domain adaptation, where the rest of train is of another domain. A joined dataset gives both.
    The text contains no labels: their column is dropped before sentences are copied, and external
    text with such a column is an error.

    hidden: int64, the rest of train.
    held_out: int64, labeled sentences of train on which tuning scores trials. Transductive datasets
        append them, whatever the cap on the other text: a transductive method predicts nothing for
        text outside its own.
    """
    parts: list[Shards] = []
    external = protocol.labeled == "all" or dataset.adaptation
    if dataset.joined or not external or dataset.external is None:
        parts.append(CorpusShards(dataset.splits["train"].drop("label").select(hidden)))
    if dataset.external is not None and (dataset.joined or external):
        parts.append(_external(dataset.name, dataset.external()))
    shards = parts[0] if len(parts) == 1 else ChainedShards(parts)
    if protocol.unlabeled is not None:
        shards = HeadShards(shards, protocol.unlabeled)
    if not dataset.transductive or held_out is None or not len(held_out):
        return shards
    held = CorpusShards(dataset.splits["train"].drop("label").select(held_out))
    return ChainedShards([shards, held])


def _external(name: str, shards: Shards) -> Shards:
    first = next(iter(shards), None)
    if first is not None and "label" in first.columns:
        raise RuntimeError(f"the external text of dataset {name} has labels")
    return shards


def no_text(dataset: Dataset) -> Shards:
    """Empty unlabeled text, for methods that never read it."""
    return CorpusShards(dataset.splits["train"].drop("label").select(np.empty(0, dtype=np.int64)))
