"""Settings of the command line (``--set``): text to typed parameters and options."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sslbench.engine.corpus.files import read_text
from sslbench.engine.errors import UserError
from sslbench.experiment.planning.description import (
    MethodDescription,
    method_description,
)
from sslbench.experiment.planning.values import typed_values
from sslbench.experiment.request.words import in_words
from sslbench.plugins import Registry
from sslbench.plugins.hooks import suggestion
from sslbench.plugins.registrations import DatasetInfo, load_target

#: preset of all methods: the defaults of their parameters on every task
PLAIN = "plain"
#: of the values of all settings
MOST_COMBINATIONS = 10_000
Describe = Callable[[Registry, str, Mapping[str, Any]], MethodDescription]


class Setting(NamedTuple):
    """``[owner.]key=value``.

    owner: a method, dataset, model or text feature; "" = every method with this parameter.
    """

    owner: str
    key: str
    value: str


def parse_settings(texts: Sequence[str]) -> Iterator[Setting]:
    """Split each ``[OWNER.]KEY=VALUE``; UserError for a text of another form."""
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UserError(f"--set {text!r}", hint="write --set key=value")
        owner, _, key = name.rpartition(".")
        yield Setting(owner, key, value)


def combinations(texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Settings with one value each, from settings with values separated by commas.

    ``["a=1,2", "b=3"]`` gives ``("a=1", "b=3")`` and ``("a=2", "b=3")``. A list or mapping, written
    as JSON, is one value.

    UserError for more than `MOST_COMBINATIONS`.
    """
    number = number_of_combinations(texts)
    if number > MOST_COMBINATIONS:
        message = f"--set has {number:,} combinations of values"
        raise UserError(message, hint=f"give at most {MOST_COMBINATIONS:,}")
    return list(product(*_choices(texts)))


def number_of_combinations(texts: Sequence[str]) -> int:
    """Return how many settings `combinations` makes of these."""
    return math.prod(map(len, _choices(texts)))


def _choices(texts: Sequence[str]) -> list[list[str]]:
    """The settings with one value that each of them stands for."""
    choices = []
    for text in texts:
        name, equals, value = text.partition("=")
        parts = [value] if value[:1] in ("[", "{") else value.split(",")
        choices.append([f"{name}{equals}{part}" for part in parts])
    return choices


def method_params(
    texts: Sequence[str],
    plugins: Registry,
    method: str,
    preset: str | None = None,
    graph: Mapping[str, str | int] | None = None,
) -> dict[str, Any]:
    """Parameters of a method that are not left to its defaults, as plain typed values.

    They are those of the settings, then those of the corpus's graph, then those of a preset.

    preset: of which a method may have none.  graph: see `DatasetInfo`.
    UserError for a value of a wrong type or out of bounds.
    """
    values = {s.key: s.value for s in parse_settings(texts) if s.owner in ("", method)}
    if not values and preset is None and not graph:
        return {}
    default = method_description(plugins, method, {})
    given = default.presets.get(preset, {}) if preset is not None else {}
    given |= default.of_graph(graph or {})
    given |= {key: plain_value(value) for key, value in values.items() if key in default.params}
    params = method_description(plugins, method, given).params
    return {key: params[key] for key in given}


def owned_params(
    texts: Sequence[str], plugins: Registry, name: str, describe: Describe
) -> MethodDescription:
    """A model, or features learned from text, with the parameters that ``NAME.key=value`` give.

    describe: `model_description` or `learner_description`.
    UserError for an unknown key and a value of a wrong type or out of bounds.
    """
    values = {s.key: plain_value(s.value) for s in parse_settings(texts) if s.owner == name}
    known = describe(plugins, name, {})
    for key in values:
        if key not in known.params:
            raise UserError(f"{name}: no parameter {key!r}", hint=suggestion(key, known.params))
    return describe(plugins, name, values) if values else known


def dataset_options(info: DatasetInfo, values: Mapping[str, str]) -> dict[str, Any]:
    """All options of a dataset as plain typed values; UserError for a wrong one.

    values: those that the user set, as text.
    """
    if not info.options:
        if values:
            raise UserError(f"dataset {info.name} has no options", hint="leave out --set")
        return {}
    struct = load_target(info.options, f"options of {info.name}")
    plain = {key: plain_value(value) for key, value in values.items()}
    try:
        options: dict[str, Any] = msgspec.to_builtins(typed_values(struct, plain))
    except msgspec.ValidationError as error:
        hint = f"see sslbench show {info.name}"
        message = f"option of {info.name}: {in_words(error, plain, struct)}"
        raise UserError(message, hint=hint) from error
    return options


def plain_value(text: str) -> Any:
    """Lists and mappings, written as JSON, decoded; other text as it is, for msgspec to convert.

    @FILE is the list of the lines of a file, without blank ones; UserError if it cannot be read.
    """
    if text.startswith("@"):
        path = Path(text[1:]).expanduser()
        lines = read_text(path, hint="a list has one value per line").splitlines()
        return [line.strip() for line in lines if line.strip()]
    if text[:1] in ("[", "{"):
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(text)
    return text


def preset_lines(preset: str, plugins: Registry, methods: Sequence[str]) -> list[str]:
    """What to know of a preset, a line for a method; UserError if no method has it."""
    if preset == PLAIN:
        return []
    described = {name: method_description(plugins, name, {}) for name in methods}
    presets = {name: each.presets for name, each in described.items()}
    if not any(preset in each for each in presets.values()):
        names = sorted({name for each in presets.values() for name in each})
        hint = suggestion(preset, names) if names else "leave out --preset"
        raise UserError(f"{' and '.join(methods)}: no preset {preset!r}", hint=hint)
    lines = []
    for name, method in described.items():
        if preset not in method.presets:
            lines.append(f"{name}: no preset {preset!r}, its defaults are used")
        elif preset in method.preset_notes:
            lines.append(f"{name}, preset {preset}: {method.preset_notes[preset]}")
    return lines


def check_settings(
    texts: Sequence[str], plugins: Registry, methods: Sequence[str], others: Sequence[str]
) -> None:
    """UserError for a setting that no method of the request has.

    others: datasets, models and text features, which check their own.
    """
    for owner, key, _ in parse_settings(texts):
        if owner in others:
            continue
        if owner and owner not in methods:
            raise UserError(
                f"--set {owner}.{key}: {owner} is not part of this run",
                hint=suggestion(owner, [*methods, *others]),
            )
        names = [owner] if owner else methods
        fields = {f for name in names for f in method_description(plugins, name, {}).params}
        if key not in fields:
            raise UserError(
                f"{' and '.join(names)}: no parameter {key!r}", hint=suggestion(key, fields)
            )
