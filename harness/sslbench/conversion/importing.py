"""A text dump of another program's model as a saved tagger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from pathlib import Path

import msgspec
import numpy as np

from sslbench.conversion.crfpp import read_text_model
from sslbench.conversion.crfsuite_dump import read_dump
from sslbench.conversion.dumps import Dump, Lines
from sslbench.engine.corpus import detect_scheme
from sslbench.engine.crf import ChainCRF, add_facts
from sslbench.engine.crf.weights.layout import Layout
from sslbench.engine.errors import UserError
from sslbench.engine.features.templates import Template
from sslbench.engine.features.values import Values, index_of_values
from sslbench.engine.types import F64, I32, I64
from sslbench.experiment.run.saved import TrainingCorpus

Weights = Mapping[Template, Mapping[Values, Mapping[int, float]]]


def import_dump(path: Path, out: Path, columns: Sequence[str] | None = None) -> ChainCRF:
    """Write the tagger of a dump of CRFsuite or CRF++ to `out`.

    columns: see `read_dump` and `read_text_model`.
    UserError with file and line for a file that cannot be read.
    """
    dump = read(path, columns)
    crf = build(dump)
    crf.save(out)
    scheme = detect_scheme([dump.labels])
    is_spans = scheme == "IOB2" and any("-" in label for label in dump.labels)
    corpus = TrainingCorpus(
        (*dump.columns, "label"),
        "spans" if is_spans else "tagging",
        "IOB2" if is_spans else None,
        "IOB2" if is_spans else None,
    )
    add_facts(out, {"corpus": msgspec.to_builtins(corpus)})
    return crf


def read(path: Path, columns: Sequence[str] | None = None) -> Dump:
    """What a dump says; columns and errors as of `import_dump`."""
    lines = Lines(path)
    try:
        first = next(iter(lines))
        if first == "FILEHEADER = {":
            return read_dump(lines, columns)
        if first.startswith("version:"):
            return read_text_model(lines, columns)
        raise UserError(
            "neither a saved tagger nor a text dump of CRFsuite or CRF++",
            hint="crfsuite dump MODEL, crf_learn -t",
        )
    except (UserError, ValueError) as problem:
        raise lines.at_place(problem) from None


def build(dump: Dump) -> ChainCRF:
    """The CRF of a dump; UserError for one that does not fit into memory."""
    L = len(dump.labels)
    templates = {t: list(v) for t, v in chain(dump.states.items(), _edges(dump).items())}
    index = index_of_values(templates)
    state_start, state_label, states = _flat(dump.states)
    edge_start, edge_code, edges = _flat(_edges(dump))
    layout = Layout(
        n_labels=L,
        n_node=index.n_node,
        n_columns=0,
        n_edge=index.n_edge,
        state_start=state_start,
        state_label=state_label,
        transition_start=edge_start,
        transition_code=edge_code,
        use_start=dump.start is not None,
        use_stop=dump.stop is not None,
    )
    parts = [states, dump.transitions.reshape(-1), dump.start, dump.stop, edges]
    weights = np.concatenate([part for part in parts if part is not None])
    return ChainCRF(tuple(dump.labels), index, layout, weights)


def _edges(dump: Dump) -> Weights:
    """With templates of transitions."""
    return {Template(t.atoms, edge=True): values for t, values in dump.edges.items()}


def _flat(weights: Weights) -> tuple[I64, I32, F64]:
    """Borders of the attributes, then label or transition, and value, of each weight."""
    cells = [sorted(cell.items()) for values in weights.values() for cell in values.values()]
    borders = np.array([0, *accumulate(map(len, cells))], np.int64)
    codes = np.array([code for cell in cells for code, _ in cell], np.int32)
    return borders, codes, np.array([weight for cell in cells for _, weight in cell], np.float64)
