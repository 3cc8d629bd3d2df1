"""Scores of a tagging: conlleval's chunk counts, accuracies, and scores by vocabulary.

Everything is a sum of counts per sentence (`SentenceCounts`), and every metric a ratio of such sums
(`ratios`): scores of a subset of sentences, paired tests and bootstrap samples need no second pass
over the tokens.

Chunk counts are those of conlleval.pl (2004-01-26) on the labels converted to IOB2: a chunk is
correct iff its first token, its last token and its type agree. The conversion comes first since
conlleval itself miscounts IOBES (`S` is unknown to it). Accuracies compare labels as given.

Words of a segmentation are its chunks: seg_f1 wants both borders right, joint_f1 (equal to f1) the
tag too. oov_recall is the recall, by borders, of gold words that are no word of the labeled data
(SIGHAN bakeoffs, R. Sproat and T. Emerson 2003); joint_oov_recall wants the tag too.

alt_precision, alt_recall and alt_f1 also accept the other answers that a task lists
(`Alternatives`), as BioCreative I task 1A does.
"""

from sslbench.experiment.metrics.alternatives import Alternatives
from sslbench.experiment.metrics.chunks import Labels
from sslbench.experiment.metrics.counts import (
    CountTable,
    SentenceCounts,
    metrics_from_counts,
    ratio,
    ratios,
)
from sslbench.experiment.metrics.coverage import Coverage, coverage
from sslbench.experiment.metrics.report import conlleval_report
from sslbench.experiment.metrics.scoring import Scores, TypeScore, score

__all__ = [
    "Alternatives",
    "CountTable",
    "Coverage",
    "Labels",
    "Scores",
    "SentenceCounts",
    "TypeScore",
    "conlleval_report",
    "coverage",
    "metrics_from_counts",
    "ratio",
    "ratios",
    "score",
]
