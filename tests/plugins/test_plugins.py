"""Plugins of other distributions, good and bad, found through metadata on disk as pip leaves it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.plugin_site import Site, one_method

DUMP = """
import json
from sslbench import UserError, registry
found = registry()
print(json.dumps({
    "methods": list(found.methods),
    "problems": [[p.plugin, p.distribution, p.message] for p in found.problems],
    "blocked": [o.plugin for o in found.blocked],
    "origins": {name: found.origins["methods", name].distribution for name in found.methods},
}))
"""


def registry_of(site: Site, **variables: str) -> Any:
    """Return what a fresh process found."""
    done = site.python("-c", DUMP, **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def good(name: str, module: str) -> str:
    return one_method(name, f"{module}:Method")


def problem_of(found: Any, plugin: str) -> tuple[str, str]:
    """Return (distribution, message) of the only problem of a plugin."""
    problems = [(d, m) for p, d, m in found["problems"] if p == plugin]
    assert len(problems) == 1, found["problems"]
    return problems[0]


def test_third_party_method_appears_beside_the_built_in_ones(site: Site) -> None:
    site.install("nice-plugin", "nice", good("nice_method", "nice"))
    found = registry_of(site)
    assert found["problems"] == []
    assert found["origins"]["nice_method"] == "nice-plugin"
    assert {"supervised", "self_training", "jess_cm"} <= set(found["methods"])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise RuntimeError('boom')", "RuntimeError: boom"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import not_there_at_all", "ModuleNotFoundError"),
        ("def (:", "SyntaxError"),
    ],
)
def test_a_plugin_that_fails_on_import_harms_nobody(site: Site, code: str, expected: str) -> None:
    site.install("bad-plugin", "bad", code)
    site.install("nice-plugin", "nice", good("nice_method", "nice"))
    found = registry_of(site)
    distribution, message = problem_of(found, "bad")
    assert distribution == "bad-plugin"
    assert expected in message
    assert {"nice_method", "jess_cm"} <= set(found["methods"])


def test_a_hook_that_fails_or_returns_the_wrong_thing_is_reported(site: Site) -> None:
    head = "from sslbench import DatasetInfo, MethodInfo, hookimpl\n"
    define = "@hookimpl\ndef sslbench_methods():\n    "
    one = "MethodInfo(name='kept', summary='s', reference='r', target='m:M')"
    site.install("a", "raises", f"{head}{define}raise ValueError('oops')")
    site.install("b", "notalist", f"{head}{define}return {one.replace('kept', 'lost')}")
    site.install("c", "mixed", f"{head}{define}return [{one}, 'text']")
    site.install("d", "badfield", f"{head}{define}return [{one.replace('m:M', 'no-target')}]")
    site.install("e", "typo", f"{head}{define}return [{one.replace('summary', 'sumary')}]")
    found = registry_of(site)
    assert "ValueError: oops" in problem_of(found, "raises")[1]
    assert "must return a list of MethodInfo, not MethodInfo" in problem_of(found, "notalist")[1]
    assert "one item is str" in problem_of(found, "mixed")[1]
    assert "module:attribute" in problem_of(found, "badfield")[1]
    assert "sumary" in problem_of(found, "typo")[1]
    assert "kept" in found["methods"]
    assert "lost" not in found["methods"]


def test_a_name_registered_twice_names_both_distributions(site: Site) -> None:
    site.install("first-plugin", "aaa", good("twin", "aaa"))
    site.install("second-plugin", "bbb", good("twin", "bbb"))
    found = registry_of(site)
    distribution, message = problem_of(found, "bbb")
    assert distribution == "second-plugin"
    assert "'twin'" in message
    assert "first-plugin 1.2" in message
    assert found["origins"]["twin"] == "first-plugin"


def test_nobody_can_take_a_built_in_name(site: Site) -> None:
    # "aaa" sorts before the built-in plugin, "methods".
    site.install("usurper", "aaa", good("jess_cm", "aaa"))
    found = registry_of(site)
    assert "already registered" in problem_of(found, "aaa")[1]
    assert found["origins"]["jess_cm"] == "sslbench"


def test_two_distributions_may_use_the_same_entry_point_name(site: Site) -> None:
    site.install("one", "mod_one", good("m_one", "mod_one"), entry="methods")
    site.install("two", "mod_two", good("m_two", "mod_two"), entry="methods")
    found = registry_of(site)
    assert found["problems"] == []
    assert {"m_one", "m_two", "jess_cm"} <= set(found["methods"])


def test_misspelled_and_unmarked_hooks_are_reported_and_the_right_ones_kept(site: Site) -> None:
    code = good("kept", "typo") + "\n@hookimpl\ndef sslbench_metods():\n    return []\n"
    site.install("typo-plugin", "typo", code)
    unmarked = "def sslbench_methods():\n    return []\n"
    site.install("unmarked-plugin", "unmarked", unmarked)
    arguments = "from sslbench import hookimpl\n@hookimpl\ndef sslbench_models(x):\n    return []\n"
    site.install("arguments-plugin", "arguments", arguments)
    found = registry_of(site)
    message = problem_of(found, "typo")[1]
    assert "'sslbench_metods'" in message
    assert "did you mean sslbench_methods" in message
    assert "not marked with @hookimpl" in problem_of(found, "unmarked")[1]
    assert "cannot be loaded" in problem_of(found, "arguments")[1]
    assert "kept" in found["methods"]


@pytest.mark.parametrize("blocked", ["nice", "Nice_Plugin", " other , nice-plugin "])
def test_a_variable_blocks_by_entry_point_or_distribution(site: Site, blocked: str) -> None:
    site.install("nice-plugin", "nice", "raise RuntimeError('is never imported')")
    found = registry_of(site, SSLBENCH_BLOCK=blocked)
    assert found["blocked"] == ["nice"]
    assert found["problems"] == []
    assert "jess_cm" in found["methods"]


def test_damaged_metadata_is_reported_or_skipped(site: Site) -> None:
    site.metadata("damaged", "[sslbench]\nno value here\n")
    site.metadata("unrelated", "[console_scripts]\nbroken\n")
    site.metadata("bad-value", "[sslbench]\nodd = not a module!\n")
    site.install("nice-plugin", "nice", good("nice_method", "nice"))
    found = registry_of(site)
    assert [d for _, d, _ in found["problems"]] == ["damaged", "bad-value"]
    assert {"nice_method", "jess_cm"} <= set(found["methods"])


def test_a_distribution_that_is_on_the_path_twice_counts_once(site: Site, tmp_path: Path) -> None:
    site.install("nice-plugin", "nice", good("nice_method", "nice"))
    older = Site(tmp_path / "older")
    older.folder.mkdir()
    older.install("Nice.Plugin", "nice", "raise RuntimeError('is shadowed')", entry="old")
    site.folder = Path(f"{site.folder}{os.pathsep}{older.folder}")
    found = registry_of(site)
    assert found["problems"] == []
    assert found["methods"].count("nice_method") == 1


def test_the_order_does_not_depend_on_where_distributions_lie(site: Site) -> None:
    for module in ("zeta", "alpha", "mid"):
        site.install(f"{module}-plugin", module, good(f"m_{module}", module))
    plugged = [name for name in registry_of(site)["methods"] if name.startswith("m_")]
    assert plugged == ["m_alpha", "m_mid", "m_zeta"]


def test_list_and_show_warn_in_one_line_and_go_on(site: Site) -> None:
    site.install("bad-plugin", "bad", "raise RuntimeError('line one\\nline two')")
    site.install("nice-plugin", "nice", good("nice_method", "nice"))
    for command in (["list", "methods"], ["show", "nice_method"]):
        done = site.python("-m", "sslbench", *command)
        assert done.returncode == 0, done.stderr
        assert "nice_method" in done.stdout
        first = done.stderr.splitlines()[0]
        assert first.startswith("sslbench: warning: plugin 'bad' of bad-plugin: cannot be loaded")
        assert "line one line two" in first


def test_unknown_names_get_near_names() -> None:
    from sslbench import UserError, registry

    with pytest.raises(UserError, match="did you mean jess_cm"):
        registry().method("jess_mc")
    with pytest.raises(UserError, match="there are: "):
        registry().dataset("zzz")
    with pytest.raises(UserError, match="did you mean conll00"):
        registry().find("conl00")


def test_a_target_that_cannot_be_loaded_says_whose() -> None:
    from sslbench import MethodInfo, UserError

    info = MethodInfo(name="m", summary="s", reference="r", target="sslbench.engine.errors:Nothing")
    with pytest.raises(UserError, match=r"method m: cannot load sslbench.engine.errors:Nothing"):
        info.load()


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../up", "a/../../up", "", "a//b", "C:/x", "..\\up"]
)
def test_a_file_cannot_be_registered_outside_the_data_home(path: str) -> None:
    from sslbench import RemoteFile

    with pytest.raises(ValueError, match="not a path below the data home"):
        RemoteFile(path=path, urls=(), sha256="0" * 64, licence="", bytes=1)
