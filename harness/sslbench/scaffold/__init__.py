"""Write a small plugin package that installs, runs and passes its tests.

The templates are the files below ``templates``: those of "common", those of the kind, and those of
a library, which replace others.
"""

from __future__ import annotations

import keyword
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Literal

from sslbench.engine.errors import UserError
from sslbench.plugins import registry

Kind = Literal["method", "dataset", "featurizer", "model"]

_TEMPLATES = Path(__file__).with_name("templates")
_SUFFIX = ".template"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LONGEST = 40
#: sentences in the generated files of a dataset
_TRAIN, _DEV, _TEST, _UNLABELED = 120, 20, 60, 120


def write_package(kind: Kind, name: str, parent: Path, *, torch: bool = False) -> Path:
    """Write the package into the folder ``parent / name`` and return that folder.

    Parameters
    ----------
    kind: kind of the plugin.
    name: what users will type; the Python package is called ``sslbench_NAME``.
    torch: whether a model is a network in PyTorch.

    UserError when the name cannot be used, is taken, or the folder exists.
    """
    _check_name(kind, name)
    folder = parent / name
    if folder.exists():
        raise UserError("already exists", file=folder, hint="give another name or --dir")
    if not parent.is_dir():
        raise UserError("is not a folder", file=parent, hint="create it, or give another --dir")
    try:
        for path, text in _files(kind, name, torch).items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    except BaseException:  # half a package is of no use
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _check_name(kind: Kind, name: str) -> None:
    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or len(name) > _LONGEST:
        raise UserError(
            f"{name!r} cannot be the name of a plugin and of a Python module",
            hint="use small letters, digits and _, a letter first",
        )
    plugins = registry()
    if name in plugins.of_kind(f"{kind}s"):
        raise UserError(
            f"{kind} {name!r} is already registered by {plugins.origins[f'{kind}s', name]}",
            hint="give another name",
        )


def _files(kind: Kind, name: str, torch: bool) -> dict[Path, str]:
    """The content of every file, by its path in the package's folder."""
    package = f"sslbench_{name}"
    values = {
        "name": name,
        "kind": kind,
        "package": package,
        "title": "".join(part.capitalize() for part in name.split("_")),
        "libraries": ', "torch"' if torch else "",
    }
    files: dict[Path, str] = {}
    for source in ("common", kind, *(["torch"] if torch else [])):
        root = _TEMPLATES / source
        for path in sorted(root.rglob(f"*{_SUFFIX}")):
            relative = str(path.relative_to(root)).removesuffix(_SUFFIX)
            target = relative.replace("PACKAGE", package).replace("NAME", name)
            content = Template(path.read_text(encoding="utf-8"))
            files[Path(target)] = content.substitute(values)
    files[Path(package, "py.typed")] = ""
    if kind == "dataset":
        files |= dict(_corpus_files(Path(package, "data")))
    return files


def _corpus_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """CoNLL files of generated sentences: a word and its label per line, a blank line between."""
    from sslbench.testing.toys import toy_dataset  # imports numpy

    splits = toy_dataset(train=_TRAIN, dev=_DEV, test=_TEST).splits
    raw = toy_dataset(train=_UNLABELED, seed=1).splits["train"].drop("label")
    for name, corpus in {**splits, "unlabeled": raw}.items():
        lines = []
        for number in range(corpus.n_sentences):
            columns = [corpus.sentence(number, column) for column in corpus.columns]
            lines += [" ".join(token) for token in zip(*columns, strict=True)] + [""]
        yield folder / f"{name}.conll", "\n".join(lines)
