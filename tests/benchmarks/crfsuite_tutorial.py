"""sklearn-crfsuite's tutorial on Spanish names: our estimator beside python-crfsuite.

    python tests/benchmarks/crfsuite_tutorial.py [SENTENCES] [THREADS]

The features and parameters are those of the tutorial (CoNLL-2002, c1 = c2 = 0.1, 100 iterations).
Printed: F1 of the labels other than O, weighted by their frequency, on testb, and wall seconds of
the training from dicts of features.
"""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import chain
from pathlib import Path
from typing import Any

import pycrfsuite
from sklearn.metrics import f1_score

import sslbench
from sslbench.sklearn import CRF

Sentence = list[dict[str, Any]]


def features(words: list[str], tags: list[str]) -> Sentence:
    return [token(words, tags, i) for i in range(len(words))]


def token(words: list[str], tags: list[str], i: int) -> dict[str, Any]:
    word = words[i]
    result = {"bias": 1.0, **about("", word, tags[i])}
    result |= {"word[-3:]": word[-3:], "word[-2:]": word[-2:], "word.isdigit()": word.isdigit()}
    result |= about("-1:", words[i - 1], tags[i - 1]) if i else {"BOS": True}
    last = i == len(words) - 1
    return result | ({"EOS": True} if last else about("+1:", words[i + 1], tags[i + 1]))


def about(place: str, word: str, tag: str) -> dict[str, Any]:
    return {
        f"{place}word.lower()": word.lower(),
        f"{place}word.istitle()": word.istitle(),
        f"{place}word.isupper()": word.isupper(),
        f"{place}postag": tag,
        f"{place}postag[:2]": tag[:2],
    }


def peer(X: list[Sentence], y: list[list[str]], test: list[Sentence]) -> list[list[str]]:
    trainer = pycrfsuite.Trainer(verbose=False)
    for sentence, labels in zip(X, y, strict=True):
        trainer.append(pycrfsuite.ItemSequence(sentence), labels)
    parameters = {"c1": 0.1, "c2": 0.1, "max_iterations": 100}
    trainer.set_params({**parameters, "feature.possible_transitions": True})
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "model"))
        trainer.train(path)
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        return [tagger.tag(pycrfsuite.ItemSequence(sentence)) for sentence in test]


def report(name: str, began: float, result: list[list[str]], gold: list[list[str]]) -> None:
    seconds = time.perf_counter() - began
    ours, theirs = (list(chain.from_iterable(rows)) for rows in (result, gold))
    labels = sorted(set(theirs) - {"O"})
    score = f1_score(theirs, ours, labels=labels, average="weighted", zero_division=0)
    print(f"{name}: F1 {100 * score:.2f}, {seconds:.1f} s of training and tagging")


def main(sentences: int, threads: int) -> None:
    home = sslbench.DataHome(dataset="conll02")
    splits = sslbench.registry().dataset("conll02").load()(home).splits
    texts = {}
    for name in ("train", "test"):
        corpus = splits[name]
        rows = zip(corpus.sentences("word"), corpus.sentences("pos"), strict=True)
        texts[name] = [features(*row) for row in rows][:sentences], corpus.sentences("label")
    (X, y), (test, gold) = texts["train"], texts["test"]
    y, gold = y[: len(X)], gold[: len(test)]
    # Compile before the clock starts.
    CRF(max_iterations=2, c1=0.1, n_threads=threads).fit(X[:50], y[:50]).predict(test[:2])
    began = time.perf_counter()
    report("python-crfsuite", began, peer(X, y, test), gold)
    began = time.perf_counter()
    crf = CRF("lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True)
    crf.set_params(n_threads=threads).fit(X, y)
    report(f"sslbench, {threads} threads", began, crf.predict(test), gold)


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    main(given[0] if given else 100_000, given[1] if len(given) > 1 else 1)
