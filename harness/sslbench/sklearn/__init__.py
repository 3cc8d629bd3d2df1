"""Taggers with the interface of scikit-learn: ``pip install 'sslbench[sklearn]'``.

X is a list of sentences, a sentence a list of tokens. A token is a word, a tuple with a text for
each of `columns`, or a dict of features as sklearn-crfsuite takes them. y is a list of lists of
labels. Clones, cross-validation and searches of scikit-learn work with such lists.

The names are those of sklearn-crfsuite: `CRF`, `metrics`, `scorers`.
"""

from __future__ import annotations

from sslbench.sklearn import metrics, scorers
from sslbench.sklearn.crf import CRF
from sslbench.sklearn.tagger import SequenceTagger

__all__ = ["CRF", "SequenceTagger", "metrics", "scorers"]
