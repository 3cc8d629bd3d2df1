"""Files of Reuters-21578, the unlabeled text of English newswire."""

from __future__ import annotations

from sslbench_datasets.upstream import GITHUB, Upstream

# 7 of the 22 files of the collection.
REUTERS = Upstream(
    "reuters21578",
    f"{GITHUB}/colibri17/TextCategorization/b6c2ca3d46a2540843400890792e5165448b4516/reuters21578",
    "restricted: Reuters Ltd. and Carnegie Group allow free distribution for research purposes"
    " only",
    agreement=True,
).files(
    """
reut2-000.sgm 1324350 0ec53cda8f6d605a3ba710df14be7f00fc02f0c222a14748101df22326afe0f6
reut2-001.sgm 1254440 1528e7e82d110d88d0234eb9619eadb7f9fd805711971df05975b92277dfdf4d
reut2-002.sgm 1217495 99f18068d0518952987dedd78c622e5c2a584e357d264d3754696c815f3e6628
reut2-003.sgm 1298721 78a3a8d7e04bc9d42c4614d5d5c60a4293dbe3f708df6fb5a71d9ef31f4b3fa3
reut2-004.sgm 1321623 726342c19a65873330b412378cd6a3f0d512035f5223146ddd60930c62eb6ff0
reut2-005.sgm 1388644 d09de619b6dd2d047d5124681f6df90550abaf592020d1c1ce338ae9b91522e7
reut2-006.sgm 1254765 b5535c0d66b01f4976f84621a4a795afbc00d2c4bd0a1b7ae426df6630fb361d
""",
    extra=True,
)
WORDS = "external text = 7 files of Reuters-21578, or your own (option unlabeled)"
TEXT = f"{WORDS}, with part-of-speech tags predicted by a CRF trained on train's POS column"
