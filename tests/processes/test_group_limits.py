"""Memory limits of control groups, in made-up folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from sslbench.processes.memory import group_limits

V2, V1 = "sys/fs/cgroup", "sys/fs/cgroup/memory"


@pytest.mark.parametrize(
    ("groups", "files", "limits"),
    [
        ("0::/\n", {f"{V2}/memory.max": "900\n"}, [900]),
        ("0::/a/b\n", {f"{V2}/a/memory.max": "900\n", f"{V2}/a/b/memory.max": "max\n"}, [900]),
        ("4:cpu:/x\n3:cpu,memory:/job\n", {f"{V1}/job/memory.limit_in_bytes": "7\n"}, [7]),
        ("4:cpu:/x\n", {f"{V1}/x/memory.limit_in_bytes": "7\n"}, []),
        ("no line of a group\n", {}, []),
    ],
)
def test_group_limits(
    tmp_path: Path, groups: str, files: dict[str, str], limits: list[int]
) -> None:
    for name, text in {"proc/self/cgroup": groups, **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert group_limits(tmp_path) == limits


def test_without_control_groups(tmp_path: Path) -> None:
    assert group_limits(tmp_path) == []
