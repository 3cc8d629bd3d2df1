"""Damaged files of every reader of `support.damage`: refused in one line, or read without harm.

A file that ends in anything else is added to the corpus of `attacks.corpus`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from attacks.command import Table
from attacks.corpus import keep, kept
from support.damage import READERS, Reader, check, damaged, model_reader, saved_model


def readers(folder: Path) -> dict[str, Reader]:
    """All readers, that of a saved model among them; folder: for its training."""
    return {**READERS, "model": model_reader(saved_model(folder))}


def outcome(reader: Reader, data: bytes, folder: Path) -> str:
    """ "read", "refused", or what is wrong."""
    path = folder / reader.name
    path.write_bytes(data)
    try:
        return "refused" if check(reader, path) else "read"
    except BaseException as error:
        return f"WRONG: {type(error).__name__}: {error}"[:300]


def attack_reader(name: str, reader: Reader, number: int, seed: int, table: Table) -> None:
    """Have it read `number` damaged files, at most, and those of the corpus."""
    tried: set[bytes] = set()
    with tempfile.TemporaryDirectory() as folder:

        def read(data: bytes) -> None:
            if data not in tried:
                tried.add(data)
                result = outcome(reader, data, Path(folder))
                wrong = result.startswith("WRONG")
                table.add(name, result, [f"{result} ({keep(name, data)})"] if wrong else [])

        for data in kept(name):
            read(data)
        chosen = settings(
            max_examples=number,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        seeded(seed)(chosen(given(damaged(reader.valid, reader.is_text))(read)))()


def attack(number: int, seed: int) -> Table:
    """`number` damaged files, as many of each reader."""
    table = Table()
    with tempfile.TemporaryDirectory() as folder:
        every = readers(Path(folder))
    for name, reader in every.items():
        attack_reader(name, reader, -(-number // len(every)), seed, table)
    return table
