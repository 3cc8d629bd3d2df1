"""Which sentences are labeled, which are not, and where development data comes from."""

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

# Distinct constants keep the random streams of one seed apart. They are part of the protocol:
# changing one changes every labeled sample.
SAMPLE_STREAM = 0x6C61626C
DEV_STREAM = 0x64657673
DEV_SHARE = 5  # one fifth, as in Suzuki and Isozaki (2008) for CoNLL-2000

DevSource = Literal["own", "fifth", "none"]


@dataclass(frozen=True)
class Draw:
    """One draw of a protocol.

    Attributes
    ----------
    labeled: int64[n], sentence numbers in train, ascending.
    train, dev: the labeled sample cut 4/5 to 1/5 for tuning (all and nothing when not needed).
    hidden: int64[m], sentences of train that become unlabeled, ascending.
    dev_source: "own" split of the data set, a "fifth" of the labeled sample, or "none".
    """

    labeled: I64
    train: I64
    dev: I64
    hidden: I64
    dev_source: DevSource


def parse_labeled(text: str) -> int | str:
    """Read ``--labeled``: a number of sentences, ``all``, or a share such as ``10%``."""
    text = text.strip()
    if text == "all":
        return text
    if re.fullmatch(r"\d+", text) and int(text) > 0:
        return int(text)
    if re.fullmatch(r"\d+(\.\d+)?%", text) and 0 < float(text[:-1]) <= 100:
        return "all" if float(text[:-1]) == 100 else f"{float(text[:-1]):g}%"
    raise UserError(f"--labeled {text!r}", hint="give a number above 0, 'all', or a share as '10%'")


def labeled_size(labeled: int | str, n_train: int) -> int:
    """Number of labeled sentences that a request means for a train split of `n_train`."""
    if labeled == "all":
        return n_train
    if isinstance(labeled, str):
        return max(1, round(n_train * float(labeled.rstrip("%")) / 100))
    if labeled > n_train:
        raise UserError(
            f"{labeled} labeled sentences asked, but train has {n_train}",
            hint="give a smaller --labeled, or leave it out to use all",
        )
    return labeled


def sample(n_train: int, n_labeled: int, seed: int) -> tuple[I64, I64]:
    """Draw `n_labeled` of `n_train` sentences: (drawn, rest), both ascending.

    For one seed the draws are nested: they are the beginnings of one permutation.
    """
    order = np.random.default_rng([seed, SAMPLE_STREAM]).permutation(n_train)
    return np.sort(order[:n_labeled]), np.sort(order[n_labeled:])


def split_fifth(sentences: I64) -> tuple[I64, I64]:
    """Cut a labeled sample 4/5 to 1/5 at sentence level, always in the same way."""
    if len(sentences) < 2:
        raise UserError(
            "tuning needs at least 2 labeled sentences",
            hint="the data set has no development split; give --tune 0 or more --labeled",
        )
    order = np.random.default_rng(DEV_STREAM).permutation(len(sentences))
    n_dev = max(1, len(sentences) // DEV_SHARE)
    return np.sort(sentences[order[n_dev:]]), np.sort(sentences[order[:n_dev]])


def draw(dataset: Dataset, protocol: ProtocolSpec) -> Draw:
    """Draw the labeled sample and decide where development data comes from, never from test."""
    n_train = dataset.splits["train"].n_sentences
    n_labeled = labeled_size(protocol.labeled, n_train)
    labeled, hidden = sample(n_train, n_labeled, protocol.seed)
    nothing = np.empty(0, dtype=np.int64)
    if "dev" in dataset.splits:
        return Draw(labeled, labeled, nothing, hidden, "own")
    if protocol.tune > 0:
        train, dev = split_fifth(labeled)
        return Draw(labeled, train, dev, hidden, "fifth")
    return Draw(labeled, labeled, nothing, hidden, "none")


def unlabeled_text(
    dataset: Dataset, protocol: ProtocolSpec, hidden: I64, held_out: I64 | None = None
) -> Shards:
    """The text without labels: the rest of train, or the data set's own.

    It is the data set's own, if it has any, when all of train is labeled, and always in domain
    adaptation, where the rest of train is of the wrong domain; both, where the data set joins
    them. What is returned refers to no label: the column is dropped before sentences are copied,
    and the data set's own text is refused if it has one.

    held_out: int64, labeled sentences of train that stand for the test while parameters are
    chosen. On transductive data sets they follow, whatever the cap on the other text: methods that
    spread labels over their text alone have nothing to say of other text.
    """
    parts: list[Shards] = []
    own = protocol.labeled == "all" or dataset.adaptation
    if dataset.joined or not own or dataset.external is None:
        parts.append(CorpusShards(dataset.splits["train"].drop("label").select(hidden)))
    if dataset.external is not None and (dataset.joined or own):
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
        raise RuntimeError(f"the external text of data set {name} has labels")
    return shards


def no_text(dataset: Dataset) -> Shards:
    """Empty unlabeled text, for methods that do not look at it."""
    return CorpusShards(dataset.splits["train"].drop("label").select(np.empty(0, dtype=np.int64)))
