"""The exception for errors that the user can correct."""

from __future__ import annotations

import os

__all__ = ["InputWarning", "UserError", "printable", "shortened"]

_LONGEST = 1000  # characters shown of a message or hint, which may quote a very long line
_READ = 100_000  # characters of an exception's text that are looked at


class UserError(Exception):
    """Wrong usage or bad input: the command line shows it in one line and exits with status 2.

    Parameters
    ----------
    message: what is wrong.
    file, line: where (line counts from 1), when the input is a file.
    hint: what to do about it.

    `str()` of it is one printable line: line breaks and control characters are escaped, and parts
    of over 1000 characters are shortened in the middle.
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
        place = shortened(self.file or "")
        if self.line is not None:
            place += f":{self.line}"
        message = shortened(self.message)
        text = f"{place}: {message}" if place else message
        return f"{text}; {shortened(self.hint)}" if self.hint else text


class InputWarning(UserWarning):
    """Something in the input that a user should know; the command line shows it in one line."""


def described(problem: BaseException) -> str:
    """Return type and message of an exception as one printable line of limited length."""
    try:
        text = " ".join(str(problem)[:_READ].split())
    except Exception:  # the exception may be of a plugin's class
        text = ""
    return shortened(f"{type(problem).__name__}: {text}" if text else type(problem).__name__)


def shortened(text: str) -> str:
    """Return the text as `printable`, cut in the middle to about 1000 characters."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
    return printable(text)


def printable(text: str) -> str:
    """Return the text with line breaks, control characters and other invisible ones escaped.

    For terminals: no text from a file or a plugin can move the cursor or change the direction.
    """
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]
