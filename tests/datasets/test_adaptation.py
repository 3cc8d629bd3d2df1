"""Domain adaptation of part-of-speech tagging: readers, datasets, features, the real files."""

from __future__ import annotations

import dataclasses
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from sslbench import RemoteFile, registry
from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.engine.features import Template, coded_column
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.adaptation import load as adaptation
from sslbench_datasets.adaptation.info import (
    DATASETS,
    EBM,
    GENIA,
    QUESTION_CLASSES,
    QUESTIONBANK,
    SIMPLE_QUESTIONS,
    TRIVIA,
)
from sslbench_datasets.adaptation.load import PennBioOptions, find_biotrees, letters
from sslbench_datasets.genes.info import GENETAG
from sslbench_datasets.treebank import load as treebank
from sslbench_datasets.treebank.info import PTB_SECTIONS, SAMPLE
from sslbench_methods.featurizers.adaptation import pos_adapt
from support.adaptation_fakes import (
    BANK,
    BANK_PAIRS,
    GENIA_PAIRS,
    GENIA_TEXT,
    TRIVIA_SENTENCES,
    TRIVIA_TEXT,
    pairs,
)
from support.real_files import real_home

# --- datasets of small files --------------------------------------------------------------------


def put(root: Path, file: RemoteFile, data: str | bytes) -> RemoteFile:
    """Put the data where the file belongs; return its description with their digest."""
    content = data.encode() if isinstance(data, str) else data
    path = root / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return dataclasses.replace(file, sha256=sha256(content).hexdigest())


def put_zip(root: Path, file: RemoteFile, members: dict[str, str]) -> RemoteFile:
    path = root / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return put(root, file, path.read_bytes())


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataHome:
    """A data home with small files, and counts to match."""

    def patch(name: str, value: object, module: object = adaptation) -> None:
        monkeypatch.setattr(module, name, value)

    root = tmp_path / "home"
    members = {
        f"treebank/combined/wsj_{n:04d}.mrg": f"( (S (NN w{n}) (. ?) ))" for n in range(1, 200)
    }
    patch("SAMPLE", put_zip(root, SAMPLE, members), treebank)
    counts = {"train": (139, 278), "dev": (20, 40), "test": (40, 80)}
    patch("SAMPLE_COUNTS", counts, treebank)
    patch("QUESTIONBANK", put(root, QUESTIONBANK, BANK + "(S (NN w1)(NP b)(? ?))\n"))
    patch("QUESTION_COUNTS", {"dev": (2, 18), "test": (2, 5)})
    questions = "a\tb\tc\twhat's o'hara's a/b\na\tb\tc\tstop\na\tb\tc\tw1 again\n"
    patch("SIMPLE_QUESTIONS", put(root, SIMPLE_QUESTIONS, questions))
    patch("TRIVIA", (put(root, TRIVIA[0], TRIVIA_TEXT), put(root, TRIVIA[1], TRIVIA_TEXT)))
    classes = {"qc/train.txt": "DESC:def W1 b ?\nHUM:ind Who ?\n", "qc/test.txt": "DESC:def A ?\n"}
    patch("QUESTION_CLASSES", put_zip(root, QUESTION_CLASSES, classes))
    patch("QUESTION_SETS", {"simplequestions": (2, 1), "opentriviaqa": (6, 0), "qc": (2, 1)})
    patch("GENIA", {split: put(root, file, GENIA_TEXT) for split, file in GENIA.items()})
    patch("GENIA_COUNTS", {"dev": (3, 9), "test": (3, 9)})
    patch("EBM", put(root, EBM, "ebm NN O O\n"))
    patch("GENETAG", {s: put(root, f, f"@@1 {s}/NEWGENE //SYM\n") for s, f in GENETAG.items()})
    return DataHome(root, tmp_path / "cache", offline=True)


def text_of(data: Dataset) -> list[str]:
    """Sentences of the unlabeled text; its vocabulary must be that of the rest."""
    assert data.external is not None
    words = data.splits["train"].column("word").vocabulary
    sentences = []
    for shard in data.external():
        assert list(shard.columns) == ["word"]
        assert shard.column("word").vocabulary is words
        sentences += map(" ".join, shard.sentences("word"))
    return sentences


def check_form(data: Dataset) -> None:
    assert data.adaptation
    assert (data.task, data.metric, data.encoding) == ("tagging", "accuracy", None)
    assert list(data.splits) == ["train", "dev", "test"]
    for corpus in data.splits.values():
        for name in ("word", "label"):
            assert corpus.column(name).vocabulary is data.splits["train"].column(name).vocabulary


def test_questions(small: DataHome) -> None:
    data = adaptation.load_questions(small)
    check_form(data)
    assert data.splits["train"].column("word").strings()[::2] == [f"w{n}" for n in range(1, 200)]
    assert pairs(data.splits["dev"]) == BANK_PAIRS[:2]
    assert pairs(data.splits["test"]) == [BANK_PAIRS[2], "w1_NN b_NP ?_."]
    trivia = [" ".join(sentence) for sentence in TRIVIA_SENTENCES]
    as_read = [r"what 's o'hara 's a\/b", "w1 again", *trivia, *trivia]
    assert sorted(text_of(data)) == sorted(as_read)
    assert text_of(data) == text_of(data) != as_read  # shuffled, always in the same way
    metadata = data.metadata
    assert (metadata["simplequestions_sentences"], metadata["simplequestions_dropped"]) == (2, 1)
    assert "qc_dropped" not in metadata
    assert (metadata["source"], metadata["sha256_source"]) == ("wsj_sample", treebank.SAMPLE.sha256)
    # Of test, "Stop ! b" are new words and NP a new tag: "w1" and "?" are in train.
    assert metadata["test_unknown_words"] == 0.6
    assert (metadata["test_unseen_tags"], metadata["test_tokens_of_unseen_tags"]) == ("NP VB", 2)


def test_question_classes_are_an_option_and_lose_questionbank(small: DataHome) -> None:
    data = adaptation.load_questions(small, qc=True)
    extra = set(text_of(data)) - set(text_of(adaptation.load_questions(small)))
    assert extra == {"Who ?", "A ?"}
    assert (data.metadata["qc_sentences"], data.metadata["qc_dropped"]) == (2, 1)


def test_other_counts_of_questions_are_refused(
    small: DataHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = adaptation.load_questions(small)
    monkeypatch.setitem(adaptation.QUESTION_SETS, "opentriviaqa", (5, 1))
    with pytest.raises(
        UserError, match=r"opentriviaqa has 6 new .*; expected 5 new sentences, 1 dup"
    ):
        text_of(data)
    monkeypatch.setitem(adaptation.QUESTION_COUNTS, "test", (2, 6))
    with pytest.raises(UserError, match=r"4000qs\.txt: test has .* 5 tokens; expected .* 6 tokens"):
        adaptation.load_questions(small)


def test_unlabeled_text_is_read_only_on_demand(small: DataHome) -> None:
    for file in (SIMPLE_QUESTIONS, EBM, GENIA["train"]):
        small.locate(file).unlink()
    for load in (adaptation.load_questions, adaptation.load_bio):
        with pytest.raises(UserError, match="is not in the data home"):
            text_of(load(small))


def test_bio(small: DataHome, monkeypatch: pytest.MonkeyPatch) -> None:
    data = adaptation.load_bio(small)
    check_form(data)
    assert data.splits["train"].n_sentences == 199
    assert pairs(data.splits["dev"]) == pairs(data.splits["test"]) == GENIA_PAIRS
    genia = [" ".join(p.rpartition("_")[0] for p in s.split()) for s in GENIA_PAIRS]
    genes = [rf"{split} \/" for split in GENETAG]
    assert sorted(text_of(data)) == sorted([*genia, "ebm", *genes])
    for which, expected in {"genia": genia, "ebm": ["ebm"], "genetag": genes}.items():
        assert sorted(text_of(adaptation.load_bio(small, unlabeled=which))) == sorted(expected)
    monkeypatch.setitem(adaptation.GENIA_COUNTS, "dev", (3, 8))
    with pytest.raises(UserError, match=r"devel\.tsv: dev has .* expected .* 8 tokens"):
        adaptation.load_bio(small)


def little_pennbioie(folder: Path, n_files: int) -> Path:
    """Each file has as many sentences as its number says."""
    for number in range(1, n_files + 1):
        path = folder / ("onco" if number % 2 else "Onco2") / f"file_{number}.mrg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"(SENT (HYPH:[0..1] f{number}))\n" * number + "(SEC (NN:[1..2] no))")
    (folder / "onco" / "._file_1.mrg").write_bytes(b"\0")
    return folder


def test_pennbioie_is_cut_by_file_or_by_sentence(small: DataHome, tmp_path: Path) -> None:
    folder = little_pennbioie(tmp_path / "ldc", 4)
    data = adaptation.load_pennbioie(small, path=str(folder))
    check_form(data)
    words = {split: data.splits[split].column("word").strings() for split in ("dev", "test")}
    assert words == {"dev": ["f2"] * 2 + ["f4"] * 4, "test": ["f1"] + ["f3"] * 3}  # Onco2 < onco
    assert data.metadata["dev_unseen_tags"] == "HYPH"
    assert (data.metadata["files"], data.metadata["dev_tokens_of_unseen_tags"]) == (4, 6)
    assert "ebm" in text_of(data)
    cut = adaptation.load_pennbioie(small, path=str(folder), dev=7)
    assert cut.splits["dev"].column("word").strings() == ["f2"] * 2 + ["f4"] * 4 + ["f1"]
    assert cut.metadata["sha256_target"] == data.metadata["sha256_target"]
    (folder / "onco" / "file_1.mrg").write_text("(SENT (NN f0))")
    other = adaptation.load_pennbioie(small, path=str(folder))
    assert other.metadata["sha256_target"] != data.metadata["sha256_target"]
    with pytest.raises(UserError, match=r"dev has 10 of 10 sentences.*pennbioie\.dev"):
        adaptation.load_pennbioie(small, path=str(folder), dev=10)


def test_pennbioie_needs_a_folder_of_trees(
    small: DataHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=r"licence holder.*--set pennbioie\.path=FOLDER"):
        adaptation.load_pennbioie(small)
    with pytest.raises(UserError, match=r"no such folder.*--set pennbioie\.path=FOLDER"):
        adaptation.load_pennbioie(small, path=str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"no \.mrg file"):
        adaptation.load_pennbioie(small, path=str(tmp_path / "empty"))
    one = little_pennbioie(tmp_path / "one", 1)
    with pytest.raises(UserError, match="dev has 1 of 1 sentences"):
        adaptation.load_pennbioie(small, path=str(one))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert [path.name for path in find_biotrees("~/one")] == ["file_1.mrg"]


def test_the_treebank_of_the_user_is_the_source(small: DataHome, tmp_path: Path) -> None:
    for section in range(25):
        folder = tmp_path / "ptb" / "wsj" / f"{section:02d}"
        folder.mkdir(parents=True)
        (folder / "wsj.mrg").write_text(f"( (S (NN s{section})))")
    root = str(tmp_path / "ptb")
    data = adaptation.load_bio(small, ptb=root, check=False)
    check_form(data)
    first, last = PTB_SECTIONS["train"]
    expected = [f"s{section}" for section in range(first, last + 1)]
    assert data.splits["train"].column("word").strings() == expected
    assert data.metadata["source"] == "ptb"
    with pytest.raises(
        UserError, match=r"train has .*38,219 sentences, 912,344.*--set questions\.check"
    ):
        adaptation.load_questions(small, ptb=root)
    with pytest.raises(UserError, match=r"no such folder.* with --set bio\.ptb=FOLDER"):
        adaptation.load_bio(small, ptb=str(tmp_path / "nowhere"))


@pytest.mark.parametrize("name", ["questions", "bio", "pennbioie"])
def test_bad_options_are_refused(small: DataHome, name: str) -> None:
    for bad in ({"ptb": 3}, {"dev": -1}, {"unlabeled": "qc"}, {"folder": "x"}):
        with pytest.raises(UserError, match=f"dataset {name}: .*; sslbench show {name}"):
            getattr(adaptation, f"load_{name}")(small, **bad)


# --- features and registration ------------------------------------------------------------------


def test_the_featurizer_has_the_templates_of_the_specification() -> None:
    templates = pos_adapt().templates
    assert len(templates) == len(set(templates)) == 17
    assert Template(()) in templates
    assert not any(template.edge for template in templates)
    corpus = Corpus.from_sentences({"word": [["IL-2", "ABC", "Abc", "abc", "1990\u20131"]]})
    expected = {"has_digit": "10001", "has_dash": "10001", "all_upper": "01000"}
    for test, values in {**expected, "first_upper": "11100"}.items():
        actual = coded_column(corpus, f"word.{test}").strings()
        assert "".join(str(int(value == "true")) for value in actual) == values, test


def test_the_registration_fits_its_loader() -> None:
    assert [info.name for info in DATASETS] == ["questions", "bio", "pennbioie"]
    for info in DATASETS:
        assert info.load() is getattr(adaptation, f"load_{info.name}")
        assert registry().dataset(info.name) is info
        assert registry().featurizer(info.featurizer).load() is pos_adapt
        needed = {file.path for file in info.files if not file.extra}
        assert needed <= {f.path for f in (SAMPLE, QUESTIONBANK, GENIA["dev"], GENIA["test"])}
    for n_sentences, _ in adaptation.QUESTION_SETS.values():
        assert f"{n_sentences:,}" in DATASETS[0].protocol
    for numbers in adaptation.GENIA_COUNTS.values():
        assert all(f"{number:,}" in DATASETS[1].protocol for number in numbers)
    assert PennBioOptions().unlabeled == "all"


# --- the real files -----------------------------------------------------------------------------


def files_of(name: str) -> tuple[RemoteFile, ...]:
    return next(info for info in DATASETS if info.name == name).files


@pytest.mark.corpus
def test_real_questions() -> None:
    data = adaptation.load_questions(real_home(files_of("questions")), qc=True)
    dev, test = data.splits["dev"], data.splits["test"]
    assert data.splits["train"].n_tokens == 94_084
    assert dev.n_tokens + test.n_tokens == 37_831 + 12  # with the brackets that had no tag
    assert not [word for word in dev.column("word").vocabulary.strings if "<" in word]
    tags = dev.column("label").strings() + test.column("label").strings()
    assert tags.count("-LRB-") == tags.count("-RRB-") == 6
    assert len(set(tags)) == 44  # of the manifest's 46 less ? ! ` ' and with two brackets
    seen = [
        (data.metadata[f"{s}_unseen_tags"], data.metadata[f"{s}_unknown_words"])
        for s in data.splits
        if s != "train"
    ]
    assert seen == [("NP", 0.1588), ("PRT", 0.1795)]
    text = text_of(data)
    assert len(text) == 34_374 + 11_337 + 2_645
    known = {letters(sentence) for corpus in (dev, test) for sentence in corpus.sentences("word")}
    assert not any(letters(sentence.split()) in known for sentence in text)


@pytest.mark.corpus
def test_real_bio() -> None:
    data = adaptation.load_bio(real_home(files_of("bio")))
    target = {split: data.splits[split] for split in ("dev", "test")}
    text = text_of(data)
    assert len(text) == 14_754 + 7_049 + 15_000
    seen = set(text)
    for split, corpus in target.items():
        assert data.metadata[f"{split}_tokens_of_unseen_tags"] == 0
        sentences = list(map(" ".join, corpus.sentences("word")))
        assert sum(sentence in seen for sentence in sentences) == 14
        assert not any(sentence.startswith(("UI -", "TI -", "AB -")) for sentence in sentences)
    assert data.metadata["dev_unknown_words"] == 0.3388
