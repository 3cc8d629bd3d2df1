"""Distributions as pip leaves them, made of strings; processes that see them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sslbench.engine.files.folders import cache_folder
from support.waiting import HANG

#: with what it has found out of the packages, for all tests and the next time
MYPY = ("-m", "mypy", "--cache-dir", str(cache_folder() / "mypy"))


def one_method(name: str, target: str) -> str:
    """The code of a plugin that registers one method."""
    return f"""
from sslbench import MethodInfo, hookimpl

@hookimpl
def sslbench_methods():
    return [MethodInfo(name={name!r}, summary="s", reference="r", target={target!r})]
"""


class Site:
    """A folder of fake installed distributions, and a process that sees them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, distribution: str, module: str, code: str, entry: str | None = None) -> None:
        """Write a module and the metadata that registers it as an entry point."""
        (self.folder / f"{module}.py").write_text(code, encoding="utf-8")
        self.metadata(distribution, f"[sslbench]\n{entry or module} = {module}\n")

    def metadata(self, distribution: str, entry_points: str) -> None:
        """Write a dist-info folder."""
        info = self.folder / f"{distribution.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n", encoding="utf-8"
        )
        (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")

    def python(
        self, *arguments: str, cwd: Path | None = None, input: str | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run Python with the folder on its path."""
        path = os.pathsep.join([str(self.folder), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep), **variables}
        return subprocess.run(
            [sys.executable, *arguments],
            env=environment,
            cwd=cwd,
            input=input,
            capture_output=True,
            text=True,
            timeout=HANG,
        )
