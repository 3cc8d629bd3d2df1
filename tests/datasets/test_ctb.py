"""ctb7: made-up files in the formats of the Chinese Treebank 7.0 (no real one may be kept here)."""

from __future__ import annotations

from pathlib import Path

import pytest

from sslbench.engine.corpus import RawBytes
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.planning.task import load_dataset
from sslbench.experiment.request.request import RunRequest
from sslbench.plugins import registry
from sslbench_datasets.chinese.info import RAW_TEXT
from sslbench_datasets.ctb import load as ctb
from sslbench_datasets.ctb.info import DATASETS, DEV, TEST
from support.chinese_fakes import rows

NEWSWIRE = """<DOC>
<DOCID> CBS_0001.1000 </DOCID>
<HEADER>
<DATE> 1996 </DATE>
</HEADER>
<BODY>
<HEADLINE>
<S ID=1>
上海_NR 浦东_NR  开发_NN
</S>
</HEADLINE>
<TEXT>
<P>
<S ID=2>
_{}_PU 沪_NR-SHORT 的_DEG 人民_NN
</S>
</P>
</TEXT>
</BODY>
</DOC>
""".replace("_{}", "<")
SENTENCES = [
    [("上海", "NR"), ("浦东", "NR"), ("开发", "NN")],
    [("<", "PU"), ("沪", "NR"), ("的", "DEG"), ("人民", "NN")],
]
TREES = """<DOC>
<BODY>
<S ID=1>
( (IP-HLN (NP-SBJ (NP-PN (NR 上海)
\t\t(NR 浦东)) (NP (NN 开发)))) )
</S>
<S ID=2>
( (IP (PU <) (NP (-NONE- *pro*)) (NR-SHORT 沪) (DEG 的) (NN 人民)))
</S>
</BODY>
</DOC>
"""


def tagged(content: str) -> list[list[tuple[str, str]]]:
    return list(ctb.read_tagged(RawBytes("f.pos", content.encode())))


def bracketed(content: str) -> list[list[tuple[str, str]]]:
    return list(ctb.read_bracketed(RawBytes("f.nw", content.encode())))


@pytest.mark.parametrize(
    "content",
    [NEWSWIRE, NEWSWIRE.replace("\n", " \r\n"), "\ufeff" + NEWSWIRE.replace(" 的", "\t的")],
)
def test_tagged_sentences(content: str) -> None:
    assert tagged(content) == SENTENCES


@pytest.mark.parametrize(
    "content",
    [
        '<seg id="1">\n我_PN\n</seg>\n< HEADLINE >\n<seg id="2">\n你_PN\n</seg>\n',
        '<segment id="1" start="0.1" speaker="a_b">\n我_PN\n</segment>\n你_PN',
        "<su id=1A>\n我_PN\n\n<su id=p1_su2>\n你_PN\n",
        "我_PN\n你_PN\n",
    ],
)
def test_the_markup_of_other_genres(content: str) -> None:
    assert tagged(content) == [[("我", "PN")], [("你", "PN")]]


@pytest.mark.parametrize("content", [TREES, TREES.replace("\n", "\r\n"), "\ufeff" + TREES])
def test_trees_give_the_same_sentences(content: str) -> None:
    assert bracketed(content) == SENTENCES


def test_an_underscore_may_be_a_word() -> None:
    assert tagged("__PU a_b_NN\n") == [[("_", "PU"), ("a_b", "NN")]]


@pytest.mark.parametrize(
    ("read", "content", "line", "message"),
    [
        (tagged, NEWSWIRE.replace("浦东_NR", "浦东"), 9, "'浦东' is not word_TAG"),
        (tagged, "我_PN\n\n_NN", 3, "not word_TAG"),
        (bracketed, TREES.replace("(DEG 的)", "(DEG)"), 8, "word without tag"),
        (bracketed, TREES.replace("的", "\ue000").replace("</BODY>", "text"), 10, "between trees"),
        (bracketed, "<DOC>\n</DOC>\n", None, "no tree"),
    ],
)
def test_bad_lines_are_named(read: object, content: str, line: int | None, message: str) -> None:
    assert callable(read)
    with pytest.raises(UserError, match=message) as caught:
        read(content)
    assert caught.value.line == line
    assert str(caught.value.file) == ("f.pos" if read is tagged else "f.nw")


@pytest.mark.parametrize("read", [ctb.read_tagged, ctb.read_bracketed])
def test_a_gb_file_is_refused(read: object) -> None:
    assert callable(read)
    with pytest.raises(UserError, match="not utf-8") as caught:
        list(read(RawBytes("f", b"<DOC>\n" + "上海_NR".encode("gb18030"))))
    assert caught.value.line == 2


# --- the split ------------------------------------------------------------------------------------


def test_the_split_by_files() -> None:
    numbers = {1: "test", 40: "test", 41: "dev", 80: "dev", 81: "train", 143: "train", 144: "test"}
    numbers |= {591: "dev", 592: "test", 1036: "test", 1037: "train", 3145: "test", 4411: "dev"}
    assert {number: ctb.split_of(number) for number in numbers} == numbers
    dev, test = ctb.numbers(DEV), ctb.numbers(TEST)
    assert not dev & test
    assert ctb.numbers("3-5,9") == {3, 4, 5, 9}
    for ranges in (DEV, TEST):
        listed = [int(n) for part in ranges.split(",") for n in part.split("-")]
        assert listed == sorted(set(listed))


# --- the dataset ----------------------------------------------------------------------------------


def little_ctb(folder: Path, form: str = "postagged") -> Path:
    """Two files of train, one of dev and one of test; the word says which."""
    folder.mkdir(parents=True)
    for number, genre in ((81, "nw"), (3000, "bn"), (301, "nw"), (271, "nw")):
        word = f"{number:04d}"
        name = f"chtb_{word}.{genre}"
        if form == "postagged":
            (folder / f"{name}.pos").write_text(f"<S ID=1>\n{word}_CD 人_NN\n</S>\n", "utf-8")
        else:
            content = f"<S ID=1>\n( (IP (CD {word}) (NN 人)))\n</S>\n"
            (folder / name).write_text(content, "utf-8")
    (folder / "readme.txt").write_text("no text")
    (folder / "chtb_0302.nw.seg").write_text("0302 人")
    return folder


def load(root: Path, **options: object) -> Dataset:
    home = DataHome(root, root / "cache", offline=True)
    return ctb.load(home, **{"check": False, **options})


CUT = {
    "train": ["0B-CD 0M-CD 8M-CD 1E-CD 人S-NN", "3B-CD 0M-CD 0M-CD 0E-CD 人S-NN"],
    "dev": ["0B-CD 3M-CD 0M-CD 1E-CD 人S-NN"],
    "test": ["0B-CD 2M-CD 7M-CD 1E-CD 人S-NN"],
}


@pytest.mark.parametrize("form", ["postagged", "bracketed"])
@pytest.mark.parametrize("layout", ["", "{}", "utf-8/{}", "data/utf-8/{}"])
def test_files_are_found_and_cut(tmp_path: Path, form: str, layout: str) -> None:
    root = tmp_path / "ctb7"
    little_ctb(root / layout.format(form), form)
    dataset = load(root)
    assert (dataset.name, dataset.task, dataset.metric) == ("ctb7", "joint", "joint_f1")
    assert dataset.encoding == "BMES"
    assert {split: rows(corpus) for split, corpus in dataset.splits.items()} == CUT
    for corpus in dataset.splits.values():
        for name in ("word", "label"):
            assert corpus.column(name).vocabulary is dataset.splits["dev"].column(name).vocabulary
    assert dataset.metadata["form"] == form
    assert dataset.metadata["train_words"] == 4


def test_the_tagged_files_come_first(tmp_path: Path) -> None:
    for form in ("postagged", "bracketed"):
        little_ctb(tmp_path / "data" / "utf-8" / form, form)
    assert load(tmp_path).metadata["form"] == "postagged"


def test_the_option_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = little_ctb(tmp_path / "mine" / "postagged")
    given = load(tmp_path / "elsewhere", path=str(tmp_path / "mine"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load(tmp_path / "elsewhere", path="~/mine").metadata == given.metadata
    (folder / "chtb_0271.nw.pos").write_text("我_PN", encoding="utf-8")
    assert load(tmp_path / "mine").metadata["sha256"] != given.metadata["sha256"]


def test_unlabeled_text_of_the_user(tmp_path: Path) -> None:
    little_ctb(tmp_path / "postagged")
    mine = tmp_path / "mine.txt"
    mine.write_text("新 人\n人\n", encoding="utf-8")
    dataset = load(tmp_path, unlabeled=str(mine))
    assert dataset.external is not None
    (shard,) = dataset.external()
    assert list(shard.sentences("word")) == [["新", "人"], ["人"]]
    assert shard.column("word").vocabulary is dataset.splits["train"].column("word").vocabulary
    assert "sha256_unlabeled" in dataset.metadata


def test_folders_without_the_treebank_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no such folder.*--data FOLDER or --set ctb7\.path"):
        load(tmp_path / "nowhere")
    with pytest.raises(UserError, match="no file of the Chinese Treebank"):
        load(tmp_path)
    folder = little_ctb(tmp_path / "postagged")
    for number in ("0301", "0271"):
        (folder / f"chtb_{number}.nw.pos").unlink()
    with pytest.raises(UserError, match="no file of dev and test") as caught:
        load(tmp_path)
    assert caught.value.file == str(folder)


def test_bad_files_are_named_by_path(tmp_path: Path) -> None:
    (little_ctb(tmp_path / "postagged") / "chtb_0301.nw.pos").write_text("我_PN\n我\n", "utf-8")
    with pytest.raises(UserError, match=r"chtb_0301\.nw\.pos:2: '我' is not word_TAG"):
        load(tmp_path)


def test_other_numbers_than_the_catalogs_are_an_error(tmp_path: Path) -> None:
    little_ctb(tmp_path / "postagged")
    message = r"has 4 files, 4 sentences; expected 2,448 files, 51,447 .*ctb7\.check=false"
    with pytest.raises(UserError, match=message):
        load(tmp_path, check=True)
    with pytest.raises(UserError, match=message):
        ctb.load(DataHome(tmp_path, tmp_path / "cache", offline=True))


@pytest.mark.parametrize("options", [{"path": 3}, {"folder": "x"}])
def test_bad_options_are_refused(tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(UserError, match="dataset ctb7"):
        load(tmp_path, **options)


@pytest.mark.parametrize("by_option", [True, False])
def test_the_command_line_reaches_the_folder(tmp_path: Path, by_option: bool) -> None:
    little_ctb(tmp_path / "data" / "utf-8" / "postagged")
    settings = ["ctb7.check=false"]
    if by_option:
        settings.append(f"ctb7.path={tmp_path}")
    request = RunRequest(
        method=["supervised"],
        dataset=["ctb7"],
        params=settings,
        text="rest",
        data=None if by_option else tmp_path,
    )
    (task,) = plan(request, store=None, notice=print)
    assert load_dataset(task, registry()).splits["test"].n_sentences == 1
    assert any(name.endswith(".pos") for name in task.files) is not by_option


def test_the_registration_loads() -> None:
    (info,) = DATASETS
    assert info.load() is ctb.load
    assert (info.task, info.metric, info.files) == ("joint", "joint_f1", RAW_TEXT)
