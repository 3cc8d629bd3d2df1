"""Texts that would act in an output that does not escape them."""

from __future__ import annotations

ESCAPES = "\x1b[2J\x1b]0;title\x07\x9b31m\x7f\u202e\u2028\r"
NAME = f"=1+1{ESCAPES}\nfake <script>alert(1)</script>[a](http://b.c)|`x`*y*_z_~k~#1@you $\\frac$"
FORMULAS = ("=1+1", "+A1", "-A1", "@SUM(A1)", '=HYPERLINK("http://b.c")', "\t=1+1", "\r=1")
SURROGATE = "caf\udce9"


def acts_on_a_terminal(text: str) -> bool:
    """Whether a line of the text has a character that is not shown as itself."""
    return not all(line.isprintable() for line in text.split("\n"))
