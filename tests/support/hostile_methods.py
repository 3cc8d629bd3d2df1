"""A method that misbehaves in the way that its parameter names; imported by child processes."""

from __future__ import annotations

import atexit
import builtins
import ctypes
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from sslbench import Corpus, MethodInfo, Problem, hookimpl
from sslbench.engine.errors import UserError
from sslbench.experiment.context.context import RunContext

Behavior = Callable[[Problem, RunContext], Any]
BEHAVIORS: dict[str, Behavior] = {}
MARK = "sslbench-attack"  # in the command line of started processes
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)", MARK]


def behavior(function: Behavior) -> Behavior:
    BEHAVIORS[function.__name__] = function
    return function


class Constant:
    """Gives every token the first label, or what it was told to give."""

    def __init__(
        self, labels: Sequence[Any], answer: Callable[[Corpus], Any] | None = None
    ) -> None:
        self.labels = labels
        self.answer = answer

    def predict(self, corpus: Corpus) -> Any:
        if self.answer is not None:
            return self.answer(corpus)
        return np.zeros(corpus.n_tokens, dtype=np.int32)


class Hostile:
    """See the module."""

    class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        how: str = ""

    uses_unlabeled = False

    def fit(self, problem: Problem, params: Params, run: RunContext) -> Any:
        if not params.how:
            return Constant(problem.labels)
        from support.cheats import CHEATS

        tagger = {**BEHAVIORS, **CHEATS}[params.how](problem, run)
        return Constant(problem.labels) if tagger is None else tagger


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Unpicklable(BaseException):
    def __reduce__(self) -> Any:
        return os._exit, (0,)


def _raising(name: str, make: Callable[[], BaseException]) -> None:
    def raising(problem: Problem, run: RunContext) -> None:
        raise make()

    BEHAVIORS[f"raise_{name}"] = raising


def _chain() -> BaseException:
    error: BaseException = ValueError("first")
    for number in range(300):
        after = ValueError(str(number))
        after.__cause__ = error
        error = after
    return error


for _name, _make in {
    "two_lines": lambda: ValueError("a bug\nover two lines"),
    "exit_0": lambda: SystemExit(0),
    "exit_text": lambda: SystemExit("text"),
    "interrupt": KeyboardInterrupt,
    "generator_exit": GeneratorExit,
    "stop_iteration": StopIteration,
    "recursion": RecursionError,
    "memory": MemoryError,
    "no_message": AssertionError,
    "surrogates": lambda: ValueError("\ud800\udfff"),
    "escapes": lambda: ValueError("\x1b[2J\x1b]0;title\x07\r\x00"),
    "long": lambda: ValueError("x" * 50_000_000),
    "unprintable": UnprintableError,
    "unpicklable": Unpicklable,
    "chain": _chain,
    "group": lambda: ExceptionGroup("many", [ValueError(str(i)) for i in range(500)]),
    "user_error": lambda: UserError("no such file", file="x\ny", line=3),
    "disk_full": lambda: OSError(28, "No space left on device"),
    "eof": EOFError,
    "broken_pipe": BrokenPipeError,
}.items():
    _raising(_name, _make)


def _ending(name: str, end: Callable[[], object]) -> None:
    def ending(problem: Problem, run: RunContext) -> None:
        end()

    BEHAVIORS[name] = ending


def _ignore_and_hang() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1)


def _deadlock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def _daemon() -> None:
    """A process of its own session, whose parent ends at once; then hang."""
    if os.fork() == 0:
        os.setsid()
        subprocess.Popen(SLEEP, start_new_session=True)
        os._exit(0)
    time.sleep(600)


def _grow() -> None:
    kept = []
    while True:
        kept.append(bytes(10**7))


def _child_grows() -> None:
    subprocess.run([sys.executable, "-c", "x=[]\nwhile 1: x.append(bytes(10**7))", MARK])
    time.sleep(600)


def _map_memory() -> None:
    kept = [mmap.mmap(-1, 2**27) for _ in range(10**4)]
    for each in kept:
        each.write(bytes(2**27))


def _threads() -> None:
    for _ in range(300):
        threading.Thread(target=time.sleep, args=(600,)).start()


for _name, _end in {
    "exit_now": lambda: os._exit(0),
    "exit_7": lambda: os._exit(7),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "aborted": os.abort,
    "segfault": lambda: ctypes.string_at(0),
    "terminated": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "kills_parent": lambda: os.kill(os.getppid(), signal.SIGKILL),
    "kills_group": lambda: os.killpg(0, signal.SIGKILL),
    "stopped": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "sleeps": lambda: time.sleep(600),
    "spins": lambda: sum(range(10**12)),
    "ignores_signals": _ignore_and_hang,
    "deadlock": _deadlock,
    "daemon": _daemon,
    "session": lambda: subprocess.Popen(SLEEP, start_new_session=True) and None,
    "orphan": lambda: subprocess.Popen(SLEEP) and os._exit(0),
    "grows": _grow,
    "child_grows": _child_grows,
    "maps_memory": _map_memory,
    "threads": _threads,
    "huge_array": lambda: np.ones(2**37),
    "floods_stdout": lambda: print("x" * 10**8),
    "floods_lines": lambda: [print("line", i) for i in range(10**6)] and None,
    "floods_stderr": lambda: [os.write(2, b"\x1b[31m" * 10**5) for _ in range(200)] and None,
    "closes_output": lambda: os.close(1) or os.close(2),
    "no_stdout": lambda: setattr(sys, "stdout", None),
    "reads_stdin": lambda: print(len(sys.stdin.read())),
    "prints_at_exit": lambda: atexit.register(print, "at exit") and None,
    "deletes_environment": lambda: os.environ.clear(),
    "deletes_path": lambda: sys.path.clear(),
    "breaks_builtins": lambda: setattr(builtins, "len", lambda each: 0),
    "opens_files": lambda: [open(os.devnull) for _ in range(10**5)] and None,  # noqa: SIM115
    "changes_folder": lambda: os.chdir("/"),
    "no_recursion": lambda: sys.setrecursionlimit(60),
    "traces": lambda: sys.settrace(lambda *args: None),
    "closes_all_files": lambda: os.closerange(3, 4096),
    "writes_garbage": lambda: [_try(os.write, fd, b"\xff" * 64) for fd in range(3, 64)] and None,
    "writes_frames": lambda: (
        [_try(os.write, fd, b"\x00\x00\x00\x02\x80\x80") for fd in range(3, 64)] and None
    ),
    "writes_endless_frame": lambda: (
        [_try(os.write, fd, b"\x7f\xff\xff\xff" + bytes(10**6)) for fd in range(3, 64)] and None
    ),
    "fills_folder": lambda: (
        [Path(os.environ["TMPDIR"], str(i)).touch() for i in range(5000)] and None
    ),
    "writes_here": lambda: Path("written-by-a-method").write_text("x"),
    "alarm": lambda: signal.alarm(1) or time.sleep(600),
}.items():
    _ending(_name, _end)


def _try(call: Callable[..., Any], *args: Any) -> Any:
    try:
        return call(*args)
    except OSError:
        return None


def _answering(name: str, make: Callable[[Problem], Any]) -> None:
    BEHAVIORS[name] = lambda problem, run: make(problem)


def _with_variants(problem: Problem, n_labels: int) -> Constant:
    """Two variants, each with fewer labels than a tagger may have."""
    tagger = Constant(problem.labels)
    many = [f"l{i}" for i in range(n_labels)]
    tagger.variants = {name: Constant(many) for name in "ab"}  # type: ignore[attr-defined]
    return tagger


def _same(value: Callable[[int], Any]) -> Callable[[Problem], Any]:
    return lambda problem: Constant(problem.labels, lambda corpus: value(corpus.n_tokens))


for _name, _answer in {
    "labels_repeated": lambda problem: Constant(("A", "A")),
    "labels_numbers": lambda problem: Constant((1, 2)),
    "labels_surrogates": lambda problem: Constant(("\ud800",)),
    "labels_many": lambda problem: Constant([f"l{i}" for i in range(10**6)]),
    "labels_none": lambda problem: Constant(()),
    "variants_many": lambda problem: _with_variants(problem, 60_000),
    "a_list": _same(lambda n: [0] * n),
    "too_short": _same(lambda n: np.zeros(n - 1, np.int32)),
    "too_long": _same(lambda n: np.zeros(10**8, np.int32)),
    "floats": _same(np.zeros),
    "booleans": _same(lambda n: np.zeros(n, bool)),
    "objects": _same(lambda n: np.zeros(n, object)),
    "nan": _same(lambda n: np.full(n, np.nan)),
    "negative": _same(lambda n: np.full(n, -1)),
    "too_large": _same(lambda n: np.full(n, 2**31 - 1)),
    "int64_wraps": _same(lambda n: np.full(n, 2**32)),
    "predict_none": _same(lambda n: None),
    "predict_raises": _same(lambda n: 1 // 0),
    "predict_exits": _same(lambda n: os._exit(0)),
    "predict_hangs": _same(lambda n: time.sleep(600)),
    "no_predict": lambda problem: 5,
    "a_class": lambda problem: Constant,
}.items():
    _answering(_name, _answer)


@behavior
def long_trace(problem: Problem, run: RunContext) -> None:
    run.trace["x"] = "y" * 50_000_000


@behavior
def endless_trace(problem: Problem, run: RunContext) -> None:
    run.trace["x"] = run.trace


@behavior
def odd_timing(problem: Problem, run: RunContext) -> None:
    run.timing["fit"] = "soon"  # type: ignore[assignment]


@behavior
def edits_labels(problem: Problem, run: RunContext) -> None:
    problem.labeled.column("label").codes[:] = 0


@hookimpl
def sslbench_methods() -> list[MethodInfo]:
    target = "support.hostile_methods:Hostile"
    return [MethodInfo(name="hostile", summary="", reference="", target=target)]
