"""GENETAG's alternative answers: the reader, the real files, and scores counted from the files."""

from __future__ import annotations

import numpy as np
import pytest

from sslbench.engine.corpus import Corpus, RawBytes, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.experiment.data import Dataset
from sslbench.experiment.metrics import Alternatives, Scores, score
from sslbench_datasets.genes import load as genes
from sslbench_datasets.genes.genetag import read_alternatives, sentence_names
from sslbench_datasets.genes.info import ALTERNATIVES, GENETAG
from support.chunks import Span, from_spans, spans_of
from support.gene_files import ANSWERS, TAGGED, gold_names, sentences, tagged
from support.real_files import real_home
from support.score_oracle import count_answers

ANSWER_PLACES = {(2, 2), (2, 5), (9, 10), (12, 13)}


def answers(text: str) -> Alternatives:
    offsets = tagged(TAGGED).offsets
    names = sentence_names(RawBytes("corpus.txt", TAGGED.encode()))
    return read_alternatives(RawBytes("answers.txt", text.encode()), names, offsets)


def places(actual: Alternatives) -> list[tuple[int, int]]:
    return list(zip(actual.first.tolist(), actual.last.tolist(), strict=True))


def test_alternative_answers_are_places_in_the_corpus() -> None:
    assert places(answers(ANSWERS)) == sorted(ANSWER_PLACES)
    assert places(answers(ANSWERS.replace("\n", "\r\n"))) == sorted(ANSWER_PLACES)
    assert places(answers("\n")) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "@@12|2 2|p53\n@@7|0\n",
            r"^answers\.txt:2: '@@7\|0' is not an answer; each line is @@num",
        ),
        ("@@12|2 2 p53\n", r"^answers\.txt:1: '@@12\|2 2 p53' is not an answer"),
        ("7|0 0|Myc\n", r"^answers\.txt:1: '7\|0 0\|Myc' is not an answer"),
        ("@@7|0 4|all\n@@7|1 5|on\n", r"^answers\.txt:2: 1 5 is not a span of sentence @@7; .* 4$"),
        ("@@7|2 1|back\n", r"^answers\.txt:1: 2 1 is not a span of sentence @@7"),
        ("@@7|0 0|\u00e9\n", r"^answers\.txt:1: byte 0xc3 is not ascii"),
    ],
)
def test_a_bad_answer_is_named(text: str, expected: str) -> None:
    with pytest.raises(UserError) as caught:
        answers(text)
    assert caught.match(expected)


# --- the real files -----------------------------------------------------------------------------

GLUED = "human leukemia-associated transcription factor RUNX1 / AML1@@111796643418"
# Lines of Correct.Data; names with another answer than themselves; answers that are no answer for
# any name; texts that are not those of their tokens.
ANSWER_FACTS = {
    "train": (6_593, 4_422, 46, ["protein S7 .3", GLUED]),
    "dev": (2_158, 1_477, 17, ["BamHI-F"]),
    "test": (4_275, 2_945, 23, []),
}


@pytest.mark.corpus
@pytest.mark.parametrize("split", ANSWER_FACTS)
def test_real_alternative_answers(split: str) -> None:
    home = real_home({**GENETAG, **ALTERNATIVES}.values())
    data = genes.load_genetag(home)
    corpus, actual = data.splits[split], data.alternatives[split]
    lines = home.locate(ALTERNATIVES[split]).read_text(encoding="ascii").splitlines()
    names = sentence_names(home.locate(GENETAG[split]))
    starts = dict(zip(names, corpus.offsets.tolist(), strict=False))
    words = corpus.column("word").strings()
    other_texts, listed = [], set()
    for line in lines:
        name, place, text, *_ = line.split("|")
        if name in starts:
            first, last = (starts[name] + int(part) for part in place.split())
            listed.add((first, last))
            if " ".join(words[first : last + 1]).lower() != text.strip().lower():
                other_texts.append(text)
    assert listed == set(places(actual))  # the places are those of tokens, from 0, both inside
    with_other, without_name = set(), 0
    owner = np.full(corpus.n_tokens, -1)
    gold = [(a, b - 1) for a, b, _ in whole_spans(corpus)]
    for number, (first, last) in enumerate(gold):
        owner[first : last + 1] = number
    for first, last in listed:
        owners = set(owner[first : last + 1].tolist()) - {-1}
        without_name += not owners
        with_other |= {number for number in owners if gold[number] != (first, last)}
    assert (len(lines), len(with_other), without_name, other_texts) == ANSWER_FACTS[split]


def whole_spans(corpus: Corpus) -> list[tuple[int, int, str]]:
    """The names, in tokens of the corpus."""
    return [
        (offset + start, offset + end, kind)
        for offset, labels in zip(corpus.offsets.tolist(), sentences(corpus), strict=False)
        for start, end, kind in spans_of(labels, "IOB2")
    ]


def guesses(rng: np.random.Generator, n: int, *pools: list[tuple[int, int]]) -> list[Span]:
    """Random names of a sentence of n tokens, not overlapping, many of them from the pools."""
    drawn = [place for pool in pools for place in pool if rng.random() < 0.5]
    drawn += [(at, min(n - 1, at + int(rng.integers(3)))) for at in rng.integers(0, n, 2).tolist()]
    taken: list[Span] = []
    for number in rng.permutation(len(drawn)).tolist():
        first, last = drawn[number]
        if all(last < span.start or first >= span.end for span in taken):
            taken.append(Span(first, last + 1, "GENE"))
    return sorted(taken)


@pytest.mark.corpus
@pytest.mark.parametrize("split", ["dev", "test"])
def test_real_scores_are_those_of_counting_the_files(split: str) -> None:
    """Random guesses, scored by the spans in Gold.format and Correct.Data."""
    home = real_home({**GENETAG, **ALTERNATIVES}.values())
    gold_path = home.locate(GENETAG[split]).with_name("Gold.format")
    if not gold_path.is_file():
        pytest.skip(f"no {gold_path}")
    gold, others = gold_names(gold_path), gold_names(home.locate(ALTERNATIVES[split]))
    data = genes.load_genetag(home)
    corpus, rng = data.splits[split], np.random.default_rng(8)
    tags: list[str] = []
    actual, false, skipped = 0, 0, []
    for number, name in enumerate(sentence_names(home.locate(GENETAG[split]))):
        labels = corpus.sentence(number, "label")
        text = [(start, end - 1) for start, end, _ in spans_of(labels, "IOB2")]
        own, listed = sorted(gold.get(name, ())), sorted(others.get(name, ()))
        taken = guesses(rng, len(labels), own, listed)
        if text != own:  # the one sentence of dev with two names joined: guess nothing
            skipped.append(name)
            taken = []
        tags += from_spans(taken, len(labels), "IOB2")
        sums = count_answers(own, [(a, b - 1) for a, b, _ in taken], listed)
        actual, false = actual + sums[0], false + sums[1]
    assert skipped == (["@@91827073408"] if split == "dev" else [])
    scores = score_tags(data, split, tags)
    n_gold = genes.GENETAG_COUNTS[split][2]
    counts = scores.counts.to_lists()
    assert (sum(counts["correct_alternatives"]), sum(counts["false_positives"])) == (actual, false)
    assert n_gold / 2 < actual < n_gold
    expected = 2 * actual / (n_gold + actual + false)
    assert scores.metrics["alt_f1"] == pytest.approx(expected)
    assert scores.metrics["alt_f1"] > scores.metrics["f1"]


def score_tags(data: Dataset, split: str, tags: list[str]) -> Scores:
    corpus = data.splits[split]
    gold, guessed = corpus.column("label"), Vocabulary()
    codes = guessed.encode(tags)
    return score(
        "spans",
        (gold.vocabulary.strings, gold.codes),
        (guessed.strings, codes),
        corpus.offsets,
        encoding="IOB2",
        alternatives=data.alternatives[split],
    )
