"""Raw text, cut into tokens."""

from __future__ import annotations

import pytest

from sslbench.engine.corpus.raw import SPLITS, raw_parts
from sslbench.engine.errors import UserError


@pytest.mark.parametrize(
    ("split", "line", "tokens"),
    [
        ("words", " a  b,\tc ", "a b, c"),
        ("rules", "It costs $3.14, (or 1,000).", "It costs $ 3.14 , ( or 1,000 ) ."),
        ("rules", "state-of-the-art l'eau don't", "state-of-the-art l'eau don't"),
        ("rules", "the U.S. has 9 e.g.", "the U.S. has 9 e.g."),
        ("rules", "see http://x.org/a?b=1.", "see http://x.org/a?b=1 ."),
        ("rules", "«Ça va?» №5", "« Ça va ? » № 5"),
        ("english", "I don't, John's; we'LL", "I do n't , John 's ; we 'LL"),
        ("english", "'s n't", "' s n't"),
        ("characters", "我 爱。", "我 爱 。"),
    ],
)
def test_tokens(split: str, line: str, tokens: str) -> None:
    assert SPLITS[split](line) == tokens.split()


@pytest.mark.parametrize("split", list(SPLITS))
def test_no_character_is_lost(split: str) -> None:
    line = "Ünï-cødé __ x_y 3,000.5% 🙂 a\u00a0b “q” it's--so…"
    joined = "".join(SPLITS[split](line))
    assert "".join(joined.split()) == "".join(line.split())


def test_blocks_may_end_anywhere() -> None:
    data = "\ufeffeins zwei\r\n\n  \nдва три\n".encode() * 3
    whole = [s for part in raw_parts([data], "words", "f") for s in part]
    assert whole[:2] == [["eins", "zwei"], ["два", "три"]]
    pieces = [data[i : i + 3] for i in range(0, len(data), 3)]
    assert [s for part in raw_parts(pieces, "words", "f") for s in part] == whole
    assert list(raw_parts([b" \n\n"], "words", "f")) == []


@pytest.mark.parametrize(
    ("data", "message"), [(b"a\n\xff\n", "f:2: byte 0xff"), (b"\0", "f:1: a NUL")]
)
def test_what_is_no_text_is_refused_with_its_line(data: bytes, message: str) -> None:
    with pytest.raises(UserError) as error:
        list(raw_parts([data], "rules", "f"))
    assert str(error.value).startswith(message)


def test_a_line_without_end_is_refused() -> None:
    blocks = iter(lambda: b"x" * 2**20, b"")  # endless
    with pytest.raises(UserError, match="a line of more than"):
        list(raw_parts(blocks, "rules", "f"))
