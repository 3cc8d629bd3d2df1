"""The draw of a protocol: labeled, unlabeled and development sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sslbench.corpus import ChainedShards, CorpusShards, HeadShards, Shards
from sslbench.errors import UserError
from sslbench.experiment.data import Dataset
from sslbench.experiment.record import ProtocolSpec, TextSource
from sslbench.types import I64

# Distinct constants make the random streams of one seed independent. They are part of the protocol:
# changing one changes every labeled sample.
SAMPLE_STREAM = 0x6C61626C
DEV_STREAM = 0x64657673
DEV_SHARE = 5  # one fifth, as in Suzuki and Isozaki (2008) for CoNLL-2000

DevSource = Literal["own", "fifth", "none"]


@dataclass(frozen=True)
class Draw:
    """One draw of a protocol. Sentences are indices into train, ascending.

    Attributes
    ----------
    labeled: int64[n], the labeled sample.
    train, dev: int64, the labeled sample split 4/5 to 1/5 for tuning; if there is no need, all of
        it and nothing.
    hidden: int64[m], the sentences that lose their labels.
    dev_source: of development data: "own" split of the dataset, a "fifth" of the labeled sample,
        or "none".
    """

    labeled: I64
    train: I64
    dev: I64
    hidden: I64
    dev_source: DevSource


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
    order = np.random.default_rng([seed, SAMPLE_STREAM]).permutation(n_train)
    return np.sort(order[:n_labeled]), np.sort(order[n_labeled:])


def split_fifth(sentences: I64) -> tuple[I64, I64]:
    """Split a labeled sample 4/5 to 1/5; the same sample is always split the same way."""
    if len(sentences) < 2:
        raise UserError(
            "tuning needs at least 2 labeled sentences",
            hint="the dataset has no development split; give --tune 0 or more --labeled",
        )
    order = np.random.default_rng(DEV_STREAM).permutation(len(sentences))
    n_dev = max(1, len(sentences) // DEV_SHARE)
    return np.sort(sentences[order[n_dev:]]), np.sort(sentences[order[:n_dev]])


def draw(dataset: Dataset, protocol: ProtocolSpec) -> Draw:
    """Draw the labeled sample, and development data from it if the dataset has none."""
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


def text_source(dataset: Dataset, protocol: ProtocolSpec) -> TextSource:
    """Where the unlabeled text of a protocol comes from, by default."""
    if dataset.external is None:
        return "rest"
    if dataset.joined:
        return "all"
    return "external" if dataset.adaptation or protocol.labeled == "all" else "rest"


def _external(name: str, shards: Shards) -> Shards:
    first = next(iter(shards), None)
    if first is not None and "label" in first.columns:
        raise RuntimeError(f"the external text of dataset {name} has labels")
    return shards


def no_text(dataset: Dataset) -> Shards:
    """Empty unlabeled text, for methods that never read it."""
    return CorpusShards(dataset.splits["train"].drop("label").select(np.empty(0, dtype=np.int64)))
