"""What the command line costs before it does anything, and how it reports errors."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from sslbench.cli import COMMANDS
from support.command import sslbench
from support.waiting import HANG

HEAVY = re.compile(r"\|\s+(numpy|numba|scipy|pandas|rich|matplotlib|requests|urllib3)\s*$", re.M)
#: most imported modules, those of Python among them: since 3.14 they are a few more
MODULE_LIMIT = 260 if sys.version_info < (3, 14) else 266


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=HANG, check=False
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["list"],
        ["list", "methods"],
        ["data", "path", "conll00"],
        ["data", "info", "conll00"],
    ],
)
def test_nothing_heavy_is_imported(arguments: list[str]) -> None:
    done = run("-X", "importtime", "-m", "sslbench", *arguments)
    assert done.returncode == 0
    assert "sslbench.cli" in done.stderr  # the option did report imports
    assert HEAVY.findall(done.stderr) == []
    assert len(done.stderr.splitlines()) < MODULE_LIMIT


def test_a_plugin_authors_import_is_light() -> None:
    names = "hookimpl, DatasetInfo, FeaturizerInfo, ModelInfo, MethodInfo, RemoteFile, UserError"
    code = f"import sys; from sslbench import {names}; assert 'numpy' not in sys.modules"
    assert run("-c", code).returncode == 0


def test_help_names_every_command() -> None:
    text = sslbench("--help").output
    assert all(re.search(rf"^  {name} ", text, re.M) for name in COMMANDS)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_commands_have_help(name: str) -> None:
    assert sslbench(name, "--help").exit_code == 0


def test_bad_usage_is_one_line_and_status_2() -> None:
    for arguments, expected in (
        (["lst"], "did you mean list"),
        (["list", "metods"], "methods"),
        (["show", "jess"], "did you mean jess_cm"),
        (["data", "info", "conl00"], "did you mean conll00"),
        (["--nonsense"], "No such option"),
    ):
        result = sslbench(*arguments)
        assert result.exit_code == 2, arguments
        assert expected in result.stderr
        assert result.stdout == ""


def test_an_internal_error_is_one_line_unless_debugging(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError("inside")

    monkeypatch.setattr("sslbench.cli.text.registry", broken)
    result = sslbench("list")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "sslbench: internal error: ZeroDivisionError: inside (--debug shows where)"
    ]
    assert isinstance(sslbench("--debug", "list").exception, ZeroDivisionError)


def test_a_file_that_cannot_be_written_is_the_users_to_mend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken() -> None:
        raise PermissionError(13, "Permission denied", "/read/only")

    monkeypatch.setattr("sslbench.cli.text.registry", broken)
    result = sslbench("list")
    assert result.exit_code == 2
    assert result.stderr == "sslbench: /read/only: Permission denied\n"


def test_show_tells_parameters_with_types_defaults_bounds_and_meaning() -> None:
    output = sslbench("show", "synth").output
    assert re.search(r"train +integer +400 +>= 1\S* .*labeled sentences", output)
    assert re.search(r"shift +number +0 +>= 0, <= 1 ", output)


def test_show_tells_what_is_searched() -> None:
    output = sslbench("show", "jess_cm").output
    searched = output[output.index("searched by --tune") :].splitlines()
    assert "sigma2            0.01 to 10000, log scale" in map(str.strip, searched)
    assert "sign              nonneg, free" in map(str.strip, searched)


def test_show_prints_the_templates_of_a_similarity() -> None:
    output = sslbench("show", "he2013").output
    assert "trigrams of tokens in the form number" in output
    assert "16 templates" in output
    assert "suffix(w3) w2: suffix[1] form[0]" in output
    assert "trigrams of tokens\n" in sslbench("show", "letters").output


def test_show_tells_files_licence_and_checksums() -> None:
    output = sslbench("show", "conll00").output
    assert "01e65164f268366e7caa0db92332a1955d081908c87016e2c7640c3c5279b7cd" in output
    assert output.count("sha256") == 8
    assert "Reuters Ltd." in output
