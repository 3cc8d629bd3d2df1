"""The text that ``crfsuite dump`` prints, and ``pycrfsuite.Tagger.dump``."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence

import numpy as np

from sslbench.conversion.dumps import Dump, Lines, number_of, splits
from sslbench.conversion.export import FIRST, LAST
from sslbench.engine.errors import UserError
from sslbench.engine.features.templates import Template
from sslbench.engine.features.values import Values

_NAMED = re.compile(r" *(\d+): (.*)")
_WEIGHT = re.compile(r"  \((\d)\) (.*): (\S+)")
_ARROW = " --> "


def read_dump(lines: Lines, columns: Sequence[str] | None) -> Dump:
    """The model of a dump whose attributes are named ``column[offset]|...=value|...``.

    These are the names that ``sslbench convert`` writes, and those of the examples of CRFsuite.
    Weights have the six decimals of the dump.

    columns: names of the columns that the tagger reads; None = those of the attributes, in order.
    UserError for a file that is none, and for attributes with other names.
    """
    for _ in lines.until("}"):  # the header
        pass
    dump = Dump.of_labels(list(_names(lines, "LABELS = {")))
    parsed: dict[str, tuple[Template, list[Values]] | None] = {}
    read: dict[str, None] = {}
    for name in _names(lines, "ATTRIBUTES = {"):
        parsed[name] = None if name in (FIRST, LAST) else _attribute(name, columns)
        template, _ = parsed[name] or (Template(()), [])
        read.update((atom.column.partition(".")[0], None) for atom in template.atoms)
    dump.columns = tuple(columns or read)
    label_of = {label: code for code, label in enumerate(dump.labels)}
    for source, target, weight in _weights(lines, "TRANSITIONS = {", label_of, label_of):
        dump.transitions[label_of[source], label_of[target]] = weight
    dump.start, dump.stop = np.zeros(len(dump.labels)), np.zeros(len(dump.labels))
    for source, target, weight in _weights(lines, "STATE_FEATURES = {", parsed, label_of):
        ways_of = parsed[source]
        if ways_of is None:
            (dump.start if source == FIRST else dump.stop)[label_of[target]] = weight
            continue
        template, ways = ways_of
        for values in ways:
            dump.states[template][values][label_of[target]] += weight
    return dump


def _begin(lines: Lines, title: str) -> None:
    line = next((line for line in lines if line), "")
    if line != title:
        raise UserError(f"{line!r} where {title!r} should be")


def _names(lines: Lines, title: str) -> Iterator[str]:
    _begin(lines, title)
    for number, line in enumerate(lines.until("}")):
        entry = _NAMED.fullmatch(line)
        if not entry or int(entry[1][:12]) != number:
            raise UserError(f"{line!r} is not number {number} and a name")
        yield entry[2]


def _weights(
    lines: Lines, title: str, sources: Container[str], targets: Container[str]
) -> Iterator[tuple[str, str, float]]:
    """Source, target and weight of each line; names may hold the arrow between them."""
    _begin(lines, title)
    for line in lines.until("}"):
        match = _WEIGHT.fullmatch(line)
        if not match:
            raise UserError(f"{line!r} is not '(type) source{_ARROW}target: weight'")
        pairs = [
            (source, target)
            for source, target in splits(match[2], [_ARROW])
            if source in sources and target in targets
        ]
        if len(pairs) != 1:
            raise UserError(f"{match[2]!r} does not name a source and a target that are listed")
        yield *pairs[0], number_of(match[3])


def _attribute(name: str, columns: Sequence[str] | None) -> tuple[Template, list[Values]]:
    """Template and values of an attribute."""
    text, equals, value = name.partition("=")
    try:
        template = Template.parse(text, columns)
    except UserError as problem:
        raise UserError(
            f"attribute {name!r} is not named as a template with a value: {problem.message}",
            hint="only names such as word[-1]|word[0]=of|the can be read",
        ) from None
    if not template.atoms:
        return template, [()]
    if not equals:
        raise UserError(f"attribute {name!r} has no value")
    return template, splits(value, ["|"] * (len(template.atoms) - 1))
