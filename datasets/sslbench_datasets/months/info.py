"""Registration of CoNLL-2003 with all of Reuters-21578, or one of its months, as unlabeled text."""

from __future__ import annotations

from dataclasses import replace

from sslbench import DatasetInfo
from sslbench_datasets.ner.info import CONLL2003
from sslbench_datasets.ner.info import DATASETS as NER
from sslbench_datasets.reuters.info import REUTERS
from sslbench_datasets.upstream import Upstream

_ENGLISH = next(info for info in NER if info.name == "conll03")
_UPSTREAM = REUTERS[0]
# The files after the seven that are the newswire of other datasets.
_OTHERS = Upstream(
    "reuters21578",
    _UPSTREAM.urls[0].rpartition("/")[0],
    _UPSTREAM.licence,
    agreement=_UPSTREAM.agreement,
).files(
    """
reut2-007.sgm 1256772 aa706007ec84a03537a3921ca976d60e11b3f99e4b9e9b2d5c81dd384d2c2062
reut2-008.sgm 1410117 a3994583694a00b7c744097c1d7eabfcf90f2e6650cc21663e46828035a336cb
reut2-009.sgm 1338903 29995f606dd1a9bdf907eacc9d879846c716860d9d9141676979474aaea39c7d
reut2-010.sgm 1371071 996df6008089bd09fa5b28a4d2eb0ee5f7b9d4601cde566fed3926ac82960fa3
reut2-011.sgm 1304117 d3a2782015247d9c2bffb8926267827fdd449c70d619435ef01a25a1c56a53ca
reut2-012.sgm 1323584 da31035d483851f2aebce5b66d779e5e2c0ac9dcfe098596c6d544e81c5604ab
reut2-013.sgm 1129687 8f7700bc0455fac3fcc12377ced4807b7df8aba1f21ecad059b9cc2b1cf0b8be
reut2-014.sgm 1128671 ef936bd3e0f36cf722afa9a6957563549775af32e9e28b4f539c8737ceda83ab
reut2-015.sgm 1258665 6d3bcec73eff871b8a5403588af814c4e50a0de6bc25707480522ab836f74026
reut2-016.sgm 1316417 be2f03a185fff70131f3b4fdbd6229b7ee2be077eba9691eaa597c8cfbda8812
reut2-017.sgm 1546911 f370e610b4b1342e41a98e0c426a08541044bd1d7e539674f32372a6060b73b5
reut2-018.sgm 1258819 a5f971bf25448e915781962309e669359a35fbcaf3017a806eca0590897f209a
reut2-019.sgm 1261780 d3b07097fba2633d130b4914aceba671645985248943ce9e39c289315339dffb
reut2-020.sgm 1049566 f6ad1b724125c202566c63b35ea0b5ee23881f8b7ed47a32829d5af05d8e860d
reut2-021.sgm 621648 3f5196d32869723c9042aa5756805b4e90360f1f45ea17f4594fa0e2b3630b18
""",
    extra=True,
)
FILES = (*REUTERS, *_OTHERS)

DATASETS: tuple[DatasetInfo, ...] = (
    replace(
        _ENGLISH,
        name="conll03_months",
        summary="CoNLL-2003 with all of Reuters-21578, or one of its months, as raw text",
        target="sslbench_datasets.months.load:load",
        protocol=(
            "as conll03; external text = the stories of the 22 files of Reuters-21578, or of one"
            " month (option month), in order of their numbers, with part-of-speech tags as there"
        ),
        files=(*CONLL2003.values(), *FILES),
        options="sslbench_datasets.months.load:Options",
    ),
)
