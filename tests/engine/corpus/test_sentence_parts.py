"""Text in parts of whole sentences: nothing is lost, moved or read differently."""

from __future__ import annotations

import itertools
import random

import pytest

from sslbench.engine.corpus import RawBytes, read_conll
from sslbench.engine.corpus.sentence_parts import sentence_parts
from sslbench.engine.errors import UserError

BREAKS = [b"\n\n", b"\n \t\n", b"\r\n\r\n", b"\n\n\n\n", b"\n\x0b\n", b"\n-DOCSTART- O\n\n", b"\n"]


def random_text(seed: int) -> bytes:
    """Lines with all kinds of borders, byte order marks among them."""
    chance = random.Random(seed)
    words = [b"a O", b"b B-X", "\ufeffc O".encode(), "\ufeff\u3000d I-X".encode(), b"  e\tO "]
    parts = [chance.choice(words) + chance.choice(BREAKS) for _ in range(chance.randrange(60))]
    return b"".join([chance.choice([b"", b"\xef\xbb\xbf", b"\n", b" \n"]), b"a O\n", *parts])


@pytest.mark.parametrize("seed", range(100))
def test_parts_are_the_file(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sslbench.engine.corpus.sentence_parts._PART", 1 + seed)
    text = random_text(seed)
    size = 1 + seed % 13
    parts = list(sentence_parts((text[i : i + size] for i in range(0, len(text), size)), "text"))
    assert b"".join(part.text for part in parts) == text
    assert [part.lines_before for part in parts] == [
        text.count(b"\n", 0, at)
        for at in itertools.accumulate((len(part.text) for part in parts[:-1]), initial=0)
    ]
    found = [sentence for part in parts for sentence in sentences(part.text)]
    assert found == sentences(text)


def sentences(text: bytes) -> list[list[tuple[str, str]]]:
    if not text.strip():
        return []
    try:
        corpus = read_conll(RawBytes("text", text), ("word", "label"))
    except UserError:  # document marks only
        return []
    words, labels = corpus.column("word").strings(), corpus.column("label").strings()
    rows = list(zip(words, labels, strict=True))
    return [rows[a:b] for a, b in itertools.pairwise(corpus.offsets.tolist())]


def test_an_endless_text_is_cut_as_it_comes() -> None:
    parts = sentence_parts(itertools.repeat(b"a O\nb O\n\n" * 2**14), "text")
    some = list(itertools.islice(parts, 20))
    assert max(len(part.text) for part in some) < 2**22


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (b"\0" * 2**20, "text:2: a line of more than 10,485,760 bytes"),
        (b"a O\n" * 2**18, "text:1: a sentence of more than 16,777,216 bytes"),
    ],
)
def test_an_endless_line_or_sentence_is_refused(
    block: bytes, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sslbench.engine.corpus.sentence_parts.MAX_SENTENCE", 2**24)
    with pytest.raises(UserError, match=f"^{message}"):
        list(sentence_parts(itertools.chain([b"a O\n"], itertools.repeat(block)), "text"))
