"""Which labels attributes should have: counted in the labeled sentences, or given in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from sslbench import UserError
from sslbench.engine.corpus import numbered_lines
from sslbench.engine.crf import ChainCRF, EncodedCorpus, EncodedProblem
from sslbench.engine.types import F64, I32, I64

_ROUNDING = 1e-6
_FORM = "write attribute<TAB>label:probability ..., which add up to 1"


@dataclass(frozen=True)
class Targets:
    """Target label distributions: attributes int64[K], numbers of the CRF, and float64[K, L]."""

    attributes: I64
    labels: F64

    def occurrences(self, data: EncodedCorpus, n_attributes: int) -> sparse.csr_array:
        """Return float64[N, K]: 1 where a token has the attribute."""
        number = np.full(n_attributes + 1, -1, np.int64)  # the last one is that of no attribute
        number[self.attributes] = np.arange(len(self.attributes))
        row_of = number[data.attributes.node]
        slot, token = np.nonzero(row_of >= 0)
        entries = np.ones(len(token)), (token, row_of[slot, token])
        shape = int(data.offsets[-1]), len(self.attributes)
        rows = sparse.csr_array(sparse.coo_array(entries, shape=shape))
        rows.data[:] = 1.0  # a value of a bag counts once
        return rows


def counted(text: EncodedProblem, crf: ChainCRF, most: int, smoothing: float) -> Targets:
    """Targets of the `most` attributes that tell most of the labels in the labeled sentences.

    Mann & McCallum (2008): the mutual information of a label and the presence of the attribute at
    a token. smoothing: pseudo-tokens with the labels of all text. Of attributes with the same
    tokens, the first is taken; those that are at no or all tokens tell nothing.
    """
    counts = label_counts(text.labeled[0].attributes.node, text.labels, crf)
    total = np.bincount(text.labels, minlength=len(crf.labels)).astype(np.float64)
    gain = information(counts, total)
    _, first = np.unique(counts, axis=0, return_index=True)  # the same counts tell the same
    first = first[gain[first] > 0]
    order = first[np.lexsort((first, -gain[first]))][:most]
    mass = counts[order] + smoothing * total / max(1.0, total.sum())
    return Targets(order.astype(np.int64), mass / mass.sum(axis=1, keepdims=True))


def label_counts(node: I32, labels: I32, crf: ChainCRF) -> F64:
    """Return float64[attributes, L]: tokens of each label with the attribute."""
    slot, token = np.nonzero(node >= 0)
    L = len(crf.labels)
    cell = node[slot, token].astype(np.int64) * L + labels[token]
    counts = np.bincount(cell, minlength=crf.index.n_node * L)
    return counts.reshape(-1, L).astype(np.float64)


def information(counts: F64, total: F64) -> F64:
    """float64[A]: mutual information of label and presence, in nats; counts [A, L], total [L]."""
    n = max(1.0, float(total.sum()))
    counts = np.minimum(counts, total)  # a value may be twice in a bag
    gain = np.zeros(len(counts))
    for part in (counts, total - counts):
        size = part.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = part / n * np.log(part * n / (size * total))
        gain += np.where(part > 0, value, 0.0).sum(axis=1)
    return gain


@dataclass(frozen=True)
class TargetFile:
    """What a file says: by attribute the number of its line, and probabilities of labels."""

    path: str
    entries: dict[str, tuple[int, dict[str, float]]]

    @property
    def labels(self) -> tuple[str, ...]:
        """All that it names, sorted."""
        return tuple(sorted({label for _, target in self.entries.values() for label in target}))

    def of(self, crf: ChainCRF) -> Targets:
        """Targets of the attributes that the CRF has; labels that are not named share the rest.

        UserError, with the line, for an unknown label and probabilities that do not add up to 1.
        """
        numbers = {crf.index.node_text(i): i for i in range(crf.index.n_node)}
        result = {
            numbers[attribute]: self._distribution(*entry, crf.labels)
            for attribute, entry in self.entries.items()
            if attribute in numbers
        }
        if not result:
            raise UserError("none of its attributes is in the text", file=self.path)
        order = sorted(result)
        return Targets(np.array(order, np.int64), np.array([result[i] for i in order]))

    def _distribution(self, line: int, target: dict[str, float], labels: tuple[str, ...]) -> F64:
        for label in target:
            if label not in labels:
                hint = f"labels: {', '.join(labels)}"
                raise UserError(f"no label {label!r}", file=self.path, line=line, hint=hint)
        left, others = 1.0 - sum(target.values()), len(labels) - len(target)
        if not others and left > _ROUNDING:
            raise UserError("no target distribution", file=self.path, line=line, hint=_FORM)
        share = max(0.0, left) / max(1, others)
        return np.array([target.get(label, share) for label in labels])


def read_targets(path: str) -> TargetFile:
    """Lines "attribute<TAB>label:probability label:probability ...", and comments after "#".

    Attributes as `sslbench show MODEL` writes them, such as ``word[0]=the``. UserError with the
    line for anything else.
    """
    entries = {}
    for line, text in numbered_lines(Path(path)):
        attribute, tab, rest = text.partition("\t")
        target = _probabilities(rest, path, line)
        if not tab or not target or sum(target.values()) > 1 + _ROUNDING:
            raise UserError("no target distribution", file=path, line=line, hint=_FORM)
        entries[attribute] = line, target
    return TargetFile(path, entries)


def _probabilities(text: str, path: str, line: int) -> dict[str, float]:
    result = {}
    for pair in text.split():
        label, _, number = pair.rpartition(":")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if not label or not 0 <= value <= 1:
            raise UserError(f"{pair!r} is no label:probability", file=path, line=line, hint=_FORM)
        result[label] = value
    return result
