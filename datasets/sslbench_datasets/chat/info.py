"""Registration of ``nps_chat``: part-of-speech tags of chat posts."""

from __future__ import annotations

from sslbench import DatasetInfo
from sslbench_datasets import references
from sslbench_datasets.upstream import NLTK, Upstream, size

NPS_CHAT = Upstream(
    "nltk_data",
    NLTK,
    "restricted: non-commercial, non-profit educational and research use only",
    agreement=True,
).file("nps_chat.zip", 301366, "a4433d5da5e62fdbede49efa572a53a0139fff1014ffbe86cb263e17cbb4a837")

# Split -> rooms in the order of their dates; the number is of posts.
SESSIONS = {
    "train": (
        "10-19-20s_706posts",
        "10-19-30s_705posts",
        "10-19-40s_686posts",
        "10-19-adults_706posts",
        "10-24-40s_706posts",
        "10-26-teens_706posts",
        "11-06-adults_706posts",
    ),
    "dev": (
        "11-08-20s_705posts",
        "11-08-40s_706posts",
        "11-08-adults_705posts",
        "11-08-teens_706posts",
    ),
    "test": (
        "11-09-20s_706posts",
        "11-09-40s_706posts",
        "11-09-adults_706posts",
        "11-09-teens_706posts",
    ),
}
# (posts, tokens).
COUNTS = {"train": (4_921, 21_843), "dev": (2_822, 10_804), "test": (2_824, 12_362)}
_DAYS = {"train": "19 October to 6 November 2006", "dev": "8 November", "test": "9 November"}


def _sizes() -> str:
    return ", ".join(
        f"{split} = {len(rooms)} rooms of {_DAYS[split]} ({size(COUNTS[split], 'posts', 'tokens')})"
        for split, rooms in SESSIONS.items()
    )


DATASETS: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        name="nps_chat",
        summary="part-of-speech tags of chat posts, 73 tags (NPS Chat Corpus)",
        reference=references.FORSYTH_2007,
        target="sslbench_datasets.chat.load:load",
        licence=NPS_CHAT.licence,
        task="tagging",
        metric="accuracy",
        featurizer="basic",
        protocol=(
            f"{_sizes()}; no official split; a sentence is a post, a quarter of them messages of"
            " the system; spaces inside of 65 tokens are left out, an empty token too, and a '!'"
            " without tag is tagged '.'; no external text"
        ),
        files=(NPS_CHAT,),
        options="sslbench_datasets.loading:DocumentOptions",
        family="chat tags",
    ),
)
