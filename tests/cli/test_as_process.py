"""The command as a process: signals that end it, streams that are closed or full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sslbench.cli.as_process import Interrupted, interrupted_by_signals

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and files of POSIX")

WAITING = """
import signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP):  # nohup ignores them in all that it starts
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in the background
import sslbench.cli
import sslbench.cli.list
def wait():
    print("ready", flush=True)
    time.sleep(1000)
sslbench.cli.list.checked_registry = wait
sys.argv = ["sslbench", "list", "models"]
sslbench.cli.main()
"""
COMMAND = f"PYTHONUNBUFFERED= {sys.executable} -c 'from sslbench.cli import main; main()'"
UNBUFFERED = COMMAND.replace("=", "=1", 1)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_is_named_in_one_line_and_by_the_exit_status(name: str) -> None:
    number = signal.Signals[name]
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.communicate()[1] == f"sslbench: ended by {name}\n"
    assert process.returncode == 128 + number


def test_handlers_of_before_come_back_and_ignored_signals_stay_so() -> None:
    before = {
        signal.SIGHUP: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        signal.SIGTERM: signal.signal(signal.SIGTERM, signal.SIG_DFL),
    }
    try:
        with interrupted_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            with pytest.raises(Interrupted, match="SIGTERM"):
                os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def shell(line: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a line."""
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("words", ["list models", "--help", "--version", "show supervised"])
def test_results_that_cannot_be_written_are_a_failure_in_one_line(words: str) -> None:
    why = "sslbench: the results cannot be written to standard output: it is closed\n"
    assert shell(f"{COMMAND} {words} >&-") == (1, "", why)
    for command in (COMMAND, UNBUFFERED):
        status, _, told = shell(f"{command} {words} > /dev/full")
        assert status == 1
        assert told.count("\n") == 1
        assert "No space left on device" in told


@pytest.mark.parametrize("command", [COMMAND, UNBUFFERED])
@pytest.mark.parametrize("words", ["list methods", "--help"])
def test_a_reader_that_has_gone_ends_a_command_as_its_signal_does(command: str, words: str) -> None:
    """141, of which shells think as of success; nothing is said."""
    environment, *rest = f"{command} {words}".split(" ", 1)
    variable, _, value = environment.partition("=")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        ["sh", "-c", *rest],
        stdout=writer,
        stderr=subprocess.PIPE,
        env={**os.environ, variable: value},
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-", "2> /dev/full"])
def test_other_closed_streams_change_nothing(closed: str) -> None:
    plain = shell(f"{COMMAND} list models")
    assert plain[0] == 0
    assert shell(f"{COMMAND} list models {closed}") == (0, plain[1], "")
    assert shell(f"{COMMAND} list nothing {closed}")[0] == 2
    assert shell(f"{UNBUFFERED} list nothing {closed}")[0] == 2


def test_a_working_folder_that_was_removed(tmp_path: Path) -> None:
    status, _, told = shell(
        f"mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir {tmp_path}/gone && "
        f"{COMMAND} run --method supervised --data missing.txt"
    )
    assert status == 2
    assert told.count("\n") == 1
