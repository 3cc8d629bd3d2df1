"""Small valid files of every reader, and ways to damage them."""

from __future__ import annotations

import gzip
import io
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from scipy.io import savemat

from sslbench.conversion import importing
from sslbench.engine.corpus import RawBytes, read_conll, read_conllu
from sslbench.engine.errors import UserError
from sslbench.engine.features.crfpp import load_featurizer
from sslbench.experiment.data.userdata import load_user_data
from sslbench.experiment.run.saved import load_tagger
from sslbench.plugins import registry
from sslbench.suite.file import read_suite
from sslbench_datasets.bond.load import read_entries
from sslbench_datasets.chat.load import read_posts
from sslbench_datasets.chinese import text as chinese
from sslbench_datasets.genes.genetag import read_tagged
from sslbench_datasets.genres.load import brown_sentences, masc_sentences
from sslbench_datasets.letters.load import read_words
from sslbench_datasets.reuters.load import read_stories
from sslbench_datasets.treebank.trees import read_trees
from support.command import sslbench
from support.waiting import limited

#: of CPU time that reading a damaged file may take: a few hundredths, and kernels that it compiles
SECONDS = 120
COLUMNS = ("word", "pos", "label")
CONLL = (
    "-DOCSTART- -X- O\n\nThe DT B-NP\ncaf\u00e9 NN I-NP\nsat VBD B-VP\n. . O\n\nIt PRP B-NP\n" * 4
)
CONLLU = (
    "# text = Gr\u00fcn is\n1-2\tGr\u00fcnis\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tGr\u00fcn\t_\tADJ\t_\t_\t2\tnsubj\t_\t_\n2\tis\tbe\tAUX\t_\t_\t0\troot\t_\t_\n"
    "2.1\tx\t_\tX\t_\t_\t_\t_\t_\t_\n\n1\tYes\tyes\tINTJ\t_\t_\t0\troot\t_\t_\n\n"
)
UDC = "".join(
    f"{i}\t{w}\t_\t{t}\t_\t_\t0\t_\t_\t_\n"
    for i, (w, t) in enumerate([("中文", "NOUN"), ("是", "AUX"), ("好", "ADJ")], 1)
)
TREES = "( (S (NP (DT the) (JJ|NN caf\u00e9) (-NONE- *)) (VP (VBZ is))) )\n(S (NP (PRP it)))\n" * 2
GENETAG = "@@1 The/DT p53/NEWGENE protein/NEWGENE1 1/2/CD ./.\n@@22 No/DT gene/NN\n"
SINICA = "#1:1.[0] S(agent:NP(Head:Nab:人)|Head:VC2:看)#。(PERIODCATEGORY)\n" * 2
TAG_MAP = {"Nab": "NOUN", "VC2": "VERB"}
POSTS = (
    '<Session>\n <Posts>\n  <Post class="Greet">hi<terminals>\n   <t pos="UH" word="hi"/>\n'
    '   <t pos="NN" word="caf\u00e9"/>\n  </terminals></Post>\n </Posts>\n</Session>\n'
)
BOND = (
    '[{"str_words": ["Ann", "caf\u00e9"],\n  "tags": [1, 0]},\n'
    ' {"str_words": ["x"],\n  "tags": [2]}\n]\n'
)
NEWSWIRE = (
    "<REUTERS><TEXT><BODY>The &lt;Acme &amp; Sons Corp> board said Smith &lt;SMT.N> won't sell\n"
    "its well-\nknown unit&#3; today. He left for the U.S. at noon.\n    It went on.\n Reuter\n"
    "&#3;</BODY></TEXT></REUTERS>\n"
)
TEMPLATES = (
    '# crf++\nU00:%x[-1,0]\nU01:%x[0,0]/%x[1,1]\n*02:%m[0,0,"^.?.?"]\nU03:%t[0,0,"^\\u"]\nB\n'
)
OWN_TEMPLATES = "# own\nword[-1]|word[0]\nedge: pos[0]\nbag: word.lower[-4..-1]\nbias\n"


def packed(
    data: bytes, member: str = "data/train.conll", method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    """A zip file with one member."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr(zipfile.ZipInfo(member), data, compress_type=method)
    return file.getvalue()


def altered(archive: bytes, offset: int, value: bytes) -> bytes:
    """A zip of one member with bytes of its entry in the central directory replaced."""
    at = archive.index(b"PK\x01\x02") + offset
    return archive[:at] + value + archive[at + len(value) :]


def symlink(target: str) -> bytes:
    """A zip file whose one member is a symbolic link."""
    info = zipfile.ZipInfo("train.conll")
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(info, target)
    return file.getvalue()


def cell(items: list[np.ndarray]) -> np.ndarray:
    """A MATLAB cell array of one row."""
    out = np.empty((1, len(items)), dtype=object)
    for i, item in enumerate(items):
        out[0, i] = item
    return out


SUITE = (
    'title = "A"\nstore = "runs"\ntimeout = 60.0\n[defaults]\ntune = 2\n[[cells]]\n'
    'datasets = ["synth"]\nlabeled = [50, "10%"]\nseeds = 3\n[[cells]]\ndatasets = ["ocr"]\n'
    'methods = ["all"]\nwithout = ["jess_cm"]\nset = ["l2=1,2"]\ntune_cpu = 1.5\n'
)
CRFSUITE_DUMP = """FILEHEADER = {
  magic: lCRF
}

LABELS = {
      0: O
      1: B-X
}

ATTRIBUTES = {
      0: word[-1]|word[0]=the|n1
      1: __BOS__
}

TRANSITIONS = {
  (1) O --> B-X: 0.500000
}

STATE_FEATURES = {
  (0) word[-1]|word[0]=the|n1 --> B-X: 1.000000
  (0) __BOS__ --> O: 0.250000
}

"""
CRFPP_MODEL = (
    "version: 100\ncost-factor: 1\nmaxid: 6\nxsize: 1\n\nO\nX\n\nU:%x[-1,0]/%x[0,0]\nB\n\n"
    "0 U:the/n1\n2 B\n\n0.5\n1\n0\n-1\n0.1\n2\n"
)


def matlab(compressed: bool) -> bytes:
    """Two handwritten words of two letters each."""
    file, pattern = io.BytesIO(), np.ones((129, 2), np.uint8)
    letters = np.array([[0, 25]], np.uint8)
    words = {"patterns_train": cell([pattern] * 2), "labels_train": cell([letters] * 2)}
    savemat(file, words, do_compression=compressed)
    return file.getvalue()


def use_model(path: Path) -> None:
    """Load a tagger and tag a sentence."""
    tagger = load_tagger(path, registry())
    corpus = read_conll(RawBytes("text", b"the\nn1\n\nout\n"), ("word",))
    tagger.texts(corpus, tagger.tag(corpus))


def use_dump(path: Path) -> None:
    """Import a dump of another program and tag a sentence."""
    crf = importing.build(importing.read(path, ("word",)))
    crf.predict(read_conll(RawBytes("text", b"the\nn1\n\nout\n"), ("word",)))


class Reader(NamedTuple):
    """How to read a file, the name it has, a valid one, and whether it is text."""

    read: Callable[[Path], object]
    name: str
    valid: bytes
    is_text: bool = True


def conll(path: Path) -> object:
    return load_user_data(path, COLUMNS)


READERS = {
    "conll": Reader(conll, "train.conll", CONLL.encode()),
    "gzip": Reader(conll, "train.gz", gzip.compress(CONLL.encode(), mtime=0), False),
    "zip": Reader(conll, "data.zip", packed(CONLL.encode()), False),
    "zip member": Reader(
        lambda path: read_conll((path, "data/train.conll"), COLUMNS, scheme="IOB2"),
        "data.zip",
        packed(CONLL.encode(), method=zipfile.ZIP_LZMA),
        False,
    ),
    "bc2gm": Reader(
        lambda path: read_conll(path, COLUMNS, separator="\t", skip=(), scheme="IOB2"),
        "train.tsv",
        CONLL.replace(" ", "\t").encode(),
    ),
    "conllu": Reader(read_conllu, "en.conllu", CONLLU.encode()),
    "trees": Reader(read_trees, "wsj.mrg", TREES.encode()),
    "genetag": Reader(lambda path: read_tagged(path, {}), "genes.tag", GENETAG.encode()),
    "spaced": Reader(chinese.read_spaced, "sxu.txt", "中文 是 好 。\n我 们\n".encode()),
    "word_tag": Reader(chinese.read_word_tag, "zx.txt", "中文_NN 是_VC\n我_PN\n".encode()),
    "ud chinese": Reader(chinese.read_ud, "zh.conllu", UDC.encode()),
    "sinica": Reader(lambda path: chinese.read_sinica(path, TAG_MAP), "sinica", SINICA.encode()),
    "tag map": Reader(chinese.read_tag_map, "map", b"Nab\tNOUN\nVC2\tVERB\n"),
    "bond": Reader(lambda path: read_entries(path, 3), "dev.json", BOND.encode()),
    "posts": Reader(read_posts, "room.xml", POSTS.encode()),
    "brown": Reader(
        lambda path: list(brown_sentences(path, {"AT": "DET", "NN": "NOUN"})),
        "ca01",
        b"\n\tThe/at dog/nn\n\n\n\tA/at 1/2/nn cat/NN\n",
    ),
    "masc": Reader(
        lambda path: list(masc_sentences(path)), "a.txt", "The_DT caf\u00e9_NN\n\nx _NN\n".encode()
    ),
    "newswire": Reader(lambda path: read_stories([path]), "reut.sgm", NEWSWIRE.encode()),
    "templates": Reader(lambda path: load_featurizer(path, COLUMNS), "t.crfpp", TEMPLATES.encode()),
    "own templates": Reader(
        lambda path: load_featurizer(path, COLUMNS), "t.txt", OWN_TEMPLATES.encode()
    ),
    "toml templates": Reader(
        lambda path: load_featurizer(path, COLUMNS), "t.toml", b'templates = ["bias", "word[0]"]\n'
    ),
    "suite": Reader(lambda path: read_suite(str(path)), "s.toml", SUITE.encode()),
    "crfsuite dump": Reader(use_dump, "dump.txt", CRFSUITE_DUMP.encode()),
    "crfpp model": Reader(use_dump, "model.txt", CRFPP_MODEL.encode()),
    "letters": Reader(lambda path: read_words(path, "train"), "l.mat", matlab(False), False),
    "packed letters": Reader(lambda path: read_words(path, "train"), "l.mat", matlab(True), False),
}  # the saved model is trained, and so added, by the tests

_STRAY = [
    b"\0",
    b"\x80",
    b"\xff\xfe",
    b"\r",
    b"\x0b",
    b"\x0c",
    b"\x1c",
    b"\x85",
    "\u2028".encode(),
    "\u3000".encode(),
    b"\n",
    b"\n\n\n",
    b"\t",
    b" ",
    b"  x ",
    b"(",
    b")",
    b"%x[",
    b"&#",
    b"<BODY>",
    b"</BODY>",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\n-DOCSTART-\x0bx\n",
    b"\x1b[31m",
    b"9" * 5000,
]
_LABELS = [b"I_NP", b"B", b"L-NP", b"U-NP", b"E-NP", b"S", b"-", b"B-", b"NEWGENES", b"X", b"_"]


def _lines_changed(data: bytes, line: int, change: Callable[[bytes], bytes]) -> bytes:
    lines = data.split(b"\n")
    lines[line % len(lines)] = change(lines[line % len(lines)])
    return b"\n".join(lines)


def damaged(data: bytes, is_text: bool) -> st.SearchStrategy[bytes]:
    """Truncations, flipped and inserted bytes; for text also encodings, rows and labels."""
    at = st.integers(0, max(0, len(data) - 1))
    flips = st.lists(st.tuples(at, st.integers(1, 255)), min_size=1, max_size=6)

    def flip(spots: list[tuple[int, int]]) -> bytes:
        out = bytearray(data)
        for place, transition_mask in spots:
            out[place] ^= transition_mask
        return bytes(out)

    ways = [at.map(lambda n: data[:n]), flips.map(flip)]
    ways.append(
        st.tuples(at, st.sampled_from(_STRAY)).map(lambda p: data[: p[0]] + p[1] + data[p[0] :])
    )
    if not is_text:
        return st.one_of(ways)
    text = data.decode()
    names = ("latin-1", "utf-16", "utf-16-be", "utf-32", "gb18030", "cp037")
    line = st.integers(0, 30)
    encodings = st.sampled_from(names).map(lambda name: text.encode(name, "replace"))
    fewer = line.map(
        lambda n: _lines_changed(
            data, n, lambda row: row[: max(row.rfind(b" "), row.rfind(b"\t"), 0)]
        )
    )
    more = line.map(lambda n: _lines_changed(data, n, lambda row: row + b"\tmore _ x"))
    labels = st.tuples(line, st.sampled_from(_LABELS)).map(
        lambda p: _lines_changed(data, p[0], lambda row: (row + b" ")[: row.rfind(b" ") + 1] + p[1])
    )
    return st.one_of(*ways, encodings, fewer, more, labels)


def model_reader(model: bytes) -> Reader:
    """The reader of saved models; `model` is a valid one."""
    return Reader(use_model, "my.model", model, False)


def fixed(n: int) -> settings:
    """Up to n examples, the same ones in every run."""
    checks = list(HealthCheck)
    return settings(max_examples=n, derandomize=True, database=None, suppress_health_check=checks)


def saved_model(folder: Path) -> bytes:
    """A saved tagger of words."""
    (folder / "t.conll").write_text("the B-NP\nn1 I-NP\n\nout O\n\n" * 3)
    words = [
        *("train", "--method", "supervised", "--data"),
        str(folder / "t.conll"),
        "--columns",
        "word,label",
        "--save",
        str(folder / "m"),
    ]
    assert sslbench(*words).exit_code == 0
    return (folder / "m").read_bytes()


def check(reader: Reader, path: Path) -> str:
    """Read it; return the error as text, "" if the damage is harmless.

    Exceptions other than UserError are raised.
    """
    try:
        with limited(SECONDS):
            reader.read(path)
    except UserError as error:
        text = str(error)
        assert text.startswith(str(path)), text
        assert len(text.splitlines()) == 1
        assert text.isprintable()
        assert len(text) < 2500
        return text
    return ""
