"""Of every registered dataset: licences, lengths, and the advice when a file is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sslbench import DatasetInfo, RemoteFile
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome
from sslbench.plugins import registry
from support.command import sslbench

RESTRICTED = re.compile(
    r"restricted|research (use|purposes|applications)|non-commercial|\bNC\b|LDC|agreement", re.I
)
DATASETS = registry().datasets
FILES = {file.path: file for info in DATASETS.values() for file in info.files}
WITH_FILES = [name for name, info in DATASETS.items() if not all(file.extra for file in info.files)]
# Without what only their users have, the others cannot be loaded: their own tests bring it.
LOADABLE = [name for name in WITH_FILES if not DATASETS[name].own]


@pytest.mark.parametrize("path", FILES)
def test_a_licence_that_restricts_use_has_to_be_accepted(path: str) -> None:
    assert FILES[path].agreement == bool(RESTRICTED.search(FILES[path].licence))


def test_there_are_files_of_both_kinds() -> None:
    assert {file.agreement for file in FILES.values()} == {True, False}


@pytest.mark.corpus
@pytest.mark.parametrize("path", FILES)
def test_the_length_is_that_of_the_file(path: str) -> None:
    """A download is not let grow beyond it."""
    target = DataHome().locate(FILES[path])
    if not target.is_file():
        pytest.skip(f"{path} is not in the data home")
    assert target.stat().st_size == FILES[path].bytes


@pytest.mark.parametrize("name", LOADABLE)
def test_offline_one_line_says_which_file_to_put_where(name: str, tmp_path: Path) -> None:
    home = DataHome(tmp_path / "none", tmp_path / "cache", offline=True)
    with pytest.raises(UserError) as caught:
        DATASETS[name].load()(home)
    _says_where(str(caught.value), home, DATASETS[name])


def _says_where(text: str, home: DataHome, info: DatasetInfo) -> RemoteFile:
    assert "\n" not in text
    (file,) = [file for file in info.files if f"at {home.locate(file)};" in text]
    for part in (file.sha256, f"{file.bytes:,} bytes", file.urls[0], "SSLBENCH_OFFLINE"):
        assert part in text
    return file


@pytest.mark.corpus
@pytest.mark.parametrize(
    "name", [n for n in LOADABLE if any(file.extra for file in DATASETS[n].files)]
)
def test_offline_the_external_text_has_its_line_too(name: str, tmp_path: Path) -> None:
    """The splits can be read without the files of the text; the text says which one it misses."""
    info, real = DATASETS[name], DataHome()
    home = DataHome(tmp_path / "home", tmp_path / "cache", offline=True)
    for file in info.files:
        if not real.locate(file).is_file():
            pytest.skip(f"{file.path} is not in the data home")
        if not file.extra:
            home.locate(file).parent.mkdir(parents=True, exist_ok=True)
            home.locate(file).symlink_to(real.locate(file))
    dataset = info.load()(home)
    with pytest.raises(UserError) as caught:
        dataset.external()
    assert _says_where(str(caught.value), home, info).extra


def test_the_licence_holders_data_set_is_neither_missing_nor_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSLBENCH_DATA", str(tmp_path))
    monkeypatch.setenv("SSLBENCH_OFFLINE", "1")
    result = sslbench("data", "verify", "--all", "--read")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert not re.search(r"\bptb\b", result.output)
    # A file that several datasets share is named once; then a line for each dataset.
    assert len([line for line in lines if line.startswith("missing")]) == len(FILES)
    assert [line.split()[2].strip(":") for line in lines[len(FILES) :]] == WITH_FILES


@pytest.mark.corpus
def test_a_file_that_only_the_user_has_is_no_fault_of_the_data_home() -> None:
    home = DataHome()
    info = DATASETS["msr"]
    if any(not home.locate(file).is_file() for file in info.files):
        pytest.skip("the SIGHAN 2005 files are not in the data home")
    if (home.root / "icwb2-data" / "training").exists():
        pytest.skip("the data home has the training file")
    result = sslbench("data", "verify", "msr", "--read")
    assert result.exit_code == 0
    assert f"not read  msr: needs {info.own}" in result.output


def test_without_the_licence_holders_folder_one_line_says_what_to_give(tmp_path: Path) -> None:
    home = DataHome(tmp_path, tmp_path / "cache", offline=True)
    with pytest.raises(UserError, match=r"--data FOLDER or --set ptb\.path=FOLDER") as caught:
        DATASETS["ptb"].load()(home)
    assert "\n" not in str(caught.value)
