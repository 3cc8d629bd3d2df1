"""Classes of characters."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable, Mapping

CLASSES: Mapping[str, Callable[[str], bool]] = {
    "upper": str.isupper,
    "lower": str.islower,
    "digit": str.isdigit,
    "alpha": str.isalpha,
    "alnum": str.isalnum,
    "punct": lambda c: c in string.punctuation or unicodedata.category(c).startswith("P"),
    "dash": lambda c: unicodedata.category(c) == "Pd",
    "period": lambda c: c == ".",
    "space": str.isspace,
}
