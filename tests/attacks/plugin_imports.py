"""Plugins of other distributions that misbehave when they are imported.

    python tests/attacks/plugin_imports.py

The first table: what each one does to ``sslbench list methods`` and to the state of a process that
loads the registry, with a correct plugin beside it. The second: the same code in the module of a
method, and what it does to each command that imports methods.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import uuid
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sslbench.engine.crf.persist import write_model
from support.plugin_site import Site, one_method

NICE = one_method("nice_method", "nice:Method")
# What a plugin could change in the process that imports it.
PROBE = """
import builtins, json, os, signal, sys, threading
from sslbench import registry
found = registry()
import sslbench.experiment.metrics as metrics
state = [os.getcwd(), len([]), str(print), str(signal.getsignal(signal.SIGTERM)),
    str(sys.excepthook), threading.active_count(), sys.getrecursionlimit(),
    "hostile" in sys.modules, metrics.metrics_from_counts.__module__, json.dumps.__module__]
state = [x.split(" at 0x")[0] for x in map(str, state)]
print(json.dumps({"state": state, "jess": found.methods["jess_cm"].target,
    "loaded": found.loaded, "problems": [str(p) for p in found.problems]}))
"""
HOOK = """
from sslbench import MethodInfo, hookimpl
@hookimpl
def sslbench_methods():
    {body}
"""
ONE = "MethodInfo(name={name}, summary={summary}, reference='r', target='hostile:M'{more})"
SLEEPER = "import os, subprocess, sys; P = [sys.executable, '-c', 'import time; time.sleep(60)']\n"
SECONDS = 3  # the limit of these imports


class Attack(NamedTuple):
    """code: of the module; says: a part of the warning, "" = none; entry: of the entry point."""

    code: str
    says: str
    entry: str = "hostile"


def hook(body: str) -> str:
    """A module whose hook has this body."""
    return HOOK.format(body=body)


def one(name: str = "'hostile_method'", summary: str = "'s'", more: str = "") -> str:
    """A module that registers one method."""
    return hook("return [" + ONE.format(name=name, summary=summary, more=more) + "]")


GOOD = one()
ATTACKS = {
    "raises": Attack("raise RuntimeError('boom')", "RuntimeError: boom"),
    "raises a BaseException": Attack("class E(BaseException): pass\nraise E('x')", "E: x"),
    "SystemExit(0)": Attack("raise SystemExit(0)", "SystemExit: 0"),
    "KeyboardInterrupt": Attack("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "GeneratorExit": Attack("raise GeneratorExit", "GeneratorExit"),
    "an exception without text": Attack(
        "class E(Exception):\n    def __str__(self): raise KeyError\nraise E", "cannot be loaded: E"
    ),
    "an exception of 50 MB": Attack("raise ValueError('x' * 50_000_000)", "xxxx ... xxxx"),
    "escapes in the exception": Attack(
        r"raise ValueError('\x1b[2J\x1b]0;t\x07\nsslbench: all is well \u202e\x9b')", r"\x1b[2J"
    ),
    "os._exit(0)": Attack("import os; os._exit(0)", "ended the process (exit status 0)"),
    "os.abort()": Attack("import os; os.abort()", "ended the process with SIGABRT"),
    "segmentation fault": Attack(
        "import ctypes; ctypes.string_at(0)", "ended the process with SIGSEGV"
    ),
    "kills itself": Attack("import os; os.kill(os.getpid(), 9)", "ended the process with SIGKILL"),
    "kills its group": Attack("import os; os.killpg(0, 9)", "is missing: its process has ended"),
    "kills its parent": Attack("import os, time; os.kill(os.getppid(), 9); time.sleep(60)", "is"),
    "hangs": Attack("import time; time.sleep(600)", f"took more than {SECONDS} s"),
    "hangs in compiled code": Attack("sum(range(10**12))", f"took more than {SECONDS} s"),
    "ignores signals and hangs": Attack(
        "import signal, time\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n"
        "    except Exception: pass\ntime.sleep(600)",
        f"took more than {SECONDS} s",
    ),
    "hangs in a hook": Attack(hook("while True: pass"), f"took more than {SECONDS} s"),
    "leaves 8 processes": Attack(SLEEPER + "for _ in range(8): subprocess.Popen(P)\n" + GOOD, ""),
    "leaves a daemon of its own session": Attack(
        SLEEPER + "subprocess.Popen(P, start_new_session=True)\n" + GOOD, ""
    ),
    "leaves daemons and hangs": Attack(
        SLEEPER + "for _ in range(32): subprocess.Popen(P, start_new_session=True)\nos.wait()",
        f"took more than {SECONDS} s",
    ),
    "forks 64 processes": Attack("import os, time\nfor _ in range(6): os.fork()\n" + GOOD, ""),
    "prints 100 MB": Attack("print('x' * 100_000_000)\n" + GOOD, ""),
    "prints without end": Attack(
        "import os\nwhile True: os.write(1, b'x' * 65536)", f"took more than {SECONDS} s"
    ),
    "prints JSON": Attack('print(\'{"registrations": [], "problems": []}\')\n' + GOOD, ""),
    "closes standard output": Attack("import os; os.close(1); os.close(2)\n" + GOOD, ""),
    "closes every file": Attack("import os; os.closerange(0, 256)\n" + GOOD, "cannot be loaded"),
    "dup2 over standard output": Attack(
        "import os; os.dup2(os.open('/dev/null', os.O_WRONLY), 1)\n" + GOOD, ""
    ),
    "writes to every file": Attack(
        "import os\nfor n in range(3, 64):\n    try: os.write(n, b'[1]\\n')\n"
        "    except OSError: pass\n" + GOOD,
        "has other content",
    ),
    "leaves a daemon and floods every file": Attack(
        SLEEPER + "subprocess.Popen(P, start_new_session=True)\n"
        "for n in range(3, 64):\n    try:\n        while True: os.write(n, b'1' * 65536)\n"
        "    except OSError: pass\n",
        "over 4,194,304 bytes",
    ),
    "registers a forged method": Attack(one("'jess_cm'"), "already registered by plugin 'methods'"),
    "replaces builtins": Attack(
        "import builtins; builtins.len = lambda x: 7; builtins.print = None\n" + GOOD, "IndexError"
    ),
    "replaces a method of sslbench": Attack(
        "from sslbench import registry\nimport sslbench.plugins as p\n"
        "p.Registry.add = lambda *a: None\n" + GOOD,
        "",
    ),
    "replaces the metrics": Attack(
        "import sslbench.experiment.metrics as m; m.metrics_from_counts = max\n" + GOOD, ""
    ),
    "replaces json": Attack("import json; json.dumps = lambda *a, **k: 'x'\n" + GOOD, "other"),
    "allocates without end": Attack(
        "x = []\nwhile True: x.append(bytearray(b'x') * 2**28)", "cannot be loaded"
    ),
    "changes the folder": Attack("import os; os.chdir('/')\n" + GOOD, ""),
    "handles signals": Attack(
        "import signal; signal.signal(signal.SIGTERM, lambda *a: None)\n" + GOOD, ""
    ),
    "prints when it exits": Attack("import atexit; atexit.register(print, 'exit')\n" + GOOD, ""),
    "threads that never end": Attack(
        "import threading, time\nfor _ in range(8):\n"
        "    threading.Thread(target=time.sleep, args=(600,)).start()\n" + GOOD,
        "",
    ),
    "endless recursion": Attack("def f(): f()\nf()", "RecursionError"),
    "recursion in compiled code": Attack(
        "import sys; sys.setrecursionlimit(10**9)\nf = lambda: f()\nl = []\n"
        "for _ in range(10**7): l = [l]\nrepr(l)",
        "cannot be loaded",
    ),
    "100,000 registrations": Attack(
        one("f'm{i}'").replace("M')]", "M') for i in range(10**5)]"),
        "over 4,194,304 bytes",
    ),
    "1,000,000 wrong registrations": Attack(hook("return [1] * 10**6"), "registrations"),
    "20 wrong registrations": Attack(hook("return [1] * 20"), "and 17 more errors"),
    "a name with an escape": Attack(one(r"'a\x1b[2Jb'"), "is not a usable name"),
    "a name with a line break": Attack(one(r"'a\nb'"), "is not a usable name"),
    "a name with a path": Attack(one("'../../etc/x'"), "is not a usable name"),
    "a name with a surrogate": Attack(one(r"'a\udc80'"), "is not a usable name"),
    "a summary with escapes": Attack(one(summary=r"'\x1b[2J\nnice_method  fake'"), ""),
    "a summary with a surrogate": Attack(one(summary=r"'a\udc80'"), "is no plain data: Unicode"),
    "a summary of 10 MB": Attack(one(summary="'x' * 10**7"), "over 4,194,304 bytes"),
    "a callable in a registration": Attack(one(more=", baseline=print"), "is no plain data"),
    "a text for a number": Attack(one(more=", baseline='yes'"), "Expected `bool`"),
    "a subclass of a registration": Attack(
        hook(
            "class Sub(MethodInfo): load = print\n"
            "    return [Sub(name='a', summary='', reference='', target='a:b')]"
        ),
        "of its subclass Sub",
    ),
    "an entry point with an escape": Attack("raise ValueError", r"plugin '\x1b[2J", "\x1b[2Jodd"),
    "an entry point with a path": Attack(GOOD, "", "../../odd"),
}


class Outcome(NamedTuple):
    """problems: what went wrong, "" = nothing; seconds: of the two commands."""

    problems: str
    warning: str
    seconds: float


def attack(which: Attack, folder: Path) -> Outcome:
    """Install the plugin with a correct one, run both commands, and compare."""
    mark = uuid.uuid4().hex
    site = Site(folder)
    site.install("nice-plugin", "nice", NICE)
    variables = {"SSLBENCH_PLUGIN_SECONDS": str(SECONDS), "ATTACK": mark}
    before = json.loads(site.python("-c", PROBE, **variables).stdout)
    listed = site.python("-m", "sslbench", "list", "methods", **variables).stdout.splitlines()
    site.install("hostile-plugin", "hostile", which.code, which.entry)
    began = time.monotonic()
    probe = site.python("-c", PROBE, **variables)
    done = site.python("-m", "sslbench", "list", "methods", **variables)
    seconds = time.monotonic() - began
    return Outcome(
        "; ".join(_wrong(which, before, listed, probe, done, mark)), done.stderr, seconds
    )


def _wrong(which, before, listed, probe, done, mark):
    found = json.loads(probe.stdout) if probe.returncode == 0 else {}
    lines = done.stderr.splitlines()
    kept = [line for line in done.stdout.splitlines() if "hostile_method " not in line]
    checks = {
        "status": done.returncode == probe.returncode == 0,
        "state": found.get("state") == before["state"] and found.get("jess") == before["jess"],
        "the other plugin": found.get("loaded", {}).get("nice-plugin") == "1.2",
        "the list": [line.split() for line in kept] == [line.split() for line in listed],
        "the number of lines": len(lines) == bool(which.says),
        "the message": which.says in done.stderr and len(done.stderr) < 2500,
        "printable": all(line.isprintable() for line in lines + done.stdout.splitlines()),
        "orphans": not orphans(mark),
    }
    return [name for name, right in checks.items() if not right]


#: of ATTACKS: what an import can do that a command must not feel
OF_TARGETS = [
    *("raises", "raises a BaseException", "SystemExit(0)", "KeyboardInterrupt", "GeneratorExit"),
    *("an exception without text", "an exception of 50 MB", "escapes in the exception"),
    *("os._exit(0)", "os.abort()", "segmentation fault", "kills itself", "kills its group"),
    *("kills its parent", "hangs", "hangs in compiled code", "ignores signals and hangs"),
    *("leaves 8 processes", "leaves a daemon of its own session", "leaves daemons and hangs"),
    *("forks 64 processes", "prints 100 MB", "prints without end", "prints JSON"),
    *("closes standard output", "closes every file", "dup2 over standard output"),
    *("writes to every file", "allocates without end", "endless recursion"),
    "recursion in compiled code",
]
#: those that differ from the first table: the answer of a process with others is not believed
SAYS_OF_TARGETS = {
    "an exception without text": "cannot load hostile:M: E",
    "closes every file": "cannot be loaded",
    "leaves 8 processes": "leaves processes (8)",
    "leaves a daemon of its own session": "leaves processes (1)",
    "allocates without end": "cannot ",  # by the limit of memory or of time
    "forks 64 processes": "cannot ",  # the limit of processes or that of time
}
METHOD = """
import msgspec
class M:
    class Params(msgspec.Struct, frozen=True): pass
    def fit(self, problem, params, run): raise ValueError("has no training")
    @staticmethod
    def restore(arrays, metadata): raise ValueError("has no tagger")
"""
SMALL = ["--dataset", "synth", "--labeled", "5", "--set", "synth.test=5", "--threads", "1"]
COMMANDS = {
    "show": ["show", "hostile_method"],
    "check": ["check", "hostile_method", "--only", "parameters"],
    "train": ["train", "--method", "hostile_method", *SMALL, "--save", "{folder}/new"],
    "tag": ["tag", "{folder}/model", "{folder}/text"],
    "run": ["run", "--method", "hostile_method", *SMALL, "--store", "{folder}/runs"],
}


def attack_target(name: str, command: str, folder: Path) -> Outcome:
    """Install a method with this code in its module, and run a command that imports it."""
    mark, which, site = uuid.uuid4().hex, ATTACKS[name], Site(folder)
    site.install("hostile-plugin", "good", one_method("hostile_method", "hostile:M"))
    (folder / "hostile.py").write_text(f"{which.code}\n{METHOD}", encoding="utf-8")
    (folder / "text").write_text("a x\n\n")
    write_model(folder / "model", "hostile_method", {}, {})
    words = [word.format(folder=folder) for word in COMMANDS[command]]
    variables = {"SSLBENCH_PLUGIN_SECONDS": str(SECONDS), "ATTACK": mark}
    began = time.monotonic()
    done = site.python("-m", "sslbench", *words, **variables)
    seconds = time.monotonic() - began
    says = SAYS_OF_TARGETS.get(name, which.says)
    lines = [line for line in done.stderr.splitlines() if "hostile_method" in line]
    limit = 300_000 if command == "run" else 2500  # what the process of a method prints is shown
    checks = {
        f"status {done.returncode}": done.returncode in (0, 1, 2),
        "silent": command == "show" or done.returncode != 0,
        "the number of lines": len(lines) == 1 or not says,
        "the message": says in done.stderr and len(done.stderr) < limit,
        "the answer": len(done.stdout) < 2500 and "Traceback" not in done.stderr,
        "printable": (done.stdout + done.stderr).replace("\n", "").isprintable(),
        "time": seconds < SECONDS + 30,
        "orphans": not orphans(mark),
    }
    return Outcome("; ".join(n for n, right in checks.items() if not right), done.stderr, seconds)


def orphans(mark: str) -> list[int]:
    """Processes that the plugins have left: those with the mark in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("ATTACK") == mark and process.status() != "zombie":
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def main() -> int:
    """Print the tables; the exit status is 1 if an attack had an effect."""
    failed, done = 0, 0
    rows = [(name, partial(attack, which)) for name, which in ATTACKS.items()]
    rows += [
        (f"{command}: {name}", partial(attack_target, name, command))
        for command in COMMANDS
        for name in OF_TARGETS
    ]
    for name, each in rows:
        with tempfile.TemporaryDirectory() as folder:
            outcome = each(Path(folder))
        failed, done = failed + bool(outcome.problems), done + 1
        warning = outcome.warning.strip().removeprefix("sslbench: warning: ") or "no warning"
        result = f"WRONG: {outcome.problems}" if outcome.problems else "held"
        print(f"{result} {name:43} {outcome.seconds:5.1f} s  {warning[:110]}", flush=True)
    print(f"{done} attacks, {done - failed} held, {failed} had an effect")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
