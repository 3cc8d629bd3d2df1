"""The command line as a process that is watched, and the table of outcomes."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_MARK = "SSLBENCH_ATTACK"
_ENDING_SECONDS = 15.0
_LIMIT_SECONDS = 600.0
_HANGS = 124
#: a dataset that takes milliseconds
_SMALL = (
    "--dataset synth --featurizer basic --labeled 10 --unlabeled 10 --threads 1"
    " --set synth.test=10 --set synth.dev=5"
)
SMALL = _SMALL.split()


@dataclass
class Result:
    """How a process ended: its exit status and what it wrote."""

    status: int
    out: str
    err: str

    def problems(self) -> list[str]:
        """What no command may do."""
        result = []
        if "Traceback" in self.err + self.out:
            result.append("traceback")
        if "internal error" in self.err:
            result.append("internal error")
        if self.status == _HANGS:
            result.append("hangs")
        elif self.status not in (0, 1, 2):
            result.append(f"status {self.status}")
        if self.status and not self.err.strip():
            result.append("silent")
        return result


class Process:
    """A running command and everything that it starts, found by a mark in their environment."""

    def __init__(
        self,
        arguments: Sequence[str],
        variables: Mapping[str, str | None] = {},
        prefix: Sequence[str] = (),
        **more: object,
    ) -> None:
        self.mark = secrets.token_hex(8)
        chosen = {**os.environ, **variables, _MARK: self.mark}
        environment = {name: value for name, value in chosen.items() if value is not None}
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "sslbench", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **more,  # type: ignore[call-overload]
        )

    def family(self) -> list[psutil.Process]:
        """All living processes with the mark, the command among them."""
        return [process for process in psutil.process_iter() if self._is_member(process)]

    def _is_member(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error):
            return process.environ().get(_MARK) == self.mark and process.status() != "zombie"
        return False

    def children(self) -> list[psutil.Process]:
        """The processes below the command."""
        with suppress(psutil.Error):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []

    def kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def wait(self) -> Result:
        """The result; of a process that hangs, that of its being killed."""
        try:
            out, err = self.process.communicate(timeout=_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill_group()
            out, err = self.process.communicate()
            return Result(_HANGS, out, err)
        return Result(self.process.returncode, out, err)

    def orphans(self) -> int:
        """How many processes live on after the command, and are ended here."""
        until = time.monotonic() + _ENDING_SECONDS
        while (left := self.family()) and time.monotonic() < until:
            time.sleep(0.1)
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        return len(left)


def sslbench(
    *arguments: str | Path, variables: Mapping[str, str | None] = {}, **more: object
) -> tuple[Result, list[str]]:
    """Run a command to its end; also the problems that any command may have."""
    process = Process([str(word) for word in arguments], variables, **more)
    result = process.wait()
    orphans = process.orphans()
    return result, result.problems() + ([f"{orphans} orphans"] if orphans else [])


@dataclass
class Table:
    """Outcomes by attack; `bad` ones fail the whole."""

    rows: dict[str, Counter[str]] = field(default_factory=dict)
    bad: list[str] = field(default_factory=list)

    def add(self, attack: str, outcome: str, problems: Sequence[str] = ()) -> None:
        """Count an attack; problems: why its outcome is bad."""
        text = f"BAD: {', '.join(problems)}" if problems else outcome
        self.rows.setdefault(attack, Counter())[text] += 1
        for problem in problems:
            self.bad.append(f"{attack}: {problem}")
            print(self.bad[-1], file=sys.stderr, flush=True)

    def merge(self, other: Table) -> None:
        """Add the attacks of another table."""
        for attack, outcomes in other.rows.items():
            self.rows.setdefault(attack, Counter()).update(outcomes)
        self.bad += other.bad

    def __str__(self) -> str:
        lines = ["| attack | times | outcomes |", "|---|---|---|"]
        for attack, outcomes in self.rows.items():
            text = "; ".join(f"{outcome}: {number}" for outcome, number in outcomes.items())
            lines.append(f"| {attack} | {outcomes.total()} | {text} |")
        total = sum(outcomes.total() for outcomes in self.rows.values())
        return "\n".join([*lines, f"| all | {total} | bad: {len(self.bad)} |"])
