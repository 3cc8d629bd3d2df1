"""Text dumps of CRFsuite and CRF++ as taggers, beside what the programs compute."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from sslbench.conversion.dumps import splits
from sslbench.engine.types import F64
from sslbench.experiment.run.saved import load_tagger
from sslbench.plugins import registry
from support.command import sslbench

LABELS = ["B-x", "I-x", "O"]
TEMPLATES = [
    "U00:%x[0,0]",
    "U01:%x[-1,0]/%x[0,0]",
    "U02:%x[1,0]/%x[0,1]/%x[2,0]",
    "U03",
    "U04:%x[0,0]",
]
BIGRAMS = ["B", "B01:%x[0,1]", "B02:%x[-1,0]/%x[0,0]"]
WORDS, TAGS = ["a", "b", "1/2", "2", "/"], ["N", "V"]
Sentence = list[tuple[str, str]]


def convert(*words: object) -> Result:
    return sslbench("convert", *words)


def value(sentence: Sentence, place: int, column: int) -> str:
    """What CRF++ puts for a macro: FeatureIndex::getIndex."""
    if place < 0:
        return f"_B{place}"
    if place >= len(sentence):
        return f"_B+{place - len(sentence) + 1}"
    return sentence[place][column]


def feature(template: str, sentence: Sentence, place: int) -> str:
    """The text of a template at a token, macro by macro."""
    parts = template.split("%x[")
    text = parts[0]
    for part in parts[1:]:
        macro, _, rest = part.partition("]")
        offset, column = map(int, macro.split(","))
        text += value(sentence, place + offset, column) + rest
    return text


class TextModel:
    """Random weights for all features of some sentences, and their probabilities by enumeration."""

    def __init__(self, sentences: list[Sentence], factor: float = 1.0) -> None:
        rng, self.factor = np.random.default_rng(3), factor
        self.first: dict[str, int] = {}
        size = 0
        for sentence in sentences:
            for place in range(len(sentence)):
                for template in TEMPLATES + (BIGRAMS if place else []):
                    text = feature(template, sentence, place)
                    if text not in self.first:
                        self.first[text] = size
                        size += len(LABELS) ** (1 if text[0] == "U" else 2)
        self.weights = rng.normal(size=size)

    def write(self, path: Path) -> Path:
        head = f"version: 100\ncost-factor: {self.factor}\nmaxid: {len(self.weights)}\nxsize: 2\n"
        features = "".join(f"{n} {text}\n" for text, n in sorted(self.first.items()))
        weights = "".join(f"{weight:.16f}\n" for weight in self.weights)
        parts = [head, "\n".join(LABELS) + "\n", "\n".join(TEMPLATES + BIGRAMS) + "\n", features]
        path.write_text("\n".join([*parts, weights]), "utf-8")
        return path

    def _cells(self, template: str, sentence: Sentence, place: int, n: int) -> F64:
        first = self.first.get(feature(template, sentence, place))
        return np.zeros(n) if first is None else self.weights[first : first + n]

    def probabilities(self, sentence: Sentence) -> F64:
        """float64[n, L], by enumeration of all label sequences."""
        L, T = len(LABELS), len(sentence)
        node = [sum(self._cells(t, sentence, i, L) for t in TEMPLATES) for i in range(T)]
        edge = [sum(self._cells(t, sentence, i, L * L) for t in BIGRAMS) for i in range(T)]
        actual, total = np.zeros((T, L)), 0.0
        for path in product(range(L), repeat=T):
            score = sum(node[i][y] for i, y in enumerate(path))
            score += sum(edge[i][path[i - 1] * L + path[i]] for i in range(1, T))
            p = np.exp(self.factor * score)
            total += p
            for i, y in enumerate(path):
                actual[i, y] += p
        return actual / total


def sentences(n: int, seed: int) -> list[Sentence]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, size=n)
    return [[(str(rng.choice(WORDS)), str(rng.choice(TAGS))) for _ in range(k)] for k in lengths]


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_a_text_model_of_crfpp_gives_its_probabilities(tmp_path: Path, factor: float) -> None:
    model = TextModel(sentences(8, 0), factor)
    result = convert(model.write(tmp_path / "model.txt"), tmp_path / "my.model")
    assert result.exit_code == 0, result.output
    tagger = load_tagger(tmp_path / "my.model", registry())
    assert tagger.columns == ("word", "pos")
    assert tagger.corpus is not None
    assert tagger.corpus.task == "spans"
    order = [tagger.labels.index(label) for label in LABELS]
    unseen = sentences(12, 1)
    for sentence, ours in zip(unseen, tagger.predict_proba(unseen), strict=True):
        expected = model.probabilities(sentence)
        np.testing.assert_allclose(ours[:, order], expected, rtol=1e-9, atol=1e-12)


def test_the_imported_tagger_tags_and_is_shown(tmp_path: Path) -> None:
    path = TextModel(sentences(8, 0)).write(tmp_path / "model.txt")
    assert convert(path, tmp_path / "m", "--columns", "form,tag").exit_code == 0
    (tmp_path / "text").write_text("a N\n1/2 V\n\nb N\n")
    result = sslbench("tag", tmp_path / "m", tmp_path / "text")
    assert result.exit_code == 0, result.output
    assert [line.rpartition(" ")[0] for line in result.stdout.splitlines()] == [
        *("a N", "1/2 V", "", "b N")
    ]
    shown = sslbench("show", tmp_path / "m")
    assert shown.exit_code == 0, shown.output
    assert "form, tag" in shown.stdout


def test_crfsuites_own_example_names(tmp_path: Path) -> None:
    """Trained, dumped and read back: the same labels, probabilities to the dump's six decimals."""
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="needs python-crfsuite")

    def items(sentence: list[str]) -> list[list[str]]:
        rows = []
        for i, word in enumerate(sentence):
            row = [f"w[0]={word}", "bias"]
            row += [f"w[-1]|w[0]={sentence[i - 1]}|{word}"] if i else ["__BOS__"]
            row += [] if i + 1 < len(sentence) else ["__EOS__"]
            rows.append(row)
        return rows

    rng = np.random.default_rng(0)
    words = ["x", "y", "x|y", "-->", "a --> b", "é"]
    text = [[str(w) for w in rng.choice(words, k)] for k in rng.integers(1, 6, size=30)]
    trainer = pycrfsuite.Trainer(verbose=False)
    for sentence in text:
        trainer.append(items(sentence), [str(y) for y in rng.choice(LABELS, len(sentence))])
    trainer.set_params({"c2": 0.1, "max_iterations": 30})
    trainer.train(str(tmp_path / "binary"))
    theirs = pycrfsuite.Tagger()
    theirs.open(str(tmp_path / "binary"))
    theirs.dump(str(tmp_path / "dump.txt"))
    result = convert(tmp_path / "dump.txt", tmp_path / "my.model")
    assert result.exit_code == 0, result.output
    tagger = load_tagger(tmp_path / "my.model", registry())
    assert tagger.columns == ("w",)
    for sentence, ours in zip(text, tagger.predict_proba(text), strict=True):
        theirs.set(items(sentence))
        expected = [[theirs.marginal(y, i) for y in tagger.labels] for i in range(len(sentence))]
        np.testing.assert_allclose(ours, expected, atol=1e-5)
    result = convert(tmp_path / "binary", tmp_path / "other")
    assert result.exit_code == 2
    assert "crfsuite dump" in result.stderr


DUMP = """FILEHEADER = {
  magic: lCRF
}

LABELS = {
      0: O
      1: X
}

ATTRIBUTES = {
      0: word[0]=a
      1: bias
}

TRANSITIONS = {
  (1) O --> X: 0.500000
}

STATE_FEATURES = {
  (0) word[0]=a --> X: 1.000000
  (0) bias --> O: 0.250000
}

"""
CRFPP = "version: 100\ncost-factor: 1\nmaxid: 2\nxsize: 1\n\nO\nX\n\nU:%x[0,0]\n\n0 U:a\n\n0.5\n1\n"


def test_these_two_are_read(tmp_path: Path) -> None:
    for name, text in (("a", DUMP), ("b", CRFPP)):
        (tmp_path / name).write_text(text)
        result = convert(tmp_path / name, tmp_path / f"{name}.model")
        assert result.exit_code == 0, result.output
    tagger = load_tagger(tmp_path / "b.model", registry())
    odds = np.exp(0.5)
    np.testing.assert_allclose(
        tagger.predict_proba([["a"]])[0], [[1 / (1 + odds), odds / (1 + odds)]]
    )


@pytest.mark.parametrize(
    ("text", "old", "new", "line", "message"),
    [
        (DUMP, "word[0]=a\n", "word.lower():a\n", 11, "is not named as a template"),
        (DUMP, "      1: X", "      7: X", 7, "is not number 1"),
        (DUMP, "1: X", "1: O", 8, "a label occurs twice"),
        (DUMP, "O --> X: 0.5", "O --> Y: 0.5", 16, "does not name a source"),
        (DUMP, "0.250000", "nan", 21, "is not finite"),
        (DUMP, "0.250000", "x", 21, "'x' is no number"),
        (DUMP, "0.250000\n}\n\n", "0.2", 21, "ends where '}' should be"),
        (DUMP, "TRANSITIONS", "T", 15, "where 'TRANSITIONS = {' should be"),
        (DUMP, "word[0]=a\n", "word[0]|word[1]=" + "|" * 5000 + "\n", 11, "too many ways"),
        (CRFPP, "maxid: 2", "maxid: 99999999999999", 5, "is no number from 1"),
        (CRFPP, "maxid: 2", "maxid: 3", 15, "2 weights in place of 3"),
        (CRFPP, "0 U:a", "1 U:a", 11, "beyond the last one"),
        (CRFPP, "0 U:a", "-1 U:a", 11, "is no feature"),
        (CRFPP, "0 U:a", "0 Q:a", 11, "is no feature"),
        (CRFPP, "0 U:a", "0", 11, "is no '"),
        (CRFPP, "U:%x[0,0]", "U:%x[0,7]", 9, "there is no column 7"),
        (CRFPP, "U:%x[0,0]", "U:%x[0,0", 9, "cannot parse"),
        (CRFPP, "xsize: 1", "xsize: 3", 5, "it reads 3 columns"),
        (CRFPP, "version", "verse", 1, "neither a saved tagger nor"),
        (CRFPP, "\n\n0 U:a", "", 11, "is no 'name"),
    ],
)
def test_damage_is_told_with_its_line(
    tmp_path: Path, text: str, old: str, new: str, line: int, message: str
) -> None:
    assert old in text
    (tmp_path / "dump").write_text(text.replace(old, new, 1))
    result = convert(tmp_path / "dump", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert len(result.stderr.splitlines()) == 1
    assert f"dump:{line}: " in result.stderr
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("end", range(0, len(CRFPP), 7))
def test_a_cut_file_is_never_a_traceback(tmp_path: Path, end: int) -> None:
    (tmp_path / "dump").write_text(CRFPP[:end])
    result = convert(tmp_path / "dump", tmp_path / "out")
    assert result.exit_code in (0, 2), result.output
    assert "internal error" not in result.stderr


def test_texts_are_cut_into_values() -> None:
    assert splits("a/b", []) == [("a/b",)]
    assert splits("a/b/c", ["/"]) == [("a", "b/c"), ("a/b", "c")]
    assert splits("a/b;c", ["/", ";"]) == [("a", "b", "c")]
    assert splits("ab", [""]) == [("", "ab"), ("a", "b"), ("ab", "")]
    assert splits("ab", ["/"]) == []
