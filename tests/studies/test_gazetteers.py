"""Files of the weak sources that a study writes."""

from __future__ import annotations

import re

from studies.gazetteers import gazetteer, pattern


def test_lines_of_names() -> None:
    assert gazetteer(["Oslo", "New York"], "LOC") == "LOC\tOslo\nLOC\tNew York\n"


def test_a_person_has_a_first_name_and_one_or_two_others() -> None:
    kind, expression = pattern(["Ada", "J. R."], "PER").rstrip("\n").split("\t")
    assert kind == "PER"
    for text, found in (
        ("Then Ada Lovelace spoke", "Ada Lovelace"),
        ("J. R. Smith Jones Brown", "J. R. Smith Jones"),
        ("Ada spoke", None),
        ("JxRx Smith", None),  # a point is no other character
    ):
        match = re.search(expression, text)
        assert (match and match.group()) == found
