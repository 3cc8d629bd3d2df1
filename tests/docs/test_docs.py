"""The documentation keeps up with the code."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from sslbench.cli import COMMANDS
from sslbench.engine.crf import terms
from sslbench.experiment.inputs.problem import Problem
from sslbench.experiment.records.record import RunRecord
from sslbench.plugins import registry
from sslbench.plugins.hooks import KINDS, Hooks
from sslbench.plugins.registrations import Registration

TOP = Path(__file__).parents[2]
README = (TOP / "README.md").read_text(encoding="utf-8")
REFERENCE = (TOP / "docs" / "reference.md").read_text(encoding="utf-8")
PLUGINS = (TOP / "docs" / "plugins.md").read_text(encoding="utf-8")
ARCHITECTURE = (TOP / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_every_hook_and_every_field_of_a_registration_is_documented() -> None:
    hooks = [name for name in vars(Hooks) if name.startswith("sslbench_")]
    assert len(hooks) == len(KINDS)
    common = {field.name for field in fields(Registration)}
    words = set(re.findall(r"`([a-z_]+)", PLUGINS))
    assert common | set(hooks) <= words | {hook for hook in hooks if f"`{hook}()`" in PLUGINS}
    for info in KINDS.values():
        assert info.__name__ in PLUGINS
        assert {field.name for field in fields(info)} - common <= words


def test_every_field_of_a_problem_and_every_term_is_documented() -> None:
    assert all(f"`{field.name}`" in PLUGINS for field in fields(Problem))
    assert all(f"`{name}(" in PLUGINS for name in ("HardLabels", "SoftTargets", "PartialLabels"))
    assert {"HardLabels", "SoftTargets", "PartialLabels"} <= set(vars(terms))


def test_every_key_of_a_record_is_documented() -> None:
    assert all(f"`{key}`" in ARCHITECTURE for key in RunRecord.__struct_fields__)


def test_every_command_and_built_in_name_is_in_the_reference() -> None:
    assert all(f"`sslbench {name}" in REFERENCE for name in COMMANDS)
    plugins = registry()
    for kind in ("methods", "datasets", "featurizers"):
        for name in plugins.of_kind(kind):
            if plugins.origins[kind, name].distribution == "sslbench":
                assert f"`{name}`" in REFERENCE, name


@pytest.mark.parametrize("text", [README, REFERENCE, PLUGINS, ARCHITECTURE])
def test_files_that_are_named_exist(text: str) -> None:
    for path in re.findall(r"`((?:tests|docs|crf|harness|\.ci)/[\w./]+)`", text):
        places = [TOP / path, TOP / "harness" / "sslbench" / path]
        assert any(place.exists() for place in places), path
    for link in re.findall(r"\]\(([\w./]+\.md)\)", text):
        assert (TOP / link).exists() or (TOP / "docs" / link).exists()


def test_the_two_commands_come_first_and_are_what_ci_runs() -> None:
    commands = re.findall(r"^```sh\n(python3 -m venv .*?)\n```$", README, re.M)
    assert len(commands) == 2
    assert README.index(commands[1]) < README.index("## Compare")
    assert commands[0].endswith("sslbench suite run smoke && .venv/bin/sslbench suite report smoke")
    assert commands[1].endswith("pytest -rs -n auto")


def test_each_promise_about_hostile_methods_has_a_test() -> None:
    """The table of docs/architecture.md: its last column names a file and a function."""
    table = ARCHITECTURE.partition("| what a method might do |")[2].partition("\n\n")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines()[2:]]
    assert len(rows) > 10
    for *_, test in rows:
        file, name = test.strip(" `").split("::")
        assert f"def {name}(" in (TOP / "tests" / file).read_text(encoding="utf-8")
