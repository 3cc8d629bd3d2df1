"""Child process: JESS-CM with `chunk39` on TOKENS tokens of the generated language, two rounds.

usage: scale.py TOKENS FOLDER [MIN_COUNT [SCHEDULER]]

The column pos is the last letter of the word.  The text is stored in FOLDER, and checkpoints: a
killed command goes on.  Passes are shared out among the workers of a dask scheduler, if one is
given.  Prints seconds by phase, peak memory of the training and of each worker, and a hash of its
weights and tables.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from traces import peak_mb

from sslbench.engine.corpus import Column, Corpus, StoredShards, write_shards
from sslbench.engine.crf import ChainModel
from sslbench.engine.features.derived import coded_column
from sslbench.engine.spread import using_broker
from sslbench.experiment.context.checkpoints import Checkpoints
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.data import DataHome
from sslbench.experiment.execute.workers import DaskBroker
from sslbench.experiment.inputs.problem import Problem
from sslbench.plugins import registry
from sslbench_datasets.synth.load import load
from sslbench_methods.jess_cm.method import JessCM


class WithPos:
    """Shards with the column pos."""

    def __init__(self, shards: object) -> None:
        self.shards = shards
        self.n_sentences = self.n_tokens = 0

    def __iter__(self) -> Iterator[Corpus]:
        for shard in self.shards:  # type: ignore[attr-defined]
            yield with_pos(shard)


def with_pos(corpus: Corpus) -> Corpus:
    pos: Column = coded_column(corpus, "word.tail1")
    return Corpus({**corpus.columns, "pos": pos}, corpus.offsets)


def worker_mb() -> float:
    """As `peak_mb`, of a worker, which cannot import it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1024


def main() -> None:
    tokens, folder = int(float(sys.argv[1])), Path(sys.argv[2])
    min_count = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    home = DataHome(Path("/nowhere"), Path("/nowhere"), offline=True)
    dataset = load(home, unlabeled=tokens // 10, seed=0)
    if not (folder / "text").exists():
        assert dataset.external is not None
        write_shards(folder / "text", WithPos(dataset.external()))
        print("text is stored; run the command again", flush=True)
        return
    labeled = with_pos(dataset.splits["train"])
    vocabularies = {name: labeled.column(name).vocabulary for name in ("word", "pos")}
    text = StoredShards(folder / "text", vocabularies)
    featurizer = registry().featurizer("chunk39").load()()
    labels = tuple(labeled.column("label").vocabulary.strings)
    problem = Problem("tagging", None, labels, labeled, text, None, featurizer, ChainModel())
    params = JessCM.Params(rounds=2, symbol_min_count=min_count)
    checkpoints = Checkpoints(folder / "checkpoints", {}).of(tokens, min_count)
    run = RunContext(0, quiet=False, checkpoints=checkpoints)
    broker = DaskBroker(sys.argv[4]) if len(sys.argv) > 4 else None
    with using_broker(broker):
        tagger = JessCM().fit(problem, params, run)
    checkpoints.remove()
    workers = {} if broker is None else {"mb": broker.client.run(worker_mb), "cpu": broker.cpu}
    digest = hashlib.sha256(tagger.crf.weights.tobytes())
    for table in tagger.models.tables.values():
        digest.update(table)
    result = {"tokens": text.n_tokens, "seconds": run.timing, "spent": run.spent(), "mb": peak_mb()}
    rows = [len(table) for table in tagger.models.tables.values()]
    print(
        json.dumps(result | {"workers": workers, "rows": rows, "sha256": digest.hexdigest()[:16]})
    )


if __name__ == "__main__":
    main()
