"""The text models of CRF++ (``crf_learn -t``).

Parts with an empty line after each (EncoderFeatureIndex::save in its public source): a header with
``cost-factor``, by which scores are multiplied, and ``maxid``, the number of weights; the labels;
the templates; the features, each with the number of its first weight; then the weights. A feature
``U...`` has a weight for each label, ``B...`` one for each pair of labels, the first one slower.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sslbench.conversion.dumps import Dump, Lines, number_of, splits
from sslbench.engine.errors import UserError
from sslbench.engine.features.crfpp import MACRO, parse_line
from sslbench.engine.features.templates import Template
from sslbench.engine.features.values import Values
from sslbench.engine.types import F64

MAX_WEIGHTS = 2**31 - 1
_PAD = re.compile(r"_B([+-])([1-9]\d{0,2})")
_DEFAULT = {1: ("word",), 2: ("word", "pos")}


@dataclass(frozen=True)
class _Line:
    """A template, and the texts before, between and after its values."""

    template: Template
    start: str
    separators: tuple[str, ...]
    end: str

    def values(self, feature: str) -> list[Values]:
        """The tuples of values for which the template gives this feature."""
        body = feature[len(self.start) : len(feature) - len(self.end)]
        fits = feature.startswith(self.start) and feature.endswith(self.end)
        if not fits or len(feature) < len(self.start) + len(self.end):
            return []
        if not self.template.atoms:
            return [] if body else [()]
        return [tuple(map(_value, each)) for each in splits(body, self.separators)]


class _Templates:
    """The templates by the text before their first value."""

    def __init__(self, lines: Sequence[_Line]) -> None:
        self._by_start: dict[str, list[_Line]] = defaultdict(list)
        for line in lines:
            self._by_start[line.start].append(line)
        self._longest = max(map(len, self._by_start), default=0)

    def beginning(self, feature: str) -> Iterator[_Line]:
        """Those that may give a feature."""
        for length in range(min(self._longest, len(feature)) + 1):
            yield from self._by_start.get(feature[:length], ())


def _value(text: str) -> str:
    """CRF++ writes the first position after a sentence as _B+1."""
    pad = _PAD.fullmatch(text)
    return f"_E+{pad[2]}" if pad and pad[1] == "+" else text


def read_text_model(lines: Lines, columns: Sequence[str] | None) -> Dump:
    """The model of a text file.

    columns: names of the columns of its training file; None = word, or word and pos.
    UserError for a file that is none, or templates that are not supported.
    """
    header = dict(_pair(line, ":") for line in lines.until(""))
    size = _whole(header.get("maxid", ""), MAX_WEIGHTS)
    factor = number_of(header.get("cost-factor", "1"))
    width = _whole(header.get("xsize", ""), 1000)
    names = tuple(columns or _DEFAULT.get(width, ()))
    if len(names) < width:
        raise UserError(f"it reads {width} columns", hint="name them with --columns word,pos,...")
    dump = Dump.of_labels(list(lines.until("")))
    dump.columns = names[:width]
    templates = _Templates([_template(line, names) for line in lines.until("")])
    features = [(lines.number, *_feature(line)) for line in lines.until("")]
    weights = np.array([number_of(line) for line in lines if line])
    if len(weights) != size:
        raise UserError(f"{len(weights):,} weights in place of {size:,}")
    for lines.number, number, text in features:  # errors name the line
        size = len(dump.labels) ** (1 if text[0] == "U" else 2)
        if number + size > len(weights):
            raise UserError(f"the weights of {text!r} are beyond the last one")
        _add(dump, templates, text, factor * weights[number : number + size])
    return dump


def _pair(line: str, separator: str) -> tuple[str, str]:
    name, colon, rest = line.partition(separator)
    if not colon:
        raise UserError(f"{line!r} is no 'name{separator} value'")
    return name.strip(), rest.strip()


def _whole(text: str, most: int) -> int:
    if not re.fullmatch(r"\d{1,10}", text) or not 0 < int(text) <= most:
        raise UserError(f"{text!r} is no number from 1 to {most:,}")
    return int(text)


def _feature(line: str) -> tuple[int, str]:
    number, text = _pair(line, " ")
    if not re.fullmatch(r"\d{1,10}", number) or text[:1] not in ("U", "B"):
        raise UserError(f"{line!r} is no feature: a number, then U... or B...")
    return int(number), text


def _template(line: str, columns: Sequence[str]) -> _Line:
    """The line B has no values: its weights are those of all transitions."""
    templates = parse_line(line, columns)
    if not templates:
        if "%" in line:
            raise UserError(f"cannot read the template {line!r}")
        return _Line(Template(()), line, (), "")
    start, *separators = _between(line)
    return _Line(templates[0], start, tuple(separators[:-1]), separators[-1] if separators else "")


def _between(line: str) -> list[str]:
    places = [0, *(place for match in MACRO.finditer(line) for place in match.span()), len(line)]
    return [line[a:b] for a, b in zip(places[::2], places[1::2], strict=True)]


def _add(dump: Dump, templates: _Templates, text: str, weights: F64) -> None:
    """Add the weights of a feature to all attributes that CRF++ takes for it."""
    is_state = text[0] == "U"
    codes = np.flatnonzero(weights).tolist()
    for line in templates.beginning(text):
        for values in line.values(text):
            if not is_state and not line.template.atoms:
                dump.transitions += weights.reshape(dump.transitions.shape)
                continue
            cell = (dump.states if is_state else dump.edges)[line.template][values]
            for code in codes:
                cell[code] += float(weights[code])
