"""The faults of `tests/mutations.py` can be made: each text stands once in its file."""

from __future__ import annotations

import pytest

from mutations import FAULTS, ROOT, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_made(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    assert text.count(fault.text) == 1
    assert text.replace(fault.text, fault.fault) != text
    for test in fault.tests:
        assert (ROOT / test.partition("::")[0]).exists()
