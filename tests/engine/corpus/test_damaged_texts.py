"""Damaged CoNLL and template files: read as another parser reads them, or refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from attacks.texts import DAMAGE, damaged, damaged_template, outcome, run_outcome, template_outcome


@pytest.mark.parametrize("kind", list(DAMAGE))
def test_two_parsers_agree(kind: str, tmp_path: Path) -> None:
    found = {outcome(damaged(kind, number), tmp_path / "train.conll") for number in range(8)}
    assert found <= {"read", "refused", "label refused"}


def test_templates_are_read_whole_or_refused(tmp_path: Path) -> None:
    files = [damaged_template(number) for number in range(60)]
    assert {template_outcome(file, tmp_path / "t") for file in files} == {"read", "refused"}


@pytest.mark.parametrize("kind", ["document marks", "byte order marks", "NUL bytes"])
def test_the_accuracy_of_a_run_can_be_computed_again(kind: str, tmp_path: Path) -> None:
    expected = "refused" if kind == "NUL bytes" else "read"
    assert run_outcome(damaged(kind, 0), tmp_path / "data") == expected
