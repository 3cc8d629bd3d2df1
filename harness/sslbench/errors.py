"""The one exception that a user is meant to see."""

from __future__ import annotations

import os

_LONGEST = 1000  # characters of a message or hint that are shown: it may quote a line of megabytes


class UserError(Exception):
    """Wrong usage or bad input: shown as one line, exit status 2.

    Parameters
    ----------
    message: what is wrong.
    file, line: where (line counts from 1), when the input is a file.
    hint: what to do about it.

    `str` is one printable line, whatever the parts quote: line breaks and control characters are
    escaped, parts beyond 1000 characters lose their middle.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | os.PathLike[str] | None = None,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = None if file is None else os.fspath(file)
        self.line = line
        self.hint = hint

    def __str__(self) -> str:
        place = _printable(self.file or "")
        if self.line is not None:
            place += f":{self.line}"
        message = _short(self.message)
        text = f"{place}: {message}" if place else message
        return f"{text}; {_short(self.hint)}" if self.hint else text


def _short(text: str) -> str:
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
    return _printable(text)


def _printable(text: str) -> str:
    """Text without what would break the line or drive a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
