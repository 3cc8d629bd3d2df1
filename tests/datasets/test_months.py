"""CoNLL-2003 with the stories of one month of Reuters-21578."""

from __future__ import annotations

from pathlib import Path

import pytest

from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome
from sslbench.plugins import registry
from sslbench_datasets.months import load as months
from sslbench_datasets.ner.info import CONLL2003


def story(date: str, text: str) -> str:
    body = f"<BODY>{text}\n Reuter\n&#3;</BODY>"
    return f"<REUTERS NEWID='1'>\n<DATE>{date}</DATE>\n<TEXT>{body}</TEXT></REUTERS>\n"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    first, second = tmp_path / "0.sgm", tmp_path / "1.sgm"
    first.write_text(
        "<!DOCTYPE lewis>\n"
        + story("26-FEB-1987 15:01:01.79", "Oil fell very sharply.")
        + story(" 1-MAR-1987 09:10:11.12", "Gold rose in London. Silver rose in Paris.")
        + "<REUTERS NEWID='2'><DATE> 2-MAR-1987</DATE><TEXT><TITLE>No body</TITLE></TEXT></REUTERS>"
    )
    second.write_text(
        story("31-MAR-1987 01:02:03.04", "Tin fell in Bonn.")
        + story("no date", "Zinc fell in Rome.")
        + story("20-OCT-1987 01:02:03.04", "Stocks fell in Tokyo.")
    )
    return [first, second]


def test_the_stories_of_a_month_are_its_text(files: list[Path]) -> None:
    assert months.month_words(files, "1987-02") == "Oil\nfell\nvery\nsharply\n.\n"
    march = months.month_words(files, "1987-03").split("\n\n")
    assert [each.split()[0] for each in march] == ["Gold", "Silver", "Tin"]
    assert months.month_words(files, "1987-10") == "Stocks\nfell\nin\nTokyo\n.\n"
    assert months.month_words(files, "1987-06") == ""


def test_all_stories_count_also_one_without_a_date(files: list[Path]) -> None:
    every = months.month_words(files, "all").split("\n\n")
    assert [each.split()[0] for each in every] == ["Oil", "Gold", "Silver", "Tin", "Zinc", "Stocks"]


def test_the_splits_are_those_of_conll03() -> None:
    made, base = (registry().dataset(name) for name in ("conll03_months", "conll03"))
    assert len(made.files) == 3 + 22
    assert set(base.files) < set(made.files)
    assert (made.task, made.metric, made.featurizer) == ("spans", "f1", "ner79")
    assert set(CONLL2003.values()) <= set(made.files)


def test_an_unknown_month_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="month"):
        months.load(DataHome(tmp_path, tmp_path / "cache"), month="1987-05")


@pytest.mark.corpus
def test_the_months_of_the_files_at_hand() -> None:
    """The seven files that other datasets use end on 19 March."""
    home = DataHome()
    paths = [path for path in map(home.locate, months.FILES[:7]) if path.is_file()]
    if len(paths) < 7:
        pytest.skip("Reuters-21578 is not in the data home")
    words = months.month_words(paths, "1987-02")
    assert (words.count("\n\n") + 1, len(words.split())) == (1_059, 28_181)
