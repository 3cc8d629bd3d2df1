"""The board of the tests of the page and of its blocks."""

from __future__ import annotations

import pytest

from sslbench.report.board import Board
from support.board_records import DATASETS, board, records_on


@pytest.fixture(scope="session")
def shown() -> Board:
    """Three methods on seven datasets, with 100 and 500 labeled sentences and three draws."""
    return board(records_on(*DATASETS))
