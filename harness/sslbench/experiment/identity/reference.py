"""Replays on earlier code, which tell its differences from those of a processor.

Last bits depend on the kind of processor. A replay on another kind than that of the record may
differ, whatever the code. If an earlier code of the record, replayed on the same machine, has the
same predictions as today's, the difference is not one of the code.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from sslbench.engine.errors import UserError, printable
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store

#: folders of a checkout that are imported from
_FOLDERS = ("harness", "methods", "datasets")
#: what the earlier code executes; its arguments are the store, the run and the number of threads
_REPLAY = """
import sys
import msgspec
from sslbench.experiment.identity.replay import replay_task
from sslbench.experiment.run.runner import execute
from sslbench.experiment.records.store import Store
from sslbench.plugins import registry
store, run_id, threads = sys.argv[1:]
again = execute(replay_task(Store(store).find(run_id), registry(), int(threads)))
sys.stdout.buffer.write(msgspec.json.encode(again))
"""


def check_checkout(tree: Path) -> None:
    """UserError unless this is the root of a checkout of sslbench."""
    if not (tree / "harness" / "sslbench").is_dir():
        raise UserError(
            "no checkout of sslbench",
            file=str(tree),
            hint="`git worktree add FOLDER COMMIT` makes one",
        )


def replay_on(tree: Path, store: Store, record: RunRecord, threads: int) -> RunRecord:
    """The record of a replay with the code of a checkout, in a process of its own.

    UserError if that code cannot replay it.
    """
    path = os.pathsep.join(str(tree.resolve() / name) for name in _FOLDERS)
    done = subprocess.run(
        [sys.executable, "-c", _REPLAY, str(store.folder), record.run_id, str(threads)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        check=False,
    )
    lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no answer"]
    try:
        return msgspec.json.decode(done.stdout, type=RunRecord)
    except msgspec.MsgspecError:
        raise UserError(f"the replay failed: {printable(lines[-1])}", file=str(tree)) from None
