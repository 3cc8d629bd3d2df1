"""Damaged CoNLL files, damaged CRF++ templates, and runs on damaged test files.

CoNLL files: a text is damaged in each way of a list. sslbench reads the result, and so does
`parse`, which shares no code with it. Both must find the same sentences, or refuse the same line.
Templates: each file is read, or refused in one line.
Runs: the accuracy of the record must be the one that is computed here.
"""

from __future__ import annotations

import codecs
import json
import random
import re
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from attacks.command import Table
from attacks.corpus import keep, kept
from sslbench.engine.corpus import read_conll
from sslbench.engine.errors import UserError
from sslbench.engine.features.crfpp import load_featurizer
from sslbench.experiment.data.userdata import load_user_data
from sslbench.experiment.records.store import Store
from support.command import sslbench

COLUMNS = ("word", "pos", "label")
Sentences = list[list[tuple[str, ...]]]


def parse(data: bytes, width: int) -> Sentences | int | None:
    """The rows of each sentence; the first wrong line; None for a file without tokens."""
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        return data[: error.start].count(b"\n") + 1
    if "\0" in text:
        return text[: text.index("\0")].count("\n") + 1
    sentences: Sentences = [[]]
    for number, line in enumerate(text.split("\n"), 1):
        fields = tuple(re.findall(r"[^ \t\r\v\f]+", line))
        if not fields or fields[0] == "-DOCSTART-":
            sentences.append([])
        elif len(fields) != width:
            return number
        else:
            sentences[-1].append(fields)
    return [sentence for sentence in sentences if sentence] or None


def text(chance: random.Random) -> str:
    """A correct file of 40 sentences."""
    words = ["The", "caf\u00e9", "\u4e2d\u6587", "x\u00a0y", "p53", ".", "#1", "\u1f600", "n"]
    lines = ["-DOCSTART- -X- O", ""]
    for _ in range(40):
        columns = [chance.choices(each, k=7) for each in (words, "NVA", "XYZ")]
        rows = list(map(" ".join, zip(*columns, strict=True)))
        lines += [*rows[: chance.randrange(1, 8)], ""]
    return "\n".join(lines) + "\n"


def _bytes(change: Callable[[bytearray, random.Random], None]) -> Callable[..., bytes]:
    def damage(chance: random.Random) -> bytes:
        data = bytearray(text(chance).encode())
        for _ in range(chance.randrange(1, 4)):
            change(data, chance)
        return bytes(data)

    return damage


def _lines(change: Callable[[str, random.Random], str]) -> Callable[..., bytes]:
    def damage(chance: random.Random) -> bytes:
        lines = text(chance).split("\n")
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(lines))
            lines[at] = change(lines[at], chance)
        return "\n".join(lines).encode()

    return damage


def _stray(*pieces: str) -> Callable[..., bytes]:
    """Pieces of text put anywhere."""
    return _bytes(lambda d, c: d.__setitem__(slice(at := c.randrange(len(d)), at), _one(c, pieces)))


def _one(chance: random.Random, pieces: tuple[str, ...]) -> bytes:
    return chance.choice(pieces).encode("utf-8", "surrogatepass")


def _ends(chance: random.Random) -> bytes:
    ends = ["\n", "\r\n", "\r\r\n", "\n\r", "\r"]
    few = chance.sample(ends, 2)
    return "".join(line + chance.choice(few) for line in text(chance).split("\n")).encode()


def _encoded(name: str) -> Callable[..., bytes]:
    return lambda chance: text(chance).encode(name, "replace")


def _sign(chance: random.Random) -> bytes:
    """Byte order marks at the start, twice, or before a later line."""
    head, mark = chance.choice([1, 2, 0]), b"\xef\xbb\xbf"
    rows = text(chance).encode().split(b"\n", 3)
    return mark * head + b"\n".join([*rows[:3], mark * chance.randrange(2) + rows[3]])


SPACES = ("\u00a0", "\u3000", "\u2028", "\u2029", "\x85", "\u200b", "\u1680", "\u202f")
OTHER_SPACES = ("\x1c", "\x1d", "\x1e", "\x1f", "\v", "\f", "\t", "  ")
MARKS = ("-DOCSTART-", "-DOCSTART- O O", "-DOCSTART-x O O", "-docstart- O O", "\v-DOCSTART-")
DAMAGE: dict[str, Callable[[random.Random], bytes]] = {
    "none": lambda c: text(c).encode(),
    "bytes flipped": _bytes(lambda d, c: d.__setitem__(c.randrange(len(d)), c.randrange(256))),
    "bits flipped": _bytes(
        lambda d, c: d.__setitem__(at := c.randrange(len(d)), d[at] ^ (1 << c.randrange(8)))
    ),
    "bytes left out": _bytes(lambda d, c: d.__delitem__(c.randrange(len(d)))),
    "blocks left out": _bytes(
        lambda d, c: d.__delitem__(slice(at := c.randrange(len(d) // 2), at + c.randrange(90)))
    ),
    "truncated": lambda c: (d := text(c).encode())[: c.randrange(len(d))],
    "columns dropped": _lines(lambda line, c: " ".join(line.split(" ")[: c.randrange(3)])),
    "columns added": _lines(lambda line, c: line + c.choice([" x", "\tx y", " _", " \u3000"])),
    "lines doubled": _lines(lambda line, c: f"{line}\n{line}"),
    "lines left out": _lines(lambda line, c: ""),
    "NUL bytes": _stray("\0", "\0\0", "\n\0\n"),
    "line ends mixed": _ends,
    "byte order marks": _sign,
    "UTF-16": _encoded("utf-16"),
    "UTF-16 without mark": _encoded("utf-16-be"),
    "UTF-32": _encoded("utf-32"),
    "Latin-1": _encoded("latin-1"),
    "GB 18030": _encoded("gb18030"),
    "Unicode spaces": _stray(*SPACES),
    "control characters": _stray(*OTHER_SPACES, "\x1b[2J", "\x7f", "\x08"),
    "blank lines with spaces": _stray("\n \n", "\n\t\n", "\n \t \r\n", "\n\v\n", "\n\u3000\n"),
    "document marks": _lines(lambda line, c: f"{line}\n{c.choice(MARKS)}\n"),
    "tabs and trailing spaces": _lines(
        lambda line, c: line.replace(" ", c.choice(["\t", " \t", "  "])) + c.choice(["", " ", "\t"])
    ),
    "surrogates and overlong bytes": _bytes(
        lambda d, c: d.__setitem__(
            slice(at := c.randrange(len(d)), at), c.choice([b"\xed\xa0\x80", b"\xc0\x80", b"\xff"])
        )
    ),
    "long lines": _lines(lambda line, c: line.replace(" ", "y" * 10**5 + " ", 1)),
    "nothing but blanks": lambda c: b"".join(c.choices([b"\n", b" ", b"\t\r\n", b"\v"], k=50)),
    "random bytes": lambda c: c.randbytes(300),
}


def damaged(kind: str, number: int) -> bytes:
    """The file of this kind and number, always the same."""
    return DAMAGE[kind](random.Random(f"{kind} {number}"))


def outcome(data: bytes, path: Path) -> str:
    """ "read", "refused", or what the two readers make differently of the file."""
    path.write_bytes(data)
    expected = parse(data, len(COLUMNS))
    try:
        corpus = read_conll(path, COLUMNS)
    except UserError as error:
        return _refused(error, path, expected)
    columns = [corpus.column(name).strings() for name in COLUMNS]
    rows = list(zip(*columns, strict=True))
    borders = corpus.offsets.tolist()
    found = [rows[a:b] for a, b in pairwise(borders)]
    if found != expected:
        return f"WRONG: {len(found)} sentences, the other parser has {str(expected)[:60]}"
    return _as_dataset(path, data)


def _refused(error: UserError, path: Path, expected: Sentences | int | None) -> str:
    said = str(error)
    place = f"{path}:{expected}: " if isinstance(expected, int) else f"{path}: no token"
    good = said.startswith(place) and said.isprintable() and len(said) < 2500
    return "refused" if good and not isinstance(expected, list) else f"WRONG: {said[:200]}"


def _as_dataset(path: Path, data: bytes) -> str:
    """The same as a dataset: the words are those, or a label is refused with its line.

    Of several byte order marks at the start, none is part of a word.
    """
    sentences = parse(through_the_door(data), len(COLUMNS))
    assert isinstance(sentences, list)
    try:
        corpus = load_user_data(path, COLUMNS, cut=False).splits["train"]
    except UserError as error:
        line = re.match(re.escape(str(path)) + r":(\d+): label ", str(error))
        return "label refused" if line and str(error).isprintable() else f"WRONG: {error}"
    words = [row[0] for sentence in sentences for row in sentence]
    return "read" if corpus.column("word").strings() == words else "WRONG: other words"


TEMPLATES = "# a comment\nU00:%x[-1,0]\nU01:%x[0,0]/%x[1,1]\nU02:%x[-2,0]\n\nU03:%x[2,1]\nB\n"
PIECES = ("%", "[", "]", "x", ",", "-", "9" * 9, "\n", "U", "B", ":", "#", " ", "\0", "\u3000", '"')


def damaged_template(number: int) -> bytes:
    """A template file with bytes flipped, left out or put in."""
    chance = random.Random(f"template {number}")
    data = bytearray(TEMPLATES.encode())
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(data))
        data[at : at + chance.randrange(3)] = _one(chance, PIECES) * chance.randrange(3)
        data[at % len(data)] ^= chance.choice([0, 0, 0, 1, 64, 128])
    return bytes(data)


def template_outcome(data: bytes, path: Path) -> str:
    """ "read" with the macros of the file, "refused" in one line, or what is wrong."""
    path.write_bytes(data)
    try:
        templates = load_featurizer(path, COLUMNS).templates
    except UserError as error:
        said = str(error)
        good = said.startswith(str(path)) and said.isprintable() and len(said) < 2500
        return "refused" if good else f"WRONG: {said[:200]}"
    content = data.decode().removeprefix("\ufeff").splitlines()
    lines = [re.sub(r"(^|\s)#.*", "", line).strip() for line in content]
    expected = sorted(
        (int(offset), COLUMNS[int(column)])
        for line in lines
        for offset, column in re.findall(r"%[xX]\[\s*([+-]?\d+)\s*,\s*(\d+)\s*\]", line)
    )
    atoms = [atom for template in templates for atom in template.atoms]
    found = sorted((atom.offset, atom.column.split(".")[0]) for atom in atoms)
    return "read" if found == expected else f"WRONG: {found} {expected}"


def through_the_door(data: bytes) -> bytes:
    """What a dataset reads of a text in UTF-8, beside what `parse` knows.

    Byte order marks at the start are left out, carriage returns alone end lines, and lines of white
    space, of Unicode as well, are blank.
    """
    while data.startswith(codecs.BOM_UTF8):
        data = data.removeprefix(codecs.BOM_UTF8)
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    lines = data.split(b"\n")
    return b"\n".join(b"" if _is_blank(line) else line for line in lines)


def _is_blank(line: bytes) -> bool:
    text = line.decode(errors="replace")
    return not "".join(text.split()).strip("\u200b\ufeff") and "\0" not in text


def run_outcome(data: bytes, folder: Path) -> str:
    """Train on a correct file, test on this one; the accuracy of the record, computed again."""
    folder.mkdir(parents=True)
    (folder / "train.conll").write_text(text(random.Random(1)))
    (folder / "test.conll").write_bytes(data)
    words = ["run", "--method", "supervised", "--data", folder, "--store", folder / "runs"]
    words += ["--set", "max_iterations=5", "--threads", 1, "--format", "json"]
    words += ["--encoding", "utf-8", "--separator", "space", "--comment", "none"]
    result = sslbench(*words)
    expected = parse(through_the_door(data), len(COLUMNS))
    if not isinstance(expected, list):
        place = f"{folder / 'test.conll'}{f':{expected}' if expected else ''}: "
        one = [line for line in result.stderr.splitlines() if line.startswith(f"sslbench: {place}")]
        return "refused" if result.exit_code == 2 and one else f"WRONG: {result.stderr[:200]}"
    if result.exit_code:
        return f"WRONG: {result.stderr[:200]}"
    (made,) = json.loads(result.stdout)
    gold = [row[2] for sentence in expected for row in sentence]
    saved = Store(folder / "runs").find(made["run_id"]).predictions["test"]
    guesses = [saved.labels[code] for code in saved.codes(len(gold))]
    accuracy = sum(a == b for a, b in zip(gold, guesses, strict=True)) / len(gold)
    same = abs(accuracy - made["metrics"]["test"]["accuracy"]) < 1e-12
    return "read" if same else f"WRONG: accuracy {accuracy}"


def attack(number: int, seed: int) -> Table:
    """`number` damaged CoNLL files, about as many templates, and a run on two files of each way.

    Before them, the files that have failed once.
    """
    table = Table()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for i, data in enumerate(kept("texts")):
            _add(table, "kept", data, outcome(data, folder / "train.conll"))
            _add(table, "kept, runs", data, run_outcome(data, folder / f"kept {i}"))
        for kind in DAMAGE:
            for i in range(seed, seed + -(-number // len(DAMAGE))):
                data = damaged(kind, i)
                _add(table, kind, data, outcome(data, folder / "train.conll"))
            for i in range(seed, seed + 2):
                data = damaged(kind, i)
                result = run_outcome(data, folder / f"{kind} {i}")
                _add(table, "runs, accuracy computed again", data, result)
        for data in [*kept("texts templates"), *map(damaged_template, range(seed, seed + number))]:
            result = template_outcome(data, folder / "t.crfpp")
            _add(table, "templates", data, result)
    return table


def _add(table: Table, row: str, data: bytes, result: str) -> None:
    wrong = result.startswith("WRONG")
    kind = "texts templates" if row == "templates" else "texts"
    table.add(row, result, [f"{result} ({keep(kind, data)})"] if wrong else [])
