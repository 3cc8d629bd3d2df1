"""What is estimated of the embedded models: tables of logarithms of probabilities.

Source: Suzuki & Isozaki (2008), section 2.2; docs/specs/jess_cm.md, sections 3.2 and 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from sslbench.engine.checked import Saved, joined, part_of, table
from sslbench.engine.corpus import Corpus
from sslbench.engine.corpus.units import TextUnits
from sslbench.engine.features import Streams, SymbolRows, Template
from sslbench.engine.types import F64, AnyArray, Arrays
from sslbench_methods.jess_cm.counts import RowCounts, SymbolCounts

#: rows of symbols with more occurrences are counted in float64 (see `RowCounts`)
FREQUENT = 4096


@dataclass
class ModelTables:
    """J models over the symbols of templates, uniform at first: a = 1/L, b = 1/V.

    All models share the label set as states. Rows of a and (per state or arc) of b sum to one over
    all labels and all symbols, <UNK> included, also under a label transition_mask. The paper counts
    the bare transition [y_{s-1:s}] as a template too (its model equals the constant template's).

    templates: model j < len(templates) belongs to templates[j].
    unknown: 1 = rare and unseen symbols share the symbol <UNK>, row 0 of a table; 0 = they say
        nothing about the label.
    bare_chain: one more model, the chain of the bare transition.
    chain: float64[J, (L+1) L], log a, previous label major, START last.
    state, arc: log b, rows of `state_rows` and `arc_rows`: [R, L] and [R, (L+1) L] of `dtype`,
        which is also that of the counts of rare symbols.
    uniform: whether no EM step has been made.
    """

    templates: tuple[Template, ...]
    streams: Streams
    n_labels: int
    dtype: Any = np.float32
    unknown: int = 1
    bare_chain: bool = True
    uniform: bool = field(init=False, default=True)
    chain: F64 = field(init=False)
    state: AnyArray = field(init=False)
    arc: AnyArray = field(init=False)

    def __post_init__(self) -> None:
        L = self.n_labels
        self.chain = np.full((self.n_models, (L + 1) * L), -np.log(L))
        self.state = self._uniform(self.state_rows, L)
        self.arc = self._uniform(self.arc_rows, (L + 1) * L)

    @classmethod
    def build(
        cls,
        templates: Iterable[Template],
        n_labels: int,
        text: Iterable[Corpus] | TextUnits,
        min_count: int,
        **options: Any,
    ) -> Self:
        """Collect the symbols of unlabeled text; those rarer than min_count are unknown."""
        templates = tuple(templates)
        return cls(templates, Streams.fit(templates, text, min_count), n_labels, **options)

    @property
    def n_models(self) -> int:
        """J."""
        return len(self.templates) + self.bare_chain

    @property
    def tables(self) -> Arrays:
        """All that is estimated, by name."""
        return {"chain": self.chain, "state": self.state, "arc": self.arc}

    @cached_property
    def state_rows(self) -> SymbolRows:
        """Rows of the emissions of state templates."""
        picked = [(j, t) for j, t in enumerate(self.templates) if t.atoms and not t.edge]
        return SymbolRows.build(self.streams, picked, self.unknown)

    @cached_property
    def arc_rows(self) -> SymbolRows:
        """Rows of the emissions of edge templates."""
        picked = [(j, t) for j, t in enumerate(self.templates) if t.edge]
        return SymbolRows.build(self.streams, picked, self.unknown)

    def _uniform(self, rows: SymbolRows, width: int) -> AnyArray:
        values = np.empty((int(rows.borders[-1]), width), self.dtype)
        for lo, hi in pairwise(rows.borders):
            values[lo:hi] = -np.log(max(hi - lo, 1))
        return values

    @cached_property
    def counts(self) -> SymbolCounts:
        """Counts of the E-step in progress, or of the last one."""
        return self.no_counts()

    def no_counts(self) -> SymbolCounts:
        """Return counts of zero."""
        L, width = self.n_labels, (self.n_labels + 1) * self.n_labels
        state, arc = self._no_counts(self.state_rows, L), self._no_counts(self.arc_rows, width)
        return SymbolCounts(np.zeros(1), np.zeros(width), state, arc)

    def forget_counts(self) -> None:
        """Free `counts`, which are as large as the tables: a training needs the memory."""
        self.__dict__.pop("counts", None)

    def _no_counts(self, rows: SymbolRows, width: int) -> RowCounts:
        frequent = rows.frequent(self.streams, FREQUENT)
        place = np.full(int(rows.borders[-1]), -1, np.int32)
        place[frequent] = np.arange(len(frequent))
        rare = np.zeros((len(place), width), self.dtype)
        return RowCounts(place, rare, np.zeros((len(frequent), width)))

    def arrays(self) -> Saved:
        """Return arrays and JSON-able facts that `from_arrays` restores the models from."""
        arrays, facts = joined(streams=self.streams.arrays())
        return arrays | self.tables, facts | {
            "templates": [str(t) for t in self.templates],
            "unknown": self.unknown,
            "bare_chain": self.bare_chain,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: dict[str, Any], n_labels: int) -> Self:
        """Restore the models; ValueError when arrays and facts do not fit together."""
        dtype, unknown = arrays["state"].dtype, facts["unknown"]
        if dtype not in (np.float32, np.float64) or unknown not in (0, 1):
            raise ValueError(f"tables of {dtype}, unknown = {unknown}")
        streams = Streams.from_arrays(*part_of(arrays, facts, "streams"))
        templates = tuple(Template.parse(t) for t in facts["templates"])
        models = cls(templates, streams, n_labels, dtype, unknown, facts["bare_chain"])
        for name, uniform in models.tables.items():
            values = table(arrays, name, uniform.dtype, uniform.shape)
            if np.isnan(values).any():
                raise ValueError(f"table {name} has entries that are not numbers")
            setattr(models, name, values)
        return models
