"""Which sources a result depends on: the core's, and the modules that its plugins import."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

CORE = "sslbench"
# These parts of the core cannot change a result (what is fetched is verified by its sha256);
# editing them must not make runs stale.
_NO_INFLUENCE = ("report/", "cli/", "experiment/fetch.py")


@cache
def core_hash() -> str:
    """Sha256 over names and bytes of the core's sources."""
    digest = hashlib.sha256()
    for folder in _folders(CORE):
        for path in sorted(folder.rglob("*.py")):
            name = path.relative_to(folder).as_posix()
            if not name.startswith(_NO_INFLUENCE):
                _add(digest, name, path)
    return digest.hexdigest()


def plugin_hash(target: str) -> str:
    """Sha256 over the module of a target and all modules of its distribution it leads to.

    Followed are the import statements of the top-level package the target is in, wherever in a
    file they stand; nothing is imported. A plugin beside it in the same package that the target
    does not import leaves the hash as it is: a new data set does not make old runs stale.

    Parameters
    ----------
    target: ``"module:attribute"``. One within the core gives the hash of nothing: see `core_hash`.
    """
    module = target.partition(":")[0]
    digest = hashlib.sha256()
    if module.partition(".")[0] != CORE:
        for name, path in sorted(_reached(module).items()):
            _add(digest, name, path)
    return digest.hexdigest()


def _reached(module: str) -> dict[str, Path]:
    top = module.partition(".")[0]
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = None if name in found else _file(name)
        if path is None:  # seen before, or an attribute of a module
            continue
        found[name] = path
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        waiting += [package] if package else []
        waiting += [to for to in _imports(path, package) if to.partition(".")[0] == top]
    return found


def _imports(path: Path, package: str) -> Iterator[str]:
    """Names that may be modules: ``from a.b import c`` gives ``a.b`` and ``a.b.c``."""
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except SyntaxError:  # whoever imports it will say so
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _file(module: str) -> Path | None:
    top, *parts = module.split(".")
    for folder in _folders(top):
        path = folder.joinpath(*parts)
        for source in (path / "__init__.py", path.with_suffix(".py")):
            if source.is_file():
                return source
    if not parts:
        spec = find_spec(top)
        if spec and spec.origin and spec.origin.endswith(".py"):
            return Path(spec.origin)
    return None


def _folders(package: str) -> Iterable[Path]:
    # For a top-level name find_spec() does not import anything.
    spec = find_spec(package)
    return [Path(item) for item in (spec and spec.submodule_search_locations) or ()]


def _add(digest: hashlib._Hash, name: str, path: Path) -> None:
    digest.update(f"{name}\0".encode())
    digest.update(hashlib.sha256(path.read_bytes()).digest())
