"""CoNLL-2003 and CoNLL-2002: reading, IOB1 to IOB2 and back, scores as conlleval's on the files."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench import registry
from sslbench.engine.corpus import Column, Corpus, Vocabulary, convert_labels, read_conll
from sslbench.engine.errors import UserError
from sslbench.engine.types import I32
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.metrics import SentenceCounts, metrics_from_counts
from sslbench.experiment.metrics.chunks import find_chunks
from sslbench.experiment.run.saved import SavedTagger, TrainingCorpus
from sslbench.experiment.run.scoring import score_labels
from sslbench_datasets.ner import load as ner
from sslbench_datasets.ner.case import kind_of, with_case
from sslbench_datasets.ner.info import DATASETS
from sslbench_datasets.ner.load import ENGLISH, SPANISH, SharedTask, load
from support.real_files import real_home
from support.score_oracle import conlleval

# Both ways to write a document mark; two persons and two organizations that touch; a stray B-MISC.
ENGLISH_TEXT = """\
-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
Urdu-speaking JJ I-NP B-MISC
lambs NNS I-NP I-MISC

-DOCSTART- -X- -X- O

Ann NNP I-NP I-PER
Bob NNP B-NP B-PER
Ray NNP I-NP I-PER
"""
ENGLISH_LABELS = [["B-ORG", "O", "B-MISC", "I-MISC"], ["B-PER", "B-PER", "I-PER"]]
SPANISH_TEXT = """\
En SP O
España NC I-LOC
, Fc O

EFE NP B-ORG
"""


def placed(tmp_path: Path, task: SharedTask, text: bytes) -> tuple[DataHome, SharedTask]:
    """A data home where each file of the task holds `text` and "end" in another sentence."""
    filler = b"\n\n" + b" ".join([b"end"] * (len(task.columns) - 1)) + b" O\n"
    contents = {"train": text, "dev": text + filler, "test": text + 2 * filler}
    files = {}
    for split, content in contents.items():
        path = tmp_path / task.files[split].path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        files[split] = replace(task.files[split], sha256=hashlib.sha256(content).hexdigest())
    tokens = sum(b" " in line and b"-DOCSTART-" not in line for line in text.splitlines())
    counts = {split: (2 + more, tokens + more) for more, split in enumerate(contents)}
    home = DataHome(tmp_path, tmp_path / "cache", offline=True)
    return home, replace(task, files=files, counts=counts)


def sentences(corpus: Corpus, column: str = "label") -> list[list[str]]:
    return corpus.sentences(column)


def test_document_marks_are_no_sentences_and_labels_become_iob2(tmp_path: Path) -> None:
    data = load(*placed(tmp_path, ENGLISH, ENGLISH_TEXT.encode()))
    assert (data.name, data.task, data.metric, data.encoding) == ("conll03", "spans", "f1", "IOB2")
    assert list(data.splits) == ["train", "dev", "test"]
    assert data.external is None
    assert data.metadata["source_scheme"] == "IOB1"  # what a saved tagger writes
    train, dev, test = data.splits.values()
    assert list(train.columns) == ["word", "pos", "chunk", "label"]
    assert sentences(train) == ENGLISH_LABELS
    assert sentences(train, "word")[1] == ["Ann", "Bob", "Ray"]
    assert sentences(train, "chunk")[1] == ["I-NP", "B-NP", "I-NP"]
    assert sentences(dev)[2:] == [["O"]]
    assert [corpus.n_sentences for corpus in (train, dev, test)] == [2, 3, 4]


def test_documents_and_the_case_of_their_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, task = placed(tmp_path, ENGLISH, ENGLISH_TEXT.encode())
    monkeypatch.setattr(ner, "ENGLISH", task)
    splits = ner.load_conll03(home, documents=True, labels="tags").splits
    train = splits["train"]
    assert set(train.columns) - {"word", "pos", "chunk", "label"} == {"document", "case", "cased"}
    assert sentences(train, "document") == [["1"] * 4, ["2"] * 3]
    assert splits["test"].column("cased").vocabulary is train.column("cased").vocabulary
    assert "case" not in ner.load_conll03(home).splits["train"].columns


DOCUMENT = """\
IRAN seeks Iran 's Ed ED
IRAN TALKS , U.S. says
OFF TO MAY
May Iran may U.S. may ; Ed de-Rio EU

Iran EU
X 1996 - A b
"""
CASED = {
    0: ("title none title none title title", "Iran seeks Iran 's Ed ED"),
    1: ("title none none upper none", "Iran TALKS , U.S. says"),
    2: ("none none lower", "Off To may"),
    3: (
        "lower title lower upper lower none title none none",
        "may Iran may U.S. may ; Ed de-Rio EU",
    ),
    4: ("none none", "Iran EU"),
    5: ("none none none none none", "X 1996 - A b"),
}


def test_case_elsewhere_in_the_document() -> None:
    lines = DOCUMENT.splitlines()
    words = [line.split() for line in lines if line]
    numbers = [["1"] * len(w) if i < 4 else ["2"] * len(w) for i, w in enumerate(words)]
    corpus = Corpus.from_sentences({"word": words, "document": numbers})
    made = with_case(corpus, {})
    for i, (case, cased) in CASED.items():
        assert (i, " ".join(made.sentence(i, "case"))) == (i, case)
        assert (i, " ".join(made.sentence(i, "cased"))) == (i, cased)


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        *(("a", "lower"), ("A", "title"), ("Ab", "title"), ("AB", "upper"), ("U.S.", "upper")),
        *(("McX", "mixed"), ("iPod", "mixed"), ("12", "none"), ("F1", "title"), ("", "none")),
    ],
)
def test_kinds_of_case(form: str, kind: str) -> None:
    assert kind_of(form) == kind


def test_splits_share_one_vocabulary_per_column(tmp_path: Path) -> None:
    for task, text in ((ENGLISH, ENGLISH_TEXT), (SPANISH, SPANISH_TEXT)):
        train, *others = load(*placed(tmp_path, task, text.encode())).splits.values()
        for corpus in others:
            for name, column in corpus.columns.items():
                assert column.vocabulary is train.column(name).vocabulary


def test_spanish_is_utf8_and_its_labels_stay_as_given(tmp_path: Path) -> None:
    data = load(*placed(tmp_path, SPANISH, SPANISH_TEXT.encode()))
    train = data.splits["train"]
    assert list(train.columns) == ["word", "pos", "label"]
    assert sentences(train) == [["O", "I-LOC", "O"], ["B-ORG"]]
    assert train.sentence(0, "word")[1] == "España"
    assert (data.encoding, data.metadata["source_scheme"]) == ("IOB2", "IOB2")


@pytest.mark.parametrize(
    ("task", "text", "expected"),
    [
        (SPANISH, SPANISH_TEXT.encode("latin-1"), r"esp\.train.*2.*0xf1 is not utf-8"),
        (SPANISH, SPANISH_TEXT.replace("I-LOC", "L-LOC").encode(), r"esp\.train.*2.*'L-LOC'"),
        (ENGLISH, ENGLISH_TEXT.replace("I-NP I-PER", "I-PER").encode(), r"eng\.train.*10.*3 col"),
        (ENGLISH, ENGLISH_TEXT.replace("I-PER", "E-PER").encode(), r"eng\.train.*10.*'E-PER'"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, task: SharedTask, text: bytes, expected: str) -> None:
    home, task = placed(tmp_path, task, text)
    with pytest.raises(UserError) as caught:
        load(home, task)
    assert caught.match(expected)


def test_wrong_counts_are_refused_for_every_split(tmp_path: Path) -> None:
    home, task = placed(tmp_path, ENGLISH, ENGLISH_TEXT.encode())
    for split, (n_sentences, n_tokens) in task.counts.items():
        wrong = {**task.counts, split: (n_sentences, n_tokens + 1)}
        with pytest.raises(UserError, match=rf"{split} has .* expected") as caught:
            load(home, replace(task, counts=wrong))
        assert caught.value.file == str(home.locate(task.files[split]))


def test_the_registration_fits_its_featurizer() -> None:
    for info, task in zip(DATASETS, (ENGLISH, SPANISH), strict=True):
        featurizer = registry().featurizer(info.featurizer)
        assert info.name == task.name
        assert info.load() is getattr(ner, f"load_{info.name}")
        assert set(featurizer.columns) <= set(task.columns)
        assert info.task in featurizer.tasks
        assert len({file.sha256 for file in info.files if not file.extra}) == 3
        for file in info.files:
            assert file.urls[0].rpartition("/")[2] == file.path.rpartition("/")[2]
        for numbers in task.counts.values():
            assert all(f"{number:,}" in info.protocol for number in numbers)


# --- the scheme: what conlleval says of the files ------------------------------------------------


class Guess:
    """A fit that knows IOB2 labels."""

    labels = tuple(["O"] + [f"{p}-{t}" for t in ("LOC", "MISC", "ORG", "PER") for p in "BI"])

    def predict(self, corpus: Corpus) -> I32:
        raise NotImplementedError


def sums(counts: SentenceCounts) -> tuple[int, int, int]:
    lists = counts.to_lists()
    return tuple(sum(lists[f"{which}_chunks"]) for which in ("gold", "predicted", "correct"))


def agree_with_conlleval(raw: Corpus, gold: Corpus, codes: I32) -> None:
    """Scores of IOB2 guesses are those of conlleval on the IOB1 file with the guesses in IOB1."""
    scores = score_labels("spans", "IOB2", gold, Guess(), codes)
    tagger = SavedTagger(Guess(), TrainingCorpus(tuple(raw.columns), "spans", "IOB2", "IOB1"))
    texts = tagger.texts(raw, codes)
    written = raw.with_column("label", Column(words := Vocabulary(), words.encode(texts)))
    found = conlleval(sentences(raw), sentences(written))[:3]
    assert found == sums(scores.counts)
    # Predictions as they are: conlleval reads both schemes by one rule.
    plain = raw.with_column("label", Column(Vocabulary(Guess.labels), codes))
    assert conlleval(sentences(raw), sentences(plain))[:3] == found
    assert metrics_from_counts(tagger.counts(raw, codes)[0]) == scores.metrics


@given(st.data())
def test_scores_are_conllevals_on_iob1(data: st.DataObject) -> None:
    tag = st.sampled_from(Guess.labels[:5])
    lengths = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    n_tokens = sum(lengths)
    labels = Vocabulary()
    tags = data.draw(st.lists(tag, min_size=n_tokens, max_size=n_tokens))
    column = Column(labels, labels.encode(tags))
    raw = Corpus({"label": column}, np.cumsum([0, *lengths]))  # IOB1 with any stray B
    gold = convert_labels(raw, "IOB1", "IOB2")
    right = [Guess.labels.index(label) for label in gold.column("label").strings()]
    # Mostly right, or nothing would ever be correct.
    noise = data.draw(
        st.lists(st.integers(-12, 4), min_size=n_tokens, max_size=n_tokens).map(np.array)
    )
    codes = np.where(noise < 0, right, noise).astype(np.int32)
    agree_with_conlleval(raw, gold, codes)


# --- the real files ------------------------------------------------------------------------------

# Distinct tags of the files; then entities by type. Published: 14,041, 3,250, 3,453 sentences.
PUBLISHED = {
    ("conll03", "train"): (45, {"LOC": 7140, "MISC": 3438, "ORG": 6321, "PER": 6600}),
    ("conll03", "dev"): (45, {"LOC": 1837, "MISC": 922, "ORG": 1341, "PER": 1842}),
    ("conll03", "test"): (44, {"LOC": 1668, "MISC": 702, "ORG": 1661, "PER": 1617}),
    ("conll02", "train"): (59, {"LOC": 4914, "MISC": 2173, "ORG": 7390, "PER": 4321}),
    ("conll02", "dev"): (56, {"LOC": 985, "MISC": 445, "ORG": 1700, "PER": 1222}),
    ("conll02", "test"): (53, {"LOC": 1084, "MISC": 340, "ORG": 1400, "PER": 735}),
}


def real(task: SharedTask) -> tuple[DataHome, Dataset]:
    home = real_home(task.files.values())
    return home, load(home, task)


def encoded_as_guess(corpus: Corpus) -> I32:
    column = corpus.column("label")
    table = np.array([Guess.labels.index(label) for label in column.vocabulary.strings])
    return table[column.codes].astype(np.int32)


@pytest.mark.corpus
@pytest.mark.parametrize("task", [ENGLISH, SPANISH], ids=lambda task: task.name)
def test_real_counts_are_the_published_ones(task: SharedTask) -> None:
    home, data = real(task)
    for split, corpus in data.splits.items():
        assert (corpus.n_sentences, corpus.n_tokens) == task.counts[split]
        assert home.locate(task.files[split]).stat().st_size == task.files[split].bytes
        scores = score_labels("spans", "IOB2", corpus, Guess(), encoded_as_guess(corpus))
        n_tags, entities = PUBLISHED[task.name, split]
        types = Vocabulary(["", *entities])
        assert len(np.unique(corpus.column("pos").codes)) == n_tags
        gold = Guess.labels, encoded_as_guess(corpus)
        chunks = find_chunks(gold, corpus.offsets, "IOB2", types)
        counts = np.bincount(chunks.kind, minlength=len(types)).tolist()
        assert dict(zip(types.strings, counts, strict=True)) == {"": 0, **entities}
        assert scores.metrics["f1"] == 1
        assert not {"-DOCSTART-", "-X-"} & set(corpus.column("word").strings())
        assert "-X-" not in corpus.column("pos").vocabulary


@pytest.mark.corpus
def test_real_english_labels_go_back_to_the_file() -> None:
    """IOB1 again, but for the two stray B-MISC of train."""
    home, data = real(ENGLISH)
    for split, n_stray in (("train", 2), ("dev", 0), ("test", 0)):
        corpus = convert_labels(data.splits[split], "IOB2", "IOB1")
        lines = home.locate(ENGLISH.files[split]).read_text(encoding="ascii").splitlines()
        given = [line.split() for line in lines if line and not line.startswith("-DOCSTART-")]
        back = zip(corpus.column("word").strings(), corpus.column("label").strings(), strict=True)
        pairs = list(zip(given, back, strict=True))
        assert all(fields[0] == word for fields, (word, _) in pairs)
        stray = [(fields[3], label) for fields, (_, label) in pairs if fields[3] != label]
        assert stray == n_stray * [("B-MISC", "I-MISC")]
    first = " ".join(data.splits["train"].sentence(0, "label"))
    assert first == "B-ORG O B-MISC O O O B-MISC O O"


@pytest.mark.corpus
def test_real_scores_are_conllevals_on_the_iob1_file() -> None:
    home, data = real(ENGLISH)
    gold = data.splits["test"]
    raw = read_conll(home.locate(ENGLISH.files["test"]), ENGLISH.columns, scheme="IOB1")
    rng = np.random.default_rng(1)
    right = encoded_as_guess(gold)
    noise = rng.integers(len(Guess.labels), size=gold.n_tokens, dtype=np.int32)
    codes = np.where(rng.random(gold.n_tokens) < 0.05, noise, right).astype(np.int32)
    agree_with_conlleval(raw, gold, codes)
