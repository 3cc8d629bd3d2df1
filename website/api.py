"""The pages of the API reference: what users and authors of plugins import."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import sslbench
from docstrings import rewritten
from sslbench.experiment.request.parameters import Parameter, parameters
from sslbench.experiment.request.request import RunRequest, TrainRequest

_NAMES: dict[str, tuple[str, tuple[str, ...]]] = {
    "api/python.md": (
        "Functions and estimators",
        ("sslbench.api", "sslbench.sklearn"),
    ),
    "api/results.md": (
        "Taggers and records",
        (
            "sslbench.experiment.run.saved.SavedTagger",
            "sslbench.experiment.run.saved.TrainedTagger",
            "sslbench.experiment.records.record.RunRecord",
            "sslbench.report.two_runs.RunComparison",
            "sslbench.engine.errors.UserError",
        ),
    ),
    "api/methods.md": (
        "For methods",
        (
            "sslbench.method",
            "sslbench.experiment.inputs.problem.Problem",
            "sslbench.experiment.inputs.problem.Tagger",
            "sslbench.experiment.context.context.RunContext",
            "sslbench.experiment.planning.space.SearchAxis",
        ),
    ),
    "api/engine.md": ("The engine", ("sslbench.engine.crf",)),
    "api/text.md": (
        "Corpora, features, datasets",
        ("sslbench.engine.corpus", "sslbench.engine.features", "sslbench.experiment.data.Dataset"),
    ),
    "api/graph.md": ("Graphs", ("sslbench.engine.graph",)),
    "api/plugins.md": (
        "Registrations",
        ("sslbench.plugins.registrations", "sslbench.plugins.hooks"),
    ),
}

#: functions whose signatures are made from the fields of a request, which no parser sees
_REQUESTS: dict[str, type] = {"run": RunRequest, "train": TrainRequest}


def pages() -> dict[str, str]:
    """Text of each page by its path."""
    return {path: _page(title, names) for path, (title, names) in _NAMES.items()}


def _page(title: str, names: tuple[str, ...]) -> str:
    parts = [f"# {title}"]
    for name in names:
        if name == "sslbench.api":
            parts += [_function(each, kind) for each, kind in _REQUESTS.items()]
            filters = ["!^_", *(f"!^{each}$" for each in _REQUESTS)]
            parts.append(f"::: {name}\n    options:\n      filters: {json.dumps(filters)}")
        else:
            parts.append(f"::: {name}")
    return "\n\n".join(parts) + "\n"


def _function(name: str, kind: type) -> str:
    """A function of a request: what it does, and a table of the parameters."""
    function: Callable[..., Any] = getattr(sslbench, name)
    plain = inspect.unwrap(function).__doc__ or ""
    first = next(iter(parameters(kind)))
    head = f"## {name} {{ #sslbench.{name} }}\n\n```python\nsslbench.{name}({first}, ...)\n```"
    table = ["| parameter | type | default | meaning |", "|---|---|---|---|"]
    table += [_row(each) for each in parameters(kind).values()]
    return "\n\n".join([head, rewritten(inspect.cleandoc(plain)), "\n".join(table)])


def _row(each: Parameter) -> str:
    kind = " | ".join(map(inspect.formatannotation, each.types)).replace("NoneType", "None")
    code = [each.name, kind.replace("collections.abc.", "").replace("typing.", "")]
    code += [] if each.required else [repr(each.default)]
    cells = [f"`{text}`" for text in code] + [""] * each.required + [each.doc]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
