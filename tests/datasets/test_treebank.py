"""Bracketed trees and the two Wall Street Journal corpora made of them."""

from __future__ import annotations

import dataclasses
import io
import re
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.corpus import Corpus, RawBytes, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.planning.task import load_dataset
from sslbench.experiment.request.request import RunRequest
from sslbench.plugins import registry
from sslbench_datasets.treebank import load as treebank
from sslbench_datasets.treebank.info import (
    DATASETS,
    PTB_SECTIONS,
    SAMPLE,
    SAMPLE_COUNTS,
    SAMPLE_FILES,
)
from sslbench_datasets.treebank.trees import Leaf, read_trees


def read(text: str | bytes, vocabularies: dict[str, Vocabulary] | None = None) -> Corpus:
    data = text.encode() if isinstance(text, str) else text
    return read_trees(RawBytes("f.mrg", data), vocabularies)


def leaves_of(corpus: Corpus) -> list[list[Leaf]]:
    return [
        list(zip(corpus.sentence(i, "word"), corpus.sentence(i, "label"), strict=True))
        for i in range(corpus.n_sentences)
    ]


REAL = r"""
( (S
    (NP-SBJ (NP (NNP Loews) (NNP Corp.) )
      (, ,) )
    (VP (VBZ is) (-NONE- *T*-1)
      (`` ``) (CD 1\/2) ('' '') (-LRB- -LRB-) (JJ|NN
   cheap) (-RRB- -RRB-) )
    (. .) ))
( (X (-NONE- *) ))

(FRAG (NN Yes))(NN no)
( (S (UH A) ) (S (|| b) ))
"""
LEAVES = [
    [
        *[("Loews", "NNP"), ("Corp.", "NNP"), (",", ","), ("is", "VBZ"), ("``", "``")],
        *[(r"1\/2", "CD"), ("''", "''"), ("-LRB-", "-LRB-"), ("cheap", "JJ"), ("-RRB-", "-RRB-")],
        (".", "."),
    ],
    [("Yes", "NN")],
    [("no", "NN")],
    [("A", "UH"), ("b", "||")],
]


@pytest.mark.parametrize(
    "text",
    [REAL, REAL.strip(), REAL.replace("\n", "\r\n"), REAL.replace("\n", "\t"), "\ufeff" + REAL],
    ids=["plain", "unended", "crlf", "one line", "bom"],
)
def test_leaves_of_trees_as_they_come(text: str) -> None:
    assert leaves_of(read(text)) == LEAVES


def test_only_ascii_white_space_ends_a_word() -> None:
    assert leaves_of(read("(S (NN a\u00a0b\u3000c))")) == [[("a\u00a0b\u3000c", "NN")]]


def test_a_deep_tree_needs_no_stack() -> None:
    depth = 200_000
    text = "(X " * depth + "(NN deep)" + ")" * depth
    assert leaves_of(read(text)) == [[("deep", "NN")]]


def test_long_malformed_text_is_refused_at_once() -> None:
    with pytest.raises(UserError, match="not closed"):
        read("(" + " " * 100_000 + "a" * 100_000 + " " * 100_000 + "(NN " * 100_000)


GOOD = "( (S (NN a)\n (NN b) ))\n"  # lines 1 and 2


@pytest.mark.parametrize(
    ("bad", "line", "message"),
    [
        ("\n( (S (NN a) )\n\n( (S\n(NN b) ))\n", 4, "1 bracket of the tree that starts here"),
        ("( (S (NP (NN a)", 3, "3 brackets of the tree"),
        ("(S (NN a)))\n", 3, "never opened"),
        ("\n)\n(NN a)", 4, "never opened"),
        ("(S\n(NN a)\n(NN))", 5, "(NN) is a word without tag or a tag without word"),
        ("(S (NN a)\n( -LRB-))", 4, "(-LRB-) is a word without tag"),
        ("(S (NN a)\n( ) )", 4, "empty ()"),
        ("(S (NP (NN a))\ndog)", 4, "'dog' has no tag"),
        ("(S (NN\nhot dog))", 4, "'hot' has no tag"),
        ("(S dog (NN a))", 3, "'dog' has no tag"),
        ("*x* header *x*\n(NN a)", 3, "'*x*' stands between trees"),
        ("(NN a)\n\nend", 5, "'end' stands between trees"),
        ("(NN a)\n(NN caf\udce9)", 4, "byte 0xe9 is not utf-8"),
        ("(NN a\0)", 3, "NUL byte"),
    ],
)
def test_a_bad_line_is_named(bad: str, line: int, message: str) -> None:
    with pytest.raises(UserError) as caught:
        read((GOOD + bad).encode(errors="surrogateescape"))
    assert (caught.value.file, caught.value.line) == ("f.mrg", line)
    assert message in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", " \n\n", "\ufeff"])
def test_a_file_without_trees_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"f\.mrg: no tree"):
        read(text)


def test_a_file_of_empty_leaves_has_no_sentence() -> None:
    corpus = read("( (S (-NONE- *)))")
    assert (corpus.n_sentences, corpus.n_tokens) == (0, 0)


def test_trees_are_skipped_by_their_outermost_label() -> None:
    text = "(SENT (NN a) (SEC (NN b)))\n(SEC (SENT (NN c)))\n(NN d) ( SEC (NN e)) ( (SEC (NN f)))"
    corpus = read_trees(RawBytes("f.mrg", text.encode()), skip=("SEC",))
    assert leaves_of(corpus) == [[("a", "NN"), ("b", "NN")], [("d", "NN")], [("f", "NN")]]
    assert "c" not in corpus.column("word").vocabulary


def test_files_share_vocabularies() -> None:
    vocabularies: dict[str, Vocabulary] = {}
    first, second = read("(NN a)", vocabularies), read("(S (VB b) (NN a))", vocabularies)
    assert second.column("word").codes.tolist() == [1, 0]
    for name in ("word", "label"):
        assert first.column(name).vocabulary is second.column(name).vocabulary


symbol = st.text(
    st.characters(exclude_characters=" \t\n\r\f\v()\0\ufeff", exclude_categories=("Cs",)),
    min_size=1,
    max_size=4,
)
tag = symbol.filter(lambda text: "|" not in text and text != "-NONE-")
leaf = st.tuples(symbol, tag)
Tree = list[object]
node = st.recursive(
    leaf, lambda child: st.lists(child, min_size=1, max_size=3).map(list), max_leaves=8
)
trees = st.lists(node, min_size=1, max_size=4)


def leaves_under(tree: object) -> list[Leaf]:
    if isinstance(tree, tuple):
        return [tree]
    assert isinstance(tree, list)
    return [leaf for child in tree for leaf in leaves_under(child)]


def written(tree: object, data: st.DataObject) -> str:
    """The tree with random white space, random labels and, now and then, none."""
    gap = st.text(" \t\n\r\f\v", max_size=3)
    free, between = data.draw(gap), data.draw(st.text(" \t\n\r", min_size=1, max_size=2))
    if isinstance(tree, tuple):
        return f"({free}{tree[1]}{between}{tree[0]}{data.draw(gap)})"
    assert isinstance(tree, list)
    label = data.draw(st.one_of(st.just(""), tag))
    inner = data.draw(gap).join(written(child, data) for child in tree)
    return f"({free}{label}{data.draw(gap)}{inner}{data.draw(gap)})"


@given(trees, st.data())
def test_what_was_written_is_read(forest: Tree, data: st.DataObject) -> None:
    text = data.draw(st.text(" \n", max_size=2)).join(written(tree, data) for tree in forest)
    assert leaves_of(read(text)) == [leaves_under(tree) for tree in forest]


def little_ptb(folder: Path, without: tuple[int, ...] = (), upper: bool = False) -> Path:
    """Sections of two files of one sentence each; the word says section and file."""
    for section in set(range(25)) - set(without):
        (folder / f"{section:02d}").mkdir(parents=True)
        for file in (1, 0):
            name = f"wsj_{section:02d}{file:02d}.mrg"
            path = folder / f"{section:02d}" / (name.upper() if upper else name)
            path.write_text(f"( (S (NN w{section}.{file}) (-NONE- *) (JJ|NN b) ))\n")
    return folder


def load_ptb(root: Path, **options: object) -> Dataset:
    home = DataHome(root, root / "cache", offline=True)
    return treebank.load_ptb(home, **{"check": False, **options})


def expected_words(first: int, last: int) -> list[str]:
    numbers = [(section, file) for section in range(first, last + 1) for file in (0, 1)]
    return [word for section, file in numbers for word in (f"w{section}.{file}", "b")]


@pytest.mark.parametrize(
    "layout", ["", "wsj", "WSJ", "combined/wsj", "combined", "parsed/mrg/wsj", "mrg/wsj"]
)
def test_sections_are_found_and_cut(tmp_path: Path, layout: str) -> None:
    little_ptb(tmp_path / layout, upper=layout == "WSJ")
    (tmp_path / layout / "04" / "._wsj_0400.mrg").write_bytes(b"\0\5\x16\7")
    (tmp_path / layout / "04" / "readme.txt").write_text("no tree")
    data = load_ptb(tmp_path)
    assert (data.name, data.task, data.metric, data.encoding) == (
        "ptb",
        "tagging",
        "accuracy",
        None,
    )
    assert set(data.splits) == set(PTB_SECTIONS)
    for split, span in {"train": (0, 18), "dev": (19, 21), "test": (22, 24)}.items():
        corpus = data.splits[split]
        assert corpus.column("word").strings() == expected_words(*span)
        assert corpus.sentence(0, "label") == ["NN", "JJ"]
        for name in ("word", "label"):
            assert corpus.column(name).vocabulary is data.splits["train"].column(name).vocabulary


def test_the_option_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    little_ptb(tmp_path / "mine" / "wsj")
    given = load_ptb(tmp_path / "elsewhere", path=str(tmp_path / "mine"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_ptb(tmp_path / "elsewhere", path="~/mine").metadata == given.metadata
    (tmp_path / "mine/wsj/24/wsj_2401.mrg").write_text("(NN other)")
    assert load_ptb(tmp_path / "mine").metadata != given.metadata


@pytest.mark.parametrize(
    ("without", "message"),
    [((7,), "no .mrg file in section 07;"), ((0, 24), "no .mrg file in sections 00, 24;")],
)
def test_a_missing_section_is_named(tmp_path: Path, without: tuple[int, ...], message: str) -> None:
    little_ptb(tmp_path / "wsj", without)
    (tmp_path / "wsj" / f"{without[0]:02d}").mkdir()  # an empty one is a missing one
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        load_ptb(tmp_path)
    assert caught.value.file == str(tmp_path / "wsj")


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no such folder.*--data FOLDER or --set ptb\.path"):
        load_ptb(tmp_path, path=str(tmp_path / "nowhere"))
    tagged = tmp_path / "wsj" / "00"
    tagged.mkdir(parents=True)
    (tagged / "wsj_0001.pos").write_text("a/NN")
    with pytest.raises(UserError, match=r"no section.*\.pos files will not do"):
        load_ptb(tmp_path)


def test_bad_files_are_named_by_path(tmp_path: Path) -> None:
    little_ptb(tmp_path)
    (tmp_path / "11" / "wsj_1100.mrg").write_text("(S (NN a)\n(NN))")
    with pytest.raises(UserError, match=r"wsj_1100\.mrg:2: \(NN\) is"):
        load_ptb(tmp_path)


def test_other_counts_than_published_are_an_error(tmp_path: Path) -> None:
    little_ptb(tmp_path)
    message = r"train has 38 sentences, 76 tokens; expected 38,219 sentences, 912,344 .*check"
    with pytest.raises(UserError, match=message):
        load_ptb(tmp_path, check=True)
    with pytest.raises(UserError, match=message):
        treebank.load_ptb(DataHome(tmp_path, tmp_path / "cache", offline=True))


@pytest.mark.parametrize("options", [{"path": 3}, {"folder": "x"}])
def test_bad_options_are_refused(tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(UserError, match="dataset ptb"):
        load_ptb(tmp_path, **options)


@pytest.mark.parametrize("by_option", [True, False])
def test_the_command_line_reaches_the_folder(tmp_path: Path, by_option: bool) -> None:
    folder = little_ptb(tmp_path / "wsj")
    settings = ["ptb.check=false"]
    if by_option:
        settings.append(f"ptb.path={tmp_path}")
    request = RunRequest(
        method=["supervised"],
        dataset=["ptb"],
        params=settings,
        text="rest",
        data=None if by_option else folder,
    )
    (task,) = plan(request, store=None, notice=print)
    assert load_dataset(task, registry()).splits["test"].n_sentences == 6
    assert any(name.endswith(".mrg") for name in task.files) is not by_option


@pytest.mark.parametrize("by_option", [True, False])
def test_unlabeled_text_of_the_user(tmp_path: Path, by_option: bool) -> None:
    folder = little_ptb(tmp_path / "wsj")
    mine = tmp_path / "mine.txt"
    mine.write_text("w0.0\nnew\n\nw0.1\n")
    path = {"path": str(folder)} if by_option else {}
    data = load_ptb(tmp_path if by_option else folder, unlabeled=str(mine), **path)
    assert data.external is not None
    (shard,) = data.external()
    assert list(shard.sentences("word")) == [["w0.0", "new"], ["w0.1"]]
    assert shard.column("word").vocabulary is data.splits["train"].column("word").vocabulary
    mine.write_text("changed\n")
    changed = load_ptb(folder, unlabeled=str(mine))
    assert changed.metadata["sha256_unlabeled"] != data.metadata["sha256_unlabeled"]
    assert changed.external is not None
    assert [list(s.sentences("word")) for s in changed.external()] == [[["changed"]]]
    with pytest.raises(UserError, match="cannot be read"):
        load_ptb(folder, unlabeled=str(tmp_path / "nothing"))


def test_a_run_is_another_after_the_text_of_the_user_has_changed(tmp_path: Path) -> None:
    little_ptb(tmp_path / "wsj")
    mine = tmp_path / "mine.txt"
    settings = ["ptb.check=false", f"ptb.path={tmp_path}", f"ptb.unlabeled={mine}"]
    runs = set()
    for text in ("a\n", "b\n", "a\n"):
        mine.write_text(text)
        request = RunRequest(method=["self_training"], dataset=["ptb"], params=settings)
        (task,) = plan(request, store=None, notice=print)
        assert task.spec.protocol.text == "external"
        runs.add(task.spec.run_id)
    assert len(runs) == 2


def test_registrations_load() -> None:
    assert [info.name for info in DATASETS] == ["wsj_sample", "ptb"]
    assert all(callable(info.load()) for info in DATASETS)
    assert "train = files 1 to 139 (3,068 sentences, 73,842 tokens)" in DATASETS[0].protocol
    for spans, last in ((SAMPLE_FILES, 199), (PTB_SECTIONS, 24)):
        numbers = [n for a, b in spans.values() for n in range(a, b + 1)]
        assert numbers == list(range(numbers[0], last + 1))


def little_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataHome:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(1, 200):
            text = f"( (S (NN w{number}) (-NONE- *)))"
            archive.writestr(f"treebank/combined/wsj_{number:04d}.mrg", text)
    (tmp_path / "nltk_data").mkdir()
    (tmp_path / SAMPLE.path).write_bytes(packed.getvalue())
    file = dataclasses.replace(SAMPLE, sha256=sha256(packed.getvalue()).hexdigest())
    monkeypatch.setattr(treebank, "SAMPLE", file)
    return DataHome(tmp_path, tmp_path / "cache", offline=True)


def test_the_sample_is_cut_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = little_sample(tmp_path, monkeypatch)
    counts = {"train": (139, 139), "dev": (20, 20), "test": (40, 40)}
    monkeypatch.setattr(treebank, "SAMPLE_COUNTS", counts)
    words = {s: c.column("word").strings() for s, c in treebank.load_sample(home).splits.items()}
    assert words["dev"] == [f"w{number}" for number in range(140, 160)]
    assert (words["train"][0], words["train"][-1]) == ("w1", "w139")
    assert (words["test"][0], words["test"][-1]) == ("w160", "w199")
    monkeypatch.setattr(treebank, "SAMPLE_COUNTS", {**counts, "dev": (20, 21)})
    with pytest.raises(UserError, match=r"dev has 20 sentences, 20 tokens; expected .* 21 tokens"):
        treebank.load_sample(home)


@pytest.mark.corpus
def test_the_real_sample() -> None:
    """Against the published numbers of the file, and against another parser."""
    home = DataHome(offline=True)
    if home.state(SAMPLE) != "ok":
        pytest.skip(f"no {SAMPLE.path} in the data home {home.root}")
    splits = treebank.load_sample(home).splits
    parts = [splits[split] for split in SAMPLE_FILES]
    assert [(part.n_sentences, part.n_tokens) for part in parts] == list(SAMPLE_COUNTS.values())
    whole = Corpus.concatenate(parts)
    assert (whole.n_sentences, whole.n_tokens) == (3_914, 94_084)
    assert len(whole.column("label").vocabulary) == 45
    assert set(parts[0].column("label").strings()) == set(whole.column("label").strings())
    with zipfile.ZipFile(home.path(SAMPLE)) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".mrg"))
        text = b"".join(map(archive.read, names)).decode("ascii")
    assert home.locate(SAMPLE).stat().st_size == SAMPLE.bytes
    assert len(names) == 199
    # Upstream starts each tree, and nothing else, at the beginning of a line.
    blocks = re.split(r"^\(", text, flags=re.MULTILINE)[1:]
    pairs = [[p.split() for p in re.findall(r"\(([^()]+)\)", block)] for block in blocks]
    assert sum(map(len, pairs)) == 100_676
    kept = [[(word, name) for name, word in leaves if name != "-NONE-"] for leaves in pairs]
    assert leaves_of(whole) == kept
