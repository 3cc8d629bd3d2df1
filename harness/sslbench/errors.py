"""The one exception that a user is meant to see."""

from __future__ import annotations

import os


class UserError(Exception):
    """Wrong usage or bad input: shown as one line, exit status 2.

    Parameters
    ----------
    message: what is wrong.
    file, line: where (line counts from 1), when the input is a file.
    hint: what to do about it.
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
        place = self.file or ""
        if self.line is not None:
            place += f":{self.line}"
        text = f"{place}: {self.message}" if place else self.message
        return f"{text}; {self.hint}" if self.hint else text
