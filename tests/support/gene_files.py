"""Small files of gene mentions, and the names in the real ones."""

from __future__ import annotations

from pathlib import Path

from sslbench.engine.corpus import Corpus, RawBytes
from sslbench_datasets.genes.genetag import read_tagged

# Names that touch, slashes in words, a name at an end and at the next beginning, an empty tag.
TAGGED = """\
@@12 the/DT a/b/NN p53/NEWGENE gene/NEWGENE HOX/NEWGENE1 A1/NEWGENE //NEWGENE -/: GATA/NEWGENE

@@7 Myc/NEWGENE is/VBZ //SYM Fos/NEWGENE1 ./
"""
# A name's part, twice; one over two names; a sentence that is not there; no line end between two.
ANSWERS = """\
@@12|2 2|p53
@@7|0 1|Myc is
@@12|2 2|P53

@@12|2 5|p53 gene HOX A1
@@99|0 0|lost
@@7|3 4|Fos .@@7|4 4|.
"""


def tagged(text: str) -> Corpus:
    return read_tagged(RawBytes("corpus.txt", text.encode()), {})


def sentences(corpus: Corpus, column: str = "label") -> list[list[str]]:
    return corpus.sentences(column)


def gold_names(path: Path) -> dict[str, set[tuple[int, int]]]:
    """Sentence name -> (first, last) token of its names, from a Gold.format file."""
    result: dict[str, set[tuple[int, int]]] = {}
    for line in path.read_text(encoding="ascii").splitlines():
        name, places, *_ = line.replace("|11 11OCT-1", "|11 11|OCT-1").split("|")
        first, last = map(int, places.split())
        result.setdefault(name, set()).add((first, last))
    return result
