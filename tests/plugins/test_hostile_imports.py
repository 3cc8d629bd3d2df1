"""Plugins that misbehave when they are imported harm neither the command nor another plugin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attacks.plugin_imports import ATTACKS, COMMANDS, OF_TARGETS, attack, attack_target
from support.plugin_site import Site, one_method

QUICK = [
    "raises a BaseException",
    "KeyboardInterrupt",
    "os._exit(0)",
    "segmentation fault",
    "kills its group",
    "leaves a daemon of its own session",
    "prints 100 MB",
    "closes every file",
    "registers a forged method",
    "replaces the metrics",
    "a summary with escapes",
    "a summary with a surrogate",
    "a callable in a registration",
    "an entry point with an escape",
]


@pytest.mark.parametrize("name", QUICK)
def test_a_hostile_import_has_no_effect(name: str, tmp_path: Path) -> None:
    assert attack(ATTACKS[name], tmp_path).problems == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in QUICK])
def test_every_other_hostile_import_has_no_effect(name: str, tmp_path: Path) -> None:
    assert attack(ATTACKS[name], tmp_path).problems == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_an_import_that_ends_its_process_does_not_end_the_command(
    command: str, tmp_path: Path
) -> None:
    assert attack_target("os._exit(0)", command, tmp_path).problems == ""


@pytest.mark.parametrize("name", ["hangs", "segmentation fault", "leaves 8 processes"])
def test_other_imports_of_a_target(name: str, tmp_path: Path) -> None:
    assert attack_target(name, "show", tmp_path).problems == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_TARGETS)
def test_every_hostile_import_of_a_target(name: str, tmp_path: Path) -> None:
    """With one command in turn; ``attacks.plugin_imports`` tries all of them."""
    command = list(COMMANDS)[OF_TARGETS.index(name) % len(COMMANDS)]
    assert attack_target(name, command, tmp_path).problems == ""


HANGING_DATASET = """
from sslbench import DatasetInfo, hookimpl
@hookimpl
def sslbench_datasets():
    texts = dict(summary="", reference="", licence="", protocol="", featurizer="basic")
    info = DatasetInfo(name="d", target="target:load", task="tagging", metric="accuracy", **texts)
    return [info]
"""


def test_a_run_on_a_dataset_whose_import_hangs_ends(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.install("my-plugin", "mine", HANGING_DATASET)
    (tmp_path / "target.py").write_text("import time; time.sleep(60)")
    words = ["run", "--method", "supervised", "--dataset", "d", "--store", str(tmp_path / "runs")]
    done = site.python("-m", "sslbench", *words, SSLBENCH_PLUGIN_SECONDS="2")
    assert done.returncode == 2
    assert "dataset d: cannot be loaded: its import took more than 2 s\n" in done.stderr


def test_debug_shows_where_the_import_of_a_target_failed(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.install("my-plugin", "mine", one_method("m", "target:M"))
    (tmp_path / "target.py").write_text("def far(): raise ValueError('x')\nfar()")
    quiet = site.python("-m", "sslbench", "show", "m")
    debug = site.python("-m", "sslbench", "--debug", "show", "m")
    assert quiet.stdout == debug.stdout
    warning = "sslbench: warning: method m: cannot load target:M: ValueError: x\n"
    assert quiet.stderr == warning
    assert debug.stderr.endswith(warning)
    assert "in far" in debug.stderr


def test_a_target_is_tried_once_and_imported_silently(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.install("my-plugin", "mine", one_method("m", "target:M"))
    count = "import os; open(os.environ['SEEN'], 'a').write('x'); os.write(1, b'chat')\n"
    code = "import msgspec\nclass M:\n    class Params(msgspec.Struct): rate: float = 0.5\n"
    (tmp_path / "target.py").write_text(count + code)
    done = site.python("-m", "sslbench", "show", "m", SEEN=str(tmp_path / "seen"))
    assert "rate" in done.stdout
    assert "chat" not in done.stdout + done.stderr
    assert (tmp_path / "seen").read_text() == "xx"  # on trial, and here


def test_debug_shows_what_a_broken_plugin_printed(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.install("bad-plugin", "bad", r"print('a\x1b[2Jb' * 9999)" + "\nraise ValueError('x')")
    quiet = site.python("-m", "sslbench", "list", "methods")
    debug = site.python("-m", "sslbench", "--debug", "list", "methods")
    assert quiet.stdout == debug.stdout
    assert len(quiet.stderr.splitlines()) == 1
    assert r"a\x1b[2Jb" in debug.stderr
    assert len(debug.stderr) < 60_000


def test_a_command_that_does_not_run_a_plugin_does_not_import_it(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.install("my-plugin", "mine", "import os; open(os.environ['SEEN'], 'a').write('x')")
    code = "from sslbench import registry; registry(); import sys; assert 'mine' not in sys.modules"
    assert site.python("-c", code, SEEN=str(tmp_path / "seen")).returncode == 0
    assert (tmp_path / "seen").read_text() == "x"


def test_a_wrong_time_limit_is_one_line(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.install("my-plugin", "mine", "")
    done = site.python("-m", "sslbench", "list", SSLBENCH_PLUGIN_SECONDS="soon")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "sslbench: SSLBENCH_PLUGIN_SECONDS is 'soon', not a number of seconds\n"


def test_a_target_that_exits_or_prints_on_import_harms_nobody(tmp_path: Path) -> None:
    site = Site(tmp_path)
    code = (
        "import json; from sslbench import MethodInfo, UserError\n"
        "info = MethodInfo(name='m', summary='', reference='', target='{}:M')\n"
        "try: info.load()\nexcept UserError as e: print(json.dumps(str(e)))"
    )
    (tmp_path / "exits.py").write_text("import sys; sys.exit(0)")
    (tmp_path / "chats.py").write_text("print('hello')\nclass M: pass")
    done = site.python("-c", code.format("exits"))
    assert json.loads(done.stdout) == "method m: cannot load exits:M: SystemExit: 0"
    done = site.python("-c", code.format("chats"))
    assert (done.stdout, done.stderr) == ("", "hello\n")


def test_processes_of_a_command_read_no_plugin_again(tmp_path: Path) -> None:
    site = Site(tmp_path)
    nice = "from sslbench import MethodInfo, hookimpl\n@hookimpl\ndef sslbench_methods():\n"
    nice += "    return [MethodInfo(name='m', summary='s', reference='', target='a:b')]\n"
    count = "import os; open(os.environ['SEEN'], 'a').write('x')\n"
    site.install("nice-plugin", "nice", count + nice)
    site.install("bad-plugin", "bad", count + "raise ValueError('x')")
    inner = "from sslbench import registry as r; print(r().methods['m'], r().problems, r().loaded)"
    code = (
        "import os, subprocess, sys; from sslbench.plugins import handover, registry as r\n"
        "print(r().methods['m'], r().problems, r().loaded, flush=True)\n"
        f"subprocess.run([sys.executable, '-c', {inner!r}], env={{**os.environ, **handover()}})"
    )
    done = site.python("-c", code, SEEN=str(tmp_path / "seen"))
    first, second = done.stdout.splitlines()
    assert first == second
    assert "ValueError: x" in first
    assert (tmp_path / "seen").read_text() == "xx"
