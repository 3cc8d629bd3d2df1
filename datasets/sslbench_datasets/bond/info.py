"""Registrations of names in Wikipedia and in tweets, as in the folders of BOND."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sslbench import DatasetInfo, RemoteFile
from sslbench_datasets import references
from sslbench_datasets.genes.info import UNITS
from sslbench_datasets.upstream import GITHUB, Upstream, size

#: the weak source: the labels that dictionaries give
SOURCE = "dictionary"
_COMMIT = f"{GITHUB}/cliang1453/BOND/32f26988a58ee44eb4f50772c6d6c6eb116c83cf"
_LICENCE = "Apache-2.0 (the repository); the text is under the terms of its corpus"


@dataclass(frozen=True)
class BondCorpus:
    """One folder of BOND.

    Attributes
    ----------
    tags: the list of tags.
    text: the file of train, whose tags are not gold.
    gold: the files of train and test of the dataset: dev and test upstream.
    counts: (sentences, tokens, mentions) of `gold`.
    text_counts: (sentences, tokens) of `text`.
    distant: (sentences, tokens, mentions) of `text` with its labels from dictionaries, which are
        read as those of the weak source `SOURCE`; None = they are not read.
    """

    name: str
    tags: RemoteFile
    text: RemoteFile
    gold: dict[str, RemoteFile]
    counts: dict[str, tuple[int, int, int]]
    text_counts: tuple[int, int]
    distant: tuple[int, int, int] | None = None


_WIKIGOLD = Upstream("bond/wikigold_distant", f"{_COMMIT}/dataset/wikigold_distant", _LICENCE)
_TWITTER = Upstream("bond/twitter_distant", f"{_COMMIT}/dataset/twitter_distant", _LICENCE)

WIKIGOLD = BondCorpus(
    name="wikigold",
    tags=_WIKIGOLD.file(
        "tag_to_id.json", 107, "9c6971a324aa81d227b643358fe789bf0dfa23bfcf4c9f18bcd413b496051763"
    ),
    text=_WIKIGOLD.file(
        "train.json",
        1040384,
        "79a650ce00aa7d98ba7a42ef7017507a8613461d5d0f16391bcb96e177db0240",
        extra=True,
    ),
    gold={
        "train": _WIKIGOLD.file(
            "dev.json", 267255, "2c30281a5ec52a819fbb6a56f790f734151962b2c4ff5eb3ba04fb0eaa833edd"
        ),
        "test": _WIKIGOLD.file(
            "test.json", 263266, "d0a9f12b63b32eb16d4d2bf8d161f0139ed665d1e0b9aa02080c92bc72ee5803"
        ),
    },
    counts={"train": (280, 6_650, 650), "test": (274, 6_538, 613)},
    text_counts=(1_142, 25_819),
)
TWITTER = BondCorpus(
    name="twitter",
    tags=_TWITTER.file(
        "tag_to_id.json", 344, "333c4a6847b984e95c62440908a0491add258cc8c94f5a412181090a4732fc27"
    ),
    text=_TWITTER.file(
        "train.json",
        1768635,
        "30f1d7ae0608025d776595ae774316556c840fd8aaf52f20a2827aac339ef8bc",
        extra=True,
    ),
    gold={
        "train": _TWITTER.file(
            "dev.json", 639859, "6cd918508e7c4e9c448e250b470574efc793cba5030057f3aa9c960a42486dfe"
        ),
        "test": _TWITTER.file(
            "test.json", 2553258, "5ba8e4a52e991600345c21e93dbf2adeeb246d544ddc90a94c8325527f7f8c92"
        ),
    },
    counts={"train": (999, 15_262, 656), "test": (3_844, 58_064, 3_439)},
    text_counts=(2_393, 44_076),
)

WIKIGOLD_DISTANT = replace(WIKIGOLD, name="wikigold_distant", distant=(1_142, 25_819, 2_282))
TWITTER_DISTANT = replace(TWITTER, name="twitter_distant", distant=(2_393, 44_076, 1_002))


def _registration(
    corpus: BondCorpus, summary: str, reference: str, family: str, note: str
) -> DatasetInfo:
    train, test = (size(counts, *UNITS) for counts in corpus.counts.values())
    labels = "come from dictionaries and are not read"
    if corpus.distant is not None:
        labels = f"come from dictionaries and are those of the weak source {SOURCE}"
    return DatasetInfo(
        name=corpus.name,
        summary=summary,
        reference=f"{reference}; files: {references.LIANG_2020}",
        target=f"sslbench_datasets.bond.load:load_{corpus.name}",
        licence=_LICENCE,
        task="spans",
        metric="f1",
        featurizer="basic",
        protocol=(
            f"train = dev of BOND ({train}), test = test of BOND ({test}), both with gold labels;"
            " the unlabeled text is the rest of train followed by the words of BOND's train"
            f" ({size(corpus.text_counts, 'sentences', 'tokens')}), whose labels {labels}; {note};"
            " no development split"
        ),
        files=(corpus.tags, *corpus.gold.values(), corpus.text),
        family=family,
        weak=() if corpus.distant is None else (SOURCE,),
    )


DATASETS: tuple[DatasetInfo, ...] = (
    _registration(
        WIKIGOLD,
        "Wikigold, names in Wikipedia: 4 types",
        references.BALASURIYA_2009,
        "Wikipedia names",
        "spans that begin with I- are written with B-",
    ),
    _registration(
        TWITTER,
        "names in tweets: the 10 types of WNUT 2016",
        references.STRAUSS_2016,
        "tweets",
        "BOND lacks the last token of each tweet, and joins a tweet of one token to the next, so"
        " that dev has 656 of 661 mentions of the shared task and test 3,439 of 3,473",
    ),
    _registration(
        WIKIGOLD_DISTANT,
        "wikigold with labels from dictionaries as a weak source",
        references.BALASURIYA_2009,
        "Wikipedia names",
        "spans that begin with I- are written with B-",
    ),
    _registration(
        TWITTER_DISTANT,
        "twitter with labels from dictionaries as a weak source",
        references.STRAUSS_2016,
        "tweets",
        "BOND's tweets lack their last token, see twitter",
    ),
)
