"""Small files in the formats of domain adaptation, and what must be read from them."""

from __future__ import annotations

from sslbench.engine.corpus import Corpus

BANK = """\
(SBARQ (WHNP (WP What))(SQ ( )(VBZ <s)(NP (NNP O<Hara)(POS <)(`` ``)(NN a/b)('' <<)))(. ?))
(SBARQ (WHADVP (WRB Why))(SQ (MD ca)(RB n<t)(PRN ( -LRB-)(NN c\\/d)( -RRB-))(` `)(NN e)(' <))(? ?))
(S (VB Stop)(! !))
"""
BANK_PAIRS = [
    r"What_WP 's_VBZ O'Hara_NNP '_POS ``_`` a\/b_NN ''_'' ?_.",
    r"Why_WRB ca_MD n't_RB -LRB-_-LRB- c\/d_NN -RRB-_-RRB- `_`` e_NN '_'' ?_.",
    "Stop_VB !_.",
]
TRIVIA_TEXT = (
    b"#Q Dogs don\x92t bark.\nAnd this line runs on,\r\ndoes it?\r\n^ No\r\nA Yes\nB No\n\n"
    b"#Q \xe2\x80\x9cCaf\xc3\xa9\xe2\x80\x9d is what?\n^ x\nA #1\n"
)
TRIVIA_SENTENCES = [
    ["Dogs", "do", "n't", "bark", "."],
    ["And", "this", "line", "runs", "on", ",", "does", "it", "?"],
    ["``", "Café", "''", "is", "what", "?"],
]
GENIA_TEXT = """\
UI\tLS
-\t:
95333264\tCD

TI\tLS
-\t:
IL-2\tNN
[\t(
p50/p65\tNN
]\t)

AB\tLS
-\t:
"\t``
It\tPRP
"\t''

UI\tNN
binds\tVBZ
"""
GENIA_PAIRS = [
    r"IL-2_NN -LRB-_-LRB- p50\/p65_NN -RRB-_-RRB-",
    "``_`` It_PRP ''_''",
    "UI_NN binds_VBZ",
]


def pairs(corpus: Corpus) -> list[str]:
    both = zip(corpus.sentences("word"), corpus.sentences("label"), strict=True)
    return [" ".join(f"{w}_{t}" for w, t in zip(*one, strict=True)) for one in both]
