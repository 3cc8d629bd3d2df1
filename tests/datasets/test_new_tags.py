"""Chat posts, the Brown corpus and MASC: counts, genres, damaged files."""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sslbench import registry
from sslbench.engine.corpus import RawBytes
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.chat import load as chat
from sslbench_datasets.genres import load as genres
from support.placed_files import placed
from support.real_files import real_home

# Two posts with spaces in a word, a missing tag, an empty token; one without tokens.
POSTS = """\
<Session>
<Posts>
<Post class="Greet" user="u">h ey !<terminals>
<t pos="UH" word="h ey"/>
<t pos="" word="!"/>
<t pos="" word=""/>
</terminals></Post>
<Post class="System"/>
<Post class="Statement"><terminals><t pos="^NN" word="caf&#233;"/></terminals></Post>
</Posts>
</Session>
"""


def zipped(members: Mapping[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return file.getvalue()


def loaded(name: str, **options: object) -> Dataset:
    info = registry().dataset(name)
    dataset: Dataset = info.load()(real_home(info.files), **options)
    return dataset


def sizes(dataset: Dataset) -> tuple[int, int]:
    """Sentences and tokens of all splits."""
    parts = dataset.splits.values()
    return sum(part.n_sentences for part in parts), sum(part.n_tokens for part in parts)


# --- chat -----------------------------------------------------------------------------------------


def test_posts_are_sentences_and_their_errors_are_repaired() -> None:
    posts = chat.read_posts(RawBytes("room.xml", POSTS.encode()))
    assert posts == [[("hey", "UH"), ("!", ".")], [("café", "^NN")]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</Session>", "", r":12: not XML: no element found"),
        ("<Posts>", '<Posts a="1', r":\d+: not XML"),
        ('pos="^NN"', "", r":9: word 'café' with the tag ''"),
        ('word="h ey"', 'word=" "', r":4: word '' with the tag 'UH'"),
        ("<Session>", '<Session><t pos="X" word="x"/>', r":1: a token outside of a post"),
        ("<Session>", '<!DOCTYPE x [<!ENTITY a "b">]><Session>', r":1: a document type"),
        ("<t ", "<s ", r": no post in the file"),
    ],
)
def test_a_damaged_room_is_refused_with_its_line(old: str, new: str, message: str) -> None:
    text = POSTS.replace(old, new)
    with pytest.raises(UserError, match=rf"^room\.xml{message}"):
        chat.read_posts(RawBytes("room.xml", text.encode()))


def test_rooms_become_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = zipped({f"nps_chat/{day}_2posts.xml": POSTS for day in ("1", "2", "3", "4")})
    monkeypatch.setattr(chat, "NPS_CHAT", placed(tmp_path, chat.NPS_CHAT, data))
    sessions = {"train": ("1_2posts", "2_2posts"), "dev": ("3_2posts",), "test": ("4_2posts",)}
    monkeypatch.setattr(chat, "SESSIONS", sessions)
    counts = {"train": (4, 6), "dev": (2, 3), "test": (2, 3)}
    monkeypatch.setattr(chat, "COUNTS", counts)
    home = DataHome(tmp_path, tmp_path / "cache", offline=True)
    splits = chat.load(home).splits
    assert list(splits["train"].columns) == ["word", "label"]
    splits = chat.load(home, documents=True).splits
    rooms = splits["train"].sentences("document")
    assert rooms == [["1", "1"], ["1"], ["2", "2"], ["2"]]
    assert splits["test"].column("label").vocabulary is splits["dev"].column("label").vocabulary
    monkeypatch.setattr(chat, "COUNTS", {**counts, "test": (2, 4)})
    with pytest.raises(UserError, match=r"nps_chat\.zip: test has .*; expected 2 sent.*4 tokens"):
        chat.load(home)


@pytest.mark.corpus
def test_real_chat_has_the_published_number_of_posts() -> None:
    """10,567 posts (README of release 1.0); the file names give the posts of each room."""
    dataset = loaded("nps_chat", documents=True)
    assert sizes(dataset) == (10_567, 45_009)
    for split, sessions in chat.SESSIONS.items():
        promised = [int(re.findall(r"_(\d+)posts", session)[0]) for session in sessions]
        assert dataset.splits[split].n_sentences == sum(promised)
    home = real_home([chat.NPS_CHAT])
    with zipfile.ZipFile(home.locate(chat.NPS_CHAT)) as archive:
        texts = [
            archive.read(f"nps_chat/{s}.xml").decode() for p in chat.SESSIONS.values() for s in p
        ]
    words = [word for text in texts for word in re.findall(r'<t [^>]*word="([^"]*)"', text)]
    assert (len(words), words.count("")) == (45_010, 1)
    assert sum(len(word.split()) > 1 or word != word.strip() for word in words) == 65
    assert len(set(dataset.splits["train"].column("label").vocabulary.strings)) == 73


# --- genres ---------------------------------------------------------------------------------------

MAP = "AT\tDET\nNN\tNOUN\nVBD\tVERB\n.\t.\n"


def brown_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **more: str) -> DataHome:
    """News and fiction with five files each, of one sentence with the file's name; humor has two.

    more: other text of a file.
    """
    files = {
        f"c{letter}{number:02d}": f"\n\tThe/at c{letter}{number:02d}/nn-tl ran/vbd ./.\n\n"
        for letter, n in (("a", 5), ("k", 5), ("r", 2))
        for number in range(1, n + 1)
    }
    members = {f"brown/{name}": text for name, text in (files | more).items()}
    data = zipped({"brown/": "", "brown/README": "x", "brown/cats.txt": "x", **members})
    monkeypatch.setattr(genres, "BROWN", placed(tmp_path, genres.BROWN, data))
    table = MAP + "NN-TL\tNOUN\n"
    monkeypatch.setattr(genres, "BROWN_MAP", placed(tmp_path, genres.BROWN_MAP, table.encode()))
    counts = {"train": (8, 32), "dev": (2, 8), "test": (2, 8)}
    monkeypatch.setattr(genres, "BROWN_COUNTS", counts)
    return DataHome(tmp_path, tmp_path / "cache", offline=True)


def names(dataset: Dataset, split: str) -> list[str]:
    return [words[1] for words in dataset.splits[split].sentences("word")]


def test_files_of_each_genre_are_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = brown_home(tmp_path, monkeypatch)
    dataset = genres.load_brown(home, documents=True)
    train = ["ck01", "ck02", "ck03", "cr01", "cr02", "ca01", "ca02", "ca03"]
    assert names(dataset, "train") == train
    assert dataset.splits["train"].column("document").strings()[::4] == train
    assert [names(dataset, split) for split in ("dev", "test")] == [
        ["ck04", "ca04"],
        ["ck05", "ca05"],
    ]
    assert dataset.splits["test"].sentence(0, "label") == ["DET", "NOUN", "VERB", "."]
    assert not dataset.adaptation
    assert dataset.external is None


def test_another_genre_is_domain_adaptation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = brown_home(tmp_path, monkeypatch)
    one = genres.load_brown(home, genre="news")
    assert (names(one, "train"), one.adaptation) == (["ca01", "ca02", "ca03"], False)
    other = genres.load_brown(home, genre="news", source="fiction")
    assert names(other, "train") == ["ck01", "ck02", "ck03"]
    assert names(other, "test") == ["ca05"]
    assert other.adaptation
    assert other.external is not None
    (text,) = other.external()
    assert list(text.columns) == ["word"]
    assert [words[1] for words in text.sentences("word")] == ["ca01", "ca02", "ca03"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"genre": "new"}, "no genre 'new'; did you mean news"),
        ({"source": "x"}, "no genre 'x'; genres: all, fiction, humor, news"),
        ({"genre": "humor"}, "genre humor of brown has too few files for a part dev"),
        ({"genres": "news"}, "dataset brown: .*genres"),
    ],
)
def test_bad_genres_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, object], message: str
) -> None:
    home = brown_home(tmp_path, monkeypatch)
    with pytest.raises(UserError, match=message):
        genres.load_brown(home, **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a/nn\n\n\tThe/at dog\n", r"!brown/ca02:3: 'dog' is not word/tag"),
        ("a/nn\nThe/at /nn\n", r"!brown/ca02:2: '/nn' is not word/tag"),
        ("a/nn\nThe/the\n", r"!brown/ca02:2: unknown tag 'the'"),
        ("a/nn\ncaf\u00e9/nn\n", r"!brown/ca02:2: byte 0xc3 is not ascii"),
        ("a/nn\n", r"brown\.zip: train has .* 29 tokens; expected .* 32 tokens"),
    ],
)
def test_a_damaged_file_of_brown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    home = brown_home(tmp_path, monkeypatch, ca02=text)
    with pytest.raises(UserError, match=message):
        genres.load_brown(home)


@pytest.mark.parametrize("load", [genres.load_brown, genres.load_masc])
@pytest.mark.parametrize("data", [b"not a zip", zipped({"a": "b" * 99})[:-30]])
def test_a_damaged_archive(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    load: Callable[[DataHome], Dataset],
    data: bytes,
) -> None:
    home = brown_home(tmp_path, monkeypatch)
    for name in ("BROWN", "MASC"):
        monkeypatch.setattr(genres, name, placed(tmp_path, getattr(genres, name), data))
    with pytest.raises(UserError, match=r"\.zip.*: .*(damaged|zip)"):
        load(home)


def test_masc_leaves_out_sentences_with_a_token_without_tag() -> None:
    text = "I_PRP ran_VBD ._.\n\nWhich_WDT . ._...\n_UH ok_UH\nsnake_case_NN\n"
    assert list(genres.masc_sentences(RawBytes("x.txt", text.encode()))) == [
        [("I", "PRP"), ("ran", "VBD"), (".", ".")],
        [("snake_case", "NN")],
    ]
    with pytest.raises(UserError, match=r"^x\.txt:2: expected a file and its genre"):
        genres.read_genres(RawBytes("x.txt", b"a.txt news\nb.txt\n"))


@pytest.mark.corpus
def test_real_brown_has_the_published_tags_of_news() -> None:
    """57,340 sentences, 1,161,192 tokens; universal tags of news as in the NLTK book (chapter 5).

    NLTK's own copy of the map has 14 foreign words as X that are nouns in the map used here.
    """
    dataset = loaded("brown")
    assert sizes(dataset) == (57_340, 1_161_192)
    news = loaded("brown", genre="news")
    tags = Counter(tag for part in news.splits.values() for tag in part.column("label").strings())
    nltk = {"NOUN": 30_640, "VERB": 14_399, "ADP": 12_355, ".": 11_928, "DET": 11_389, "X": 106}
    assert tags.total() == 100_554
    assert {tag: tags[tag] for tag in nltk} == {**nltk, "NOUN": 30_640 + 14, "X": 106 - 14}


@pytest.mark.corpus
def test_real_masc_has_its_392_texts() -> None:
    """592,469 tagged tokens in 392 texts, less the 59 sentences with a token that is damaged."""
    dataset = loaded("masc", documents=True)
    texts = {name for part in dataset.splits.values() for name in part.column("document").strings()}
    assert len(texts) == 392
    assert sizes(dataset) == (34_474, 590_781)
    home = real_home([genres.MASC])
    n_lines = n_tagged = n_lost = 0
    with zipfile.ZipFile(home.locate(genres.MASC)) as archive:
        for name in archive.namelist():
            if name.count("/") == 2 and name.endswith(".txt"):
                for items in map(str.split, archive.read(name).decode().split("\n")):
                    n_lines += bool(items)
                    n_tagged += sum("_" in item for item in items)
                    if not all(re.fullmatch(r".+_[^_]+", item) for item in items):
                        n_lost += 1
    assert (n_lines, n_tagged, n_lost) == (34_533, 592_469, 59)
    assert len(set(dataset.splits["train"].column("label").vocabulary.strings)) == 59
    journal = set(letters(loaded("wsj_sample")))
    assert sum(len(text) > 20 and text in journal for text in letters(dataset)) == 286


def letters(dataset: Dataset) -> list[str]:
    """The letters and digits of each sentence, without case."""
    sentences = [words for part in dataset.splits.values() for words in part.sentences("word")]
    return ["".join(filter(str.isalnum, "".join(words).lower())) for words in sentences]
