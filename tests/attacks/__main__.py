"""Run attacks from the command line, print the table, and exit with status 1 if one succeeded."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

#: how many attacks of each kind are made unless --number says it; stores have 40, methods 103, and
#: all ways out are tried in one run; of file operations a percentage fails
NUMBERS = {
    "bits": 2000,
    "faults": 100,
    "kills": 200,
    "methods": 200,
    "models": 1200,
    "packs": 200,
    "readers": 20000,
    "saves": 50,
    "stores": 200,
    "texts": 2000,
    "ways_out": 1,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=NUMBERS)
    parser.add_argument("--number", type=int)
    parser.add_argument("--share", type=int, default=1, help="make 1/SHARE of all attacks")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    every = NUMBERS[given.kind] if given.number is None else given.number
    number = -(-every // given.share)
    table = import_module(f"attacks.{given.kind}").attack(number, given.seed)
    print(table)
    sys.exit(bool(table.bad))


if __name__ == "__main__":
    main()
