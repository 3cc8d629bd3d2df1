"""Upstream files of the built-in datasets: addresses, checksums, licences.

Light: read by the registration. The first URL of each file is pinned to a commit; a mirror that
moves is harmless, because the sha256 decides.
"""

from __future__ import annotations

from sslbench import RemoteFile

_NLTK = "https://raw.githubusercontent.com/nltk/nltk_data/5db857e6f7df11eabb5e5665836db9ec8df07e28/"
_REUTERS = (
    "https://raw.githubusercontent.com/colibri17/TextCategorization/"
    "b6c2ca3d46a2540843400890792e5165448b4516/"
)
_REUTERS_LICENCE = (
    "restricted: Reuters Ltd. and Carnegie Group allow free distribution for research purposes only"
)

CONLL2000 = RemoteFile(
    path="nltk_data/conll2000.zip",
    urls=(
        f"{_NLTK}packages/corpora/conll2000.zip",
        "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/corpora/conll2000.zip",
    ),
    sha256="01e65164f268366e7caa0db92332a1955d081908c87016e2c7640c3c5279b7cd",
    licence="none stated upstream; the text is Wall Street Journal (Penn Treebank, LDC)",
    bytes=756607,
    agreement=True,
)

# (length in bytes, sha256) of reut2-000.sgm to reut2-006.sgm: 7 of the collection's 22 files.
_REUTERS_FACTS = (
    (1324350, "0ec53cda8f6d605a3ba710df14be7f00fc02f0c222a14748101df22326afe0f6"),
    (1254440, "1528e7e82d110d88d0234eb9619eadb7f9fd805711971df05975b92277dfdf4d"),
    (1217495, "99f18068d0518952987dedd78c622e5c2a584e357d264d3754696c815f3e6628"),
    (1298721, "78a3a8d7e04bc9d42c4614d5d5c60a4293dbe3f708df6fb5a71d9ef31f4b3fa3"),
    (1321623, "726342c19a65873330b412378cd6a3f0d512035f5223146ddd60930c62eb6ff0"),
    (1388644, "d09de619b6dd2d047d5124681f6df90550abaf592020d1c1ce338ae9b91522e7"),
    (1254765, "b5535c0d66b01f4976f84621a4a795afbc00d2c4bd0a1b7ae426df6630fb361d"),
)

REUTERS = tuple(
    RemoteFile(
        path=f"reuters21578/reut2-{number:03d}.sgm",
        urls=(f"{_REUTERS}reuters21578/reut2-{number:03d}.sgm",),
        sha256=sha256,
        licence=_REUTERS_LICENCE,
        bytes=length,
        extra=True,
        agreement=True,
    )
    for number, (length, sha256) in enumerate(_REUTERS_FACTS)
)
