"""Digests of the source code that a result depends on, one per component.

Comments, docstrings, formatting, type-checking imports and the names of modules do not enter a
digest: what remains is what Python executes. A digest of a component covers all of its modules, so
that a change in any of them is a change of the component.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from sslbench.engine.files import derived
from sslbench.engine.files.folders import cache_folder

CORE = "sslbench"
#: modules and packages of the core by component; those that are not named cannot change a result
CORE_COMPONENTS: Mapping[str, tuple[str, ...]] = {
    "engine": ("engine.crf", "engine.compilation", "engine.spread", "engine.types"),
    "features": ("engine.corpus", "engine.features"),
    "graph": ("engine.graph", "experiment.inputs.problem_graph"),
    "protocol": (
        "experiment.inputs",
        "experiment.checks",
        "experiment.data.dataset",
        "experiment.data.userdata",
        "experiment.run",
        "experiment.planning.space",
        "engine.dev_labels",
        "method",
    ),
    "scorer": ("experiment.metrics",),
}
_CACHE_FILE = "sources"


class Source(NamedTuple):
    """What a source file contributes to a digest.

    body: sha256 of its statements without imports and docstrings.
    imports: (absolute name of a module, imported names) of each import; () = the module itself.
    """

    body: str
    imports: tuple[tuple[str, tuple[str, ...]], ...]


def core_digest(component: str) -> str:
    """Sha256 of one of CORE_COMPONENTS."""
    return _digest(_core_files(component))


def plugin_digest(target: str) -> str:
    """Sha256 of the modules of a plugin that its target can import, and of its data files.

    Import statements are followed from the target's module within its top-level package, wherever
    in a file they stand; nothing is imported. Data files are those in the folder of the target's
    package. "" for a target of the core, which is covered by its components.

    target: ``"module:attribute"``.
    """
    module = target.partition(":")[0]
    if _top(module) == CORE:
        return ""
    return _digest(_reached(module), _data_files(module))


def uses_graph(target: str) -> bool:
    """Whether modules of a plugin import the package of graphs, directly."""
    graph = f"{CORE}.engine.graph"
    for name, path in _reached(target.partition(":")[0]).items():
        for module, names in _source(path, _package_of(name, path)).imports:
            if any(f"{each}.".startswith(f"{graph}.") for each in _targets(module, names)):
                return True
    return False


def _digest(files: Mapping[str, Path], data: Iterable[Path] = ()) -> str:
    """Names of modules do not count: the digests of the files are sorted."""
    sources = {name: _source(path, _package_of(name, path)) for name, path in files.items()}
    parts = [_with_imports(source, sources) for source in sources.values()]
    parts += [hashlib.sha256(path.read_bytes()).hexdigest() for path in data]
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()


def _with_imports(source: Source, sources: Mapping[str, Source]) -> str:
    """A digest of a file with its imports.

    An import from the same component stands for the content of the imported file; one from another
    component of the core or of the plugin for its names alone; any other for its module.
    """
    lines = [source.body]
    for module, names in source.imports:
        for name in names or ("",):
            plain, renamed, alias = name.partition(" as ")
            inner = f"{module}.{plain}" if f"{module}.{plain}" in sources else module
            if inner in sources:
                origin = sources[inner].body
                shown = name if inner == module else renamed + alias
            else:
                origin = "" if _top(module) == CORE else module
                shown = name
            lines.append(f"{origin} {shown}")
    return hashlib.sha256("\n".join([lines[0], *sorted(lines[1:])]).encode()).hexdigest()


def _core_files(component: str) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for part in CORE_COMPONENTS[component]:
        name = f"{CORE}.{part}"
        path = _file(name)
        if path is None:
            continue
        files[name] = path
        if path.name == "__init__.py":
            files |= dict(_package_files(name, path.parent))
    return files


def _package_files(package: str, folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        yield ".".join([package, *parts]), path


def _reached(root: str) -> dict[str, Path]:
    """The files of all modules of a plugin that its root can import, by module name."""
    top = _top(root)
    files: dict[str, Path] = {}
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name in files or _top(name) != top:
            continue
        path = _file(name)
        if path is None:  # an attribute of a module
            continue
        files[name] = path
        package = _package_of(name, path)
        waiting.append(package)
        for module, names in _source(path, package).imports:
            waiting += _targets(module, names)
    return files


def _targets(module: str, names: Collection[str]) -> list[str]:
    """What an import may import as modules: ``from a.b import c`` may import a.b and a.b.c."""
    plain = (name.partition(" as ")[0] for name in names)
    return [module, *(f"{module}.{name}" for name in plain if name)]


def _data_files(module: str) -> list[Path]:
    """Files beside the module of a plugin that are not source code; none outside a package."""
    path = _file(module)
    if path is None or not (path.parent / "__init__.py").is_file():
        return []
    files = (file for file in path.parent.rglob("*") if file.is_file())
    return sorted(file for file in files if not _is_code(file))


def _is_code(path: Path) -> bool:
    return path.suffix in (".py", ".pyc", ".pyi") or "__pycache__" in path.parts


def _top(module: str) -> str:
    return module.partition(".")[0]


def _package_of(name: str, path: Path) -> str:
    return name if path.name == "__init__.py" else name.rpartition(".")[0]


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


def _source(path: Path, package: str) -> Source:
    """The source of a file, from the cache of parsed files if its content is known."""
    data = path.read_bytes()
    key = hashlib.sha256(package.encode() + b"\0" + data).hexdigest()
    known = _known_sources()
    if key not in known:
        known[key] = parse_source(data, package)
    return known[key]


@cache
def _known_sources() -> dict[str, Source]:
    """Parsed files by a hash of their content: parsing all of them takes seconds."""
    stored = derived.find(cache_folder() / _CACHE_FILE, _parser())
    return {
        key: Source(body, tuple((module, tuple(names)) for module, names in imports))
        for key, (body, imports) in json.loads(stored or b"{}").items()
    }


def keep_parsed_sources() -> None:
    """Write the cache of parsed files; a folder that cannot be written is no error."""
    path, content = cache_folder() / _CACHE_FILE, json.dumps(_known_sources()).encode()
    if derived.find(path, _parser()) != content:
        derived.keep(path, _parser(), content)


@cache
def _parser() -> bytes:
    """Hash of this file: what another version of it has parsed is not used."""
    return hashlib.sha256(Path(__file__).read_bytes()).digest()


def parse_source(data: bytes, package: str) -> Source:
    """Parse a source file.

    package: that relative imports start from. A file that is not valid Python, whose import will
    report it, is taken as it is.
    """
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return Source(hashlib.sha256(data).hexdigest(), ())
    stripper = _Stripper(package)
    stripper.visit(tree)
    text = "".join(f"{token}\0" for token in _tokens(tree, []))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    return Source(digest.hexdigest(), tuple(stripper.imports))


class _Stripper(ast.NodeTransformer):
    """Removes docstrings, imports and blocks for type checkers; collects the imports."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.imports: list[tuple[str, tuple[str, ...]]] = []

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """A string alone is a docstring, or a comment."""
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if text else node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        """``if TYPE_CHECKING:`` is not executed."""
        name = node.test.attr if isinstance(node.test, ast.Attribute) else node.test
        if isinstance(name, ast.Name):
            name = name.id
        if name == "TYPE_CHECKING" and not node.orelse:
            return None
        return self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        """A name imported as another counts as both."""
        for alias in node.names:
            renamed = () if alias.asname is None else (f" as {alias.asname}",)
            self.imports.append((alias.name, renamed))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Relative imports become absolute."""
        parts = self.package.split(".")
        above = parts[: len(parts) - node.level + 1] if node.level else []
        module = ".".join([*above, *([node.module] if node.module else [])])
        names = (f"{a.name} as {a.asname}" if a.asname else a.name for a in node.names)
        self.imports.append((module, tuple(names)))


def _tokens(node: object, tokens: list[str]) -> list[str]:
    """A tree as text that does not depend on the version of Python: empty fields are left out.

    tokens: they are added to it; a generator would pass each one on at every depth of the tree.
    """
    if isinstance(node, ast.AST):
        tokens.append(f"({type(node).__name__}")
        for name in node._fields:
            value = getattr(node, name, None)
            if value is None or value == [] or name in ("ctx", "kind", "type_comment"):
                continue
            tokens.append(name)
            _tokens(value, tokens)
        tokens.append(")")
    elif isinstance(node, list):
        tokens.append("[")
        for item in node:
            _tokens(item, tokens)
        tokens.append("]")
    else:
        tokens.append(f"{type(node).__name__} {node!r}")
    return tokens
