"""Template files of the user in place of a registered featurizer."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sslbench.engine.features import TemplateFeaturizer, load_featurizer
from sslbench.plugins import Registry
from sslbench.plugins.registrations import FeaturizerInfo

FILE_PREFIX = "file-"


@dataclass(frozen=True, kw_only=True)
class FileFeaturizer(FeaturizerInfo):
    """A featurizer of the templates of a file, in the form of the project."""

    templates: tuple[str, ...]

    def load(self) -> Callable[[], TemplateFeaturizer]:
        """What makes the featurizer."""
        return partial(TemplateFeaturizer, self.templates)


def is_template_file(name: str, plugins: Registry) -> bool:
    """Whether a name given for a featurizer is a file, and no registered featurizer."""
    return name not in plugins.featurizers and os.path.isfile(name)


def read_templates(path: str, columns: Sequence[str]) -> tuple[str, ...]:
    """The templates of a file of CRF++ or Wapiti, or in the project's own form (lines, or TOML).

    columns: names of the columns of the data, in their order.
    UserError with file and line for a line that cannot be parsed.
    """
    return tuple(map(str, load_featurizer(path, columns).templates))


def file_name(path: str) -> str:
    """The name of the featurizer of a file, as records have it."""
    return FILE_PREFIX + (re.sub(r"[^A-Za-z0-9_.-]", "_", Path(path).name) or "templates")


def with_templates(plugins: Registry, name: str, templates: Sequence[str]) -> Registry:
    """The registry, which knows these templates by a name; as it is if there are none."""
    if not templates:
        return plugins
    info = FileFeaturizer(
        name=name,
        summary="templates of a file",
        reference="the user's own",
        target="sslbench.engine.features:TemplateFeaturizer",
        templates=tuple(templates),
    )
    return replace(plugins, featurizers={**plugins.featurizers, name: info})
