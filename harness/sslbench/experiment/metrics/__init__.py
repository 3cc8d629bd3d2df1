"""Metrics of a labeling: accuracies, conlleval's chunk scores, and scores by vocabulary.

Every metric is a ratio (`ratios`) of sums of counts per sentence (`SentenceCounts`). Scores of a
subset of sentences, paired tests and bootstrap samples therefore need no second pass over tokens.

Chunk counts are those of conlleval.pl (2004-01-26) on the labels converted to IOB2: a chunk is
correct iff its first token, its last token and its type agree. The labels are converted first
since conlleval miscounts IOBES, where it does not know `S`. Accuracies compare the original labels.

The words of a segmentation are its chunks. seg_f1 requires both borders to be right, joint_f1
(equal to f1) the tag too. oov_recall is the recall, by borders, of gold words that are no word of
the labeled data (SIGHAN bakeoffs, R. Sproat and T. Emerson 2003); joint_oov_recall requires the tag
too.

alt_precision, alt_recall and alt_f1 also accept the alternative answers of a task
(`Alternatives`), as BioCreative I task 1A does.
"""

from sslbench.experiment.metrics.chunks import Alternatives, Labels
from sslbench.experiment.metrics.counts import (
    CountTable,
    SentenceCounts,
    metrics_from_counts,
    needed_fields,
    ratio,
    ratios,
)
from sslbench.experiment.metrics.coverage import Coverage, coverage
from sslbench.experiment.metrics.scoring import Scores, pool, score

#: version of these definitions, part of the identity of a run: a change of what a metric means
#: makes other runs
SCORER = 1

__all__ = [
    "SCORER",
    "Alternatives",
    "CountTable",
    "Coverage",
    "Labels",
    "Scores",
    "SentenceCounts",
    "coverage",
    "metrics_from_counts",
    "needed_fields",
    "pool",
    "ratio",
    "ratios",
    "score",
]
