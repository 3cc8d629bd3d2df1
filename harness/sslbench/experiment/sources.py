"""The sources that a result depends on: imports of the runner and of the plugins of a run."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Collection, Iterable
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

CORE = "sslbench"
_RUNNER = f"{CORE}.experiment.runner"
# Cannot change a result: downloads are verified by their sha256.
_NO_INFLUENCE = frozenset({f"{CORE}.experiment.data.fetch"})


def sources_hash(targets: Iterable[str]) -> str:
    """Sha256 over names and bytes of the modules that a run with these plugins can import.

    Starting from the runner and the targets, all import statements are followed, wherever in a
    file they are, within sslbench and the top-level packages of the targets. Nothing is imported.
    Other modules do not affect the hash: a new dataset or command does not make old runs stale.

    Parameters
    ----------
    targets: ``"module:attribute"`` of each plugin of the run.
    """
    roots = {_RUNNER, *(target.partition(":")[0] for target in targets)}
    digest = hashlib.sha256()
    for name, path in sorted(_reached(roots).items()):
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _reached(roots: Collection[str]) -> dict[str, Path]:
    """The files of all modules that the roots import, directly or not, by module name."""
    packages = {CORE, *(root.partition(".")[0] for root in roots)}
    files: dict[str, Path] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in files or name in _NO_INFLUENCE or name.partition(".")[0] not in packages:
            continue
        path = _file(name)
        if path is None:  # an attribute of a module
            continue
        files[name] = path
        waiting += _imports(path, name)
    return files


def _imports(path: Path, name: str) -> Iterable[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return _names(path, package, path.stat().st_mtime_ns)


@cache
def _names(path: Path, package: str, _changed: int) -> tuple[str, ...]:
    """The package of a module and all names that it may import as modules.

    ``from a.b import c`` gives ``a.b`` and ``a.b.c``. Cached until the file changes, since the runs
    of a grid read the same files.
    """
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except SyntaxError:  # its import will report it
        return (package,)
    names = {package}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names.update((base, *(f"{base}.{alias.name}" for alias in node.names)))
    return tuple(names)


@cache
def _spec(package: str) -> ModuleSpec | None:
    return find_spec(package)  # imports nothing for a top-level name


def _file(module: str) -> Path | None:
    top, *parts = module.split(".")
    spec = _spec(top)
    if spec is None:
        return None
    for folder in spec.submodule_search_locations or ():
        path = Path(folder, *parts)
        for source in (path / "__init__.py", path.with_suffix(".py")):
            if source.is_file():
                return source
    if not parts and spec.origin and spec.origin.endswith(".py"):
        return Path(spec.origin)
    return None
