"""Plugins that misbehave when they are imported: one problem each, and the others are loaded."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from sslbench import UserError
from sslbench.experiment.planning import description
from sslbench.plugins.hooks import EntryPoint
from sslbench.plugins.registered import Registry, load_plugins
from sslbench.plugins.registrations import MethodInfo
from support.plugin_site import Site, one_method

HOOK = """
from sslbench import MethodInfo, hookimpl
@hookimpl
def sslbench_methods():
    {body}
"""
ONE = "MethodInfo(name={name}, summary={summary}, reference='r', target='hostile:M'{more})"


class Attack(NamedTuple):
    """code: of the module; says: a part of the problem, "" = none; entry: of the entry point."""

    code: str
    says: str
    entry: str = "hostile"


def hook(body: str) -> str:
    """A module whose hook has this body."""
    return HOOK.format(body=body)


def one(name: str = "'hostile_method'", summary: str = "'s'", more: str = "") -> str:
    """A module that registers one method."""
    return hook("return [" + ONE.format(name=name, summary=summary, more=more) + "]")


ATTACKS = {
    "raises": Attack("raise RuntimeError('boom')", "cannot be loaded: RuntimeError: boom"),
    "raises a BaseException": Attack("class E(BaseException): pass\nraise E('x')", "E: x"),
    "exits": Attack("raise SystemExit(0)", "SystemExit: 0"),
    "exits in a hook": Attack(hook("raise SystemExit(3)"), "sslbench_methods failed: SystemExit"),
    "an exception without text": Attack(
        "class E(Exception):\n    def __str__(self): raise KeyError\nraise E", "cannot be loaded: E"
    ),
    "an exception of 50 MB": Attack("raise ValueError('x' * 50_000_000)", "xxxx ... xxxx"),
    "escapes in the exception": Attack(
        r"raise ValueError('\x1b[2J\x1b]0;t\x07\nsslbench: all is well \u202e\x9b')", r"\x1b[2J"
    ),
    "endless recursion": Attack("def f(): f()\nf()", "RecursionError"),
    "prints": Attack("print('x' * 100_000)\n" + one(), ""),
    "registers a forged method": Attack(one("'jess_cm'"), "already registered by plugin 'methods'"),
    "100,000 registrations": Attack(
        one("f'm{i}'").replace("M')]", "M') for i in range(10**5)]"),
        "hook sslbench_methods returns 100,000 items, over 1,000",
    ),
    "1,000,000 wrong registrations": Attack(hook("return [1] * 10**6"), "1,000,000 items"),
    "600 registrations of two kinds": Attack(
        one("f'm{i}'").replace("M')]", "M') for i in range(600)]")
        + "from sslbench import ModelInfo\n@hookimpl\ndef sslbench_models(): return [ModelInfo("
        "name=f'm{i}', summary='s', reference='r', target='a:b') for i in range(600)]",
        "registers 1,200 items, over 1,000",
    ),
    "20 wrong registrations": Attack(hook("return [1] * 20"), "and 17 more errors"),
    "nonsense": Attack(hook("return 'nonsense'"), "must return a list of MethodInfo, not str"),
    "a name with an escape": Attack(one(r"'a\x1b[2Jb'"), "is not a usable name"),
    "a name with a line break": Attack(one(r"'a\nb'"), "is not a usable name"),
    "a name with a path": Attack(one("'../../etc/x'"), "is not a usable name"),
    "a name with a surrogate": Attack(one(r"'a\udc80'"), "is not a usable name"),
    "a summary with a surrogate": Attack(one(summary=r"'a\udc80'"), "is no plain data: Unicode"),
    "a summary of 10 MB": Attack(one(summary="'x' * 10**7"), "has more than 10,000 characters"),
    "a callable in a registration": Attack(one(more=", baseline=print"), "is no plain data"),
    "a text of the plugin's own class": Attack(
        "class Text(str): pass\n" + one(summary="Text('s')"), "is no plain data"
    ),
    "a text for a number": Attack(one(more=", baseline='yes'"), "Expected `bool`"),
    "a subclass of a registration": Attack(
        hook(
            "class Sub(MethodInfo): load = print\n"
            "    return [Sub(name='a', summary='', reference='', target='a:b')]"
        ),
        "of its subclass Sub",
    ),
    "an entry point with an escape": Attack("raise ValueError", r"plugin '\x1b[2J", "\x1b[2Jodd"),
}


def loaded(code: str, folder: Path, patch: pytest.MonkeyPatch, entry: str = "hostile") -> Registry:
    """The registry with this plugin and a correct one."""
    patch.syspath_prepend(str(folder))
    for name, text in (("hostile", code), ("nice", one_method("nice_method", "nice:Method"))):
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
        patch.delitem(sys.modules, name, raising=False)
    plugins = load_plugins(
        [
            EntryPoint("nice", "nice", "nice-plugin", "1.2"),
            EntryPoint(entry, "hostile", "hostile-plugin", "1.2"),
            EntryPoint("methods", "sslbench_methods.plugin", "sslbench", "1"),
        ]
    )
    for name in ("hostile", "nice"):
        sys.modules.pop(name, None)
    return plugins


@pytest.mark.parametrize("name", ATTACKS)
def test_a_bad_plugin_is_one_line_and_the_others_are_loaded(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    which = ATTACKS[name]
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with redirect_stderr(io.StringIO()):
        plugins = loaded(which.code, tmp_path, monkeypatch, which.entry)
    assert sys.stdout.getvalue() == ""  # type: ignore[attr-defined]
    assert {"nice_method", "supervised", "jess_cm"} <= set(plugins.methods)
    assert plugins.methods["jess_cm"].target.startswith("sslbench_methods.")
    assert plugins.loaded["nice-plugin"] == "1.2"
    if not which.says:
        assert not plugins.problems
        assert "hostile_method" in plugins.methods
        return
    (problem,) = plugins.problems
    line = str(problem)
    assert which.says in line
    assert "of hostile-plugin: " in line
    assert line.endswith("; mend or uninstall it, or set SSLBENCH_BLOCK=hostile-plugin")
    assert line.isprintable()
    assert len(line) < 2500
    assert len(problem.traceback) <= 20_000
    assert not [method for method in plugins.methods if "hostile" in method or method == "m0"]


def test_an_interrupt_is_no_problem_of_a_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        loaded("raise KeyboardInterrupt", tmp_path, monkeypatch)


def test_list_shows_a_bad_plugin_in_one_line(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.install("nice-plugin", "nice", one_method("nice_method", "nice:Method"))
    site.install("bad-plugin", "bad", r"print('a\x1b[2Jb')" + "\nraise ValueError('x')")
    quiet = site.python("-m", "sslbench", "list", "methods")
    debug = site.python("-m", "sslbench", "--debug", "list", "methods")
    assert quiet.returncode == 0
    assert "nice_method" in quiet.stdout
    warnings = [line for line in quiet.stderr.splitlines() if line.startswith("sslbench: ")]
    assert warnings == [
        "sslbench: warning: plugin 'bad' of bad-plugin: cannot be loaded: ValueError: x;"
        " mend or uninstall it, or set SSLBENCH_BLOCK=bad-plugin"
    ]
    assert quiet.stdout == debug.stdout
    assert "Traceback" not in quiet.stderr
    assert "bad.py" in debug.stderr


def test_debug_shows_where_the_import_of_a_target_failed(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.install("my-plugin", "mine", one_method("m", "target:M"))
    (tmp_path / "target.py").write_text("def far(): raise ValueError('x')\nfar()")
    quiet = site.python("-m", "sslbench", "show", "m")
    debug = site.python("-m", "sslbench", "--debug", "show", "m")
    assert quiet.stdout == debug.stdout
    warning = "sslbench: warning: method m: cannot load target:M: ValueError: x\n"
    assert quiet.stderr == warning
    assert debug.stderr.startswith(warning)
    assert "in far" in debug.stderr


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


@pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux alone")
@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import os; os._exit(3)", "the process ended without a result (exit status 3)"),
        ("import os; os.kill(os.getpid(), 9)", "the process was killed by SIGKILL; out of memory?"),
        ("import time; time.sleep(600)", "it took more than 0.5 s"),
        ("raise KeyError('x')", "method m: cannot load target:M: KeyError: 'x'"),
    ],
)
def test_a_plan_does_not_import_the_code_of_others(
    code: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(description, "SECONDS", 0.5 if "sleep" in code else 60.0)
    (tmp_path / "target.py").write_text(code)
    plugins = loaded(one_method("m", "target:M"), tmp_path, monkeypatch)
    with pytest.raises(UserError) as caught:
        description.method_description(plugins, "m", {})
    assert says in str(caught.value)
    assert "target" not in sys.modules


def test_processes_of_a_run_get_the_registrations_and_import_no_plugin(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.install("nice-plugin", "nice", one_method("m", "a:b"))
    site.install("bad-plugin", "bad", "raise ValueError('x')")
    encode = (
        "import sys, msgspec; from sslbench import registry\n"
        "sys.stdout.buffer.write(msgspec.msgpack.encode(registry()).hex().encode())"
    )
    data = bytes.fromhex(site.python("-c", encode).stdout)
    assert msgspec.msgpack.decode(data, type=Registry).methods["m"] == MethodInfo(
        name="m", summary="s", reference="r", target="a:b"
    )
    decode = (
        "import sys; from sslbench import registry; from sslbench.plugins.registered import"
        " use_registry\nuse_registry(bytes.fromhex(input())); found = registry()\n"
        "print(found.methods['m'].target, found.loaded, len(found.problems), 'nice' in sys.modules)"
    )
    done = site.python("-c", decode, input=data.hex())
    assert done.stdout == "a:b {'nice-plugin': '1.2'} 1 False\n", done.stderr
