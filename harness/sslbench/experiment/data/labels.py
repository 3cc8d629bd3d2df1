"""The scheme and the spelling of the labels of a user's files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, NoReturn, cast

import msgspec
import numpy as np

from sslbench.engine.corpus import Corpus, Scheme, Vocabulary, detect_scheme, tag_fits
from sslbench.engine.corpus.encodings import describe
from sslbench.engine.errors import UserError
from sslbench.experiment.data.reading import Read
from sslbench.experiment.data.spelling import RENAMED, Spelling, find_spelling
from sslbench.experiment.request.request import SchemeName

_PLAIN_HINT = "; --scheme plain if the labels are no chunk tags"


class Labels(NamedTuple):
    """What the labels of some splits are; scheme None = plain tags."""

    scheme: Scheme | None
    spelling: Spelling
    splits: dict[str, Corpus]


def label_scheme(
    read: Mapping[str, Read], files: Mapping[str, Path], given: SchemeName | None
) -> Labels:
    """The labels as the program writes them, and how the files write them.

    read, files: by split.  given: the scheme that the user names; None = it is seen.

    One typing error (I_NP for I-NP) must not silently turn chunk tags into plain tags: if most
    labels are chunk tags, any other one is a UserError with its place, and so is a label that does
    not fit a given scheme. UserError also for labels that may be chunk tags or plain ones.
    """
    splits = {split: each.corpus for split, each in read.items()}
    if given == "plain":
        return Labels(None, Spelling(), splits)
    counts = sum((_counts(corpus) for corpus in splits.values()), Counter[str]())
    spelling, strange = find_spelling(counts)
    if given is not None:
        renamed = given if given in RENAMED else ""
        spelling = msgspec.structs.replace(spelling, renamed=renamed)
    unusual = spelling != Spelling()
    if unusual and strange:
        example = f"the others are spelled {spelling}"
        _refuse(strange, read, files, "is not spelled as the others", example + _PLAIN_HINT)
    if unusual:
        shared = Vocabulary()
        splits = {name: spelling.read_column(part, shared) for name, part in splits.items()}
    same = {"BILOU": "IOBES", "BMEWO": "BMES"}
    scheme = _seen(splits) if given is None else cast(Scheme, same.get(given, given))
    if scheme is not None:
        _check(scheme, splits, read, files, spelling)
        if given is None:
            _ask_if_bare(counts, files["train"])
    return Labels(scheme, spelling if scheme is not None else Spelling(), splits)


def _counts(corpus: Corpus) -> Counter[str]:
    """Tokens of each label."""
    column = corpus.column("label")
    numbers = np.bincount(column.codes, minlength=len(column.vocabulary)).tolist()
    pairs = zip(column.vocabulary.strings, numbers, strict=True)
    return Counter({label: n for label, n in pairs if n})


def _seen(splits: Mapping[str, Corpus]) -> Scheme | None:
    """The scheme of the labels, or that of most of them; None for plain tags."""
    rows = chain.from_iterable(corpus.sentences("label") for corpus in splits.values())
    scheme = detect_scheme(rows)
    if scheme is not None:
        return scheme
    counts = sum((_counts(corpus) for corpus in splits.values()), Counter[str]())
    del counts["O"]
    typed = sum(count for label, count in counts.items() if "-" in label)
    # max() returns the first of equals. IOB1 is not listed: its labels are those of IOB2.
    schemes: tuple[Scheme, ...] = ("IOB2", "BMES", "IOBES")
    share, nearest = max(((_share(counts, name), name) for name in schemes), key=itemgetter(0))
    mostly_typed = 2 * typed > counts.total() and share > 0.5
    mostly_bare = {"B", "E"} <= set(counts) and share > 0.95
    return nearest if mostly_typed or mostly_bare else None


def _share(labels: Counter[str], scheme: Scheme) -> float:
    """Share of the tokens outside O whose label is legal in a scheme."""
    legal = sum(count for label, count in labels.items() if tag_fits(label, scheme))
    return legal / max(1, labels.total())


def _check(
    scheme: Scheme,
    splits: Mapping[str, Corpus],
    read: Mapping[str, Read],
    files: Mapping[str, Path],
    spelling: Spelling,
) -> None:
    """UserError for the first label that is illegal, or without type where others have one."""
    counts = sum((_counts(corpus) for corpus in splits.values()), Counter[str]())
    typed = sum(n for label, n in counts.items() if "-" in label)
    bare = 2 * typed > counts.total() - counts["O"]
    wrong = {
        spelling.write(label)
        for label in counts
        if not tag_fits(label, scheme) or (bare and label != "O" and "-" not in label)
    }
    if wrong:
        name = spelling.renamed or scheme
        _refuse(wrong, read, files, f"does not fit {name}", describe(scheme) + _PLAIN_HINT)


def _refuse(
    wrong: set[str] | frozenset[str],
    read: Mapping[str, Read],
    files: Mapping[str, Path],
    problem: str,
    hint: str,
) -> NoReturn:
    """UserError at the first of these labels."""
    for split, each in read.items():
        column = each.corpus.column("label")
        codes = [column.vocabulary.lookup(label) for label in wrong]
        tokens = np.flatnonzero(np.isin(column.codes, codes))
        if len(tokens):
            label = column.vocabulary.strings[column.codes[tokens[0]]]
            line = each.line(int(tokens[0]))
            raise UserError(f"label {label!r} {problem}", file=files[split], line=line, hint=hint)
    raise UserError(f"label {min(wrong)!r} {problem}", file=files["train"], hint=hint)


def _ask_if_bare(counts: Mapping[str, int], file: Path) -> None:
    """UserError for labels such as S and O: chunk tags without types, or plain tags."""
    labels = set(counts)
    if all(len(label) == 1 for label in labels) and not labels & set("Bb"):
        names = ", ".join(sorted(labels))
        raise UserError(
            f"the labels {names} may be chunk tags without types, or plain tags",
            file=file,
            hint="give --scheme plain, or --scheme IOB2, IOBES or BMES",
        )
