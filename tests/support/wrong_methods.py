"""A method that keeps all rules, and one for each way to break a rule."""

from __future__ import annotations

import os
import re
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from sslbench import Corpus, DataHome, Dataset, Problem, registry
from sslbench.engine.corpus import LabelConstraint
from sslbench.engine.crf import write_model
from sslbench.experiment.context.context import RunContext

LABEL_FILE = "SSLBENCH_TEST_LABELS"  # variable with the path of a file of labels


class WordTagger:
    """One label per word; the last row of the table is for unknown words."""

    decodes_sequences = False

    def __init__(
        self,
        labels: tuple[str, ...],
        words: dict[str, int],
        constraint: LabelConstraint | None,
        kind: str,
    ) -> None:
        self.labels, self.words, self.constraint, self.kind = labels, words, constraint, kind

    def predict(self, corpus: Corpus) -> np.ndarray:
        words = corpus.column("word").strings()
        codes = np.array([self.words.get(word, self.words[""]) for word in words], np.int32)
        if self.constraint is not None:
            codes = self.constraint.apply_to(codes, corpus, self.labels)
        return codes

    def save(self, path: str | os.PathLike[str]) -> None:
        metadata = {"labels": self.labels, "words": list(self.words), "constraint": self.constraint}
        codes = np.array(list(self.words.values()), np.int32)
        write_model(path, self.kind, {"codes": codes}, msgspec.to_builtins(metadata))


class WordTable:
    """The most frequent label of each word, smoothed; keeps all rules."""

    order_invariant = True
    tagger: ClassVar[type[WordTagger]] = WordTagger

    class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        smoothing: Annotated[float, msgspec.Meta(gt=0)] = 1.0

    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        gold, n_labels = problem.label_codes(problem.labeled), len(problem.labels)
        share = np.bincount(gold, minlength=n_labels) / len(gold)
        counts = {"": params.smoothing * share}
        for word, code in zip(problem.labeled.column("word").strings(), gold, strict=True):
            counts.setdefault(word, params.smoothing * share)
            counts[word] = counts[word] + np.eye(n_labels)[code]
        run.trace["unlabeled"] = sum(shard.n_tokens for shard in problem.unlabeled)
        words = {word: int(row.argmax()) for word, row in counts.items()}
        return self.tagger(problem.labels, words, problem.label_constraint, kind_of(type(self)))

    @classmethod
    def restore(cls, arrays: dict[str, Any], metadata: dict[str, Any]) -> WordTagger:
        words = dict(zip(metadata["words"], arrays["codes"].tolist(), strict=True))
        constraint = metadata["constraint"] and LabelConstraint(**metadata["constraint"])
        return cls.tagger(tuple(metadata["labels"]), words, constraint, kind_of(cls))


def kind_of(cls: type[Any]) -> str:
    """Name under which the kit registers a class."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()


def shifted(tagger: WordTagger, by: int) -> WordTagger:
    """Another label for unknown words."""
    tagger.words[""] = (tagger.words[""] + by) % len(tagger.labels)
    return tagger


class ReadsLabelFile(WordTable):
    """Reads labels from a file and ignores the error if it cannot."""

    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        with suppress(OSError):
            Path(os.environ[LABEL_FILE]).read_text()
        return super().fit(problem, params, run)


class LoadsDataset(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        registry().dataset("synth").load()(DataHome())
        return super().fit(problem, params, run)


class StartsProcess(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        os.system("true")
        return super().fit(problem, params, run)


class PeeksAtHiddenLabels(WordTable):
    """Finds the dataset in the frames of its callers."""

    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        tagger = super().fit(problem, params, run)
        frame = sys._getframe()
        while frame is not None:
            for value in list(frame.f_locals.values()):
                dataset = getattr(value, "dataset", value)
                if not isinstance(dataset, Dataset):
                    continue
                gold = dataset.splits["test"].column("label").strings()
                words = dataset.splits["test"].column("word").strings()
                known = {label: code for code, label in enumerate(tagger.labels)}
                tagger.words |= {w: known.get(g, 0) for w, g in zip(words, gold, strict=True)}
            frame = frame.f_back
        return tagger


class DependsOnThreads(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        return shifted(super().fit(problem, params, run), run.threads - 1)


class UsesGlobalRandomState(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        run.trace["draw"] = float(np.random.random())  # noqa: NPY002
        return super().fit(problem, params, run)


class SeedsGlobalRandomState(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        np.random.seed(0)  # noqa: NPY002
        run.trace["draw"] = float(np.random.random())  # noqa: NPY002
        return super().fit(problem, params, run)


class IgnoresSeed(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        run.trace["draw"] = float(np.random.default_rng().random())
        return super().fit(problem, params, run)


class DependsOnSentenceOrder(WordTable):
    """Unknown words get a label by the length of the first unlabeled sentence."""

    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        tagger = super().fit(problem, params, run)
        first = next((int(shard.lengths[0]) for shard in problem.unlabeled), 0)
        return shifted(tagger, first)


class ForgetsLabelConstraint(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        tagger = super().fit(problem, params, run)
        tagger.constraint = None
        return tagger


class ForgetsConstraintWhenRestored(WordTable):
    @classmethod
    def restore(cls, arrays: dict[str, Any], metadata: dict[str, Any]) -> WordTagger:
        return super().restore(arrays, {**metadata, "constraint": None})


class SequenceTagger(WordTagger):
    decodes_sequences = True


class ForgetsTransitionMask(WordTable):
    tagger = SequenceTagger


class CannotBeRestored(WordTable):
    restore = None  # type: ignore[assignment]


class RestoresAnother(WordTable):
    @classmethod
    def restore(cls, arrays: dict[str, Any], metadata: dict[str, Any]) -> WordTagger:
        return shifted(super().restore(arrays, metadata), 1)


class ChangesLabels(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        tagger = super().fit(problem, params, run)
        problem.labeled.column("label").codes.base[:] = 0  # codes are read-only
        return tagger


class ChangesVocabulary(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        problem.labeled.column("word").vocabulary.add("<unknown>")
        return super().fit(problem, params, run)


class ChangingTagger(WordTagger):
    def predict(self, corpus: Corpus) -> np.ndarray:
        codes = super().predict(corpus)
        corpus.column("word").codes.base[:1] = 0  # codes are read-only
        return codes


class ChangesText(WordTable):
    tagger = ChangingTagger


class PerSentenceTagger(WordTagger):
    def predict(self, corpus: Corpus) -> np.ndarray:
        return super().predict(corpus)[: corpus.n_sentences]


class WrongShape(WordTable):
    tagger = PerSentenceTagger


class FloatTagger(WordTagger):
    def predict(self, corpus: Corpus) -> np.ndarray:
        return super().predict(corpus).astype(float)


class WrongType(WordTable):
    tagger = FloatTagger


class CountingFromOneTagger(WordTagger):
    def predict(self, corpus: Corpus) -> np.ndarray:
        return super().predict(corpus) + 1


class WrongRange(WordTable):
    tagger = CountingFromOneTagger


class NanWeightsTagger(WordTagger):
    weights = np.array([0.0, np.nan])


class NanWeights(WordTable):
    tagger = NanWeightsTagger


class NanMarginalsTagger(WordTagger):
    def encode(self, corpus: Corpus) -> Corpus:
        return corpus

    def marginals(self, corpus: Corpus) -> np.ndarray:
        return np.full((corpus.n_tokens, len(self.labels)), np.nan)


class NanMarginals(WordTable):
    tagger = NanMarginalsTagger


class NanTrace(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        run.trace["rounds"] = [{"likelihood": np.nan}]
        return super().fit(problem, params, run)


class NeedsUnlabeledText(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        run.trace["share"] = problem.labeled.n_tokens / problem.unlabeled.n_tokens
        return super().fit(problem, params, run)


class NeedsTwoLabels(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        run.trace["second"] = problem.labels[1]
        return super().fit(problem, params, run)


class NeedsDev(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        assert problem.dev is not None
        return super().fit(problem, params, run)


class NeedsKnownLabels(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        if problem.dev is not None:
            np.bincount(problem.label_codes(problem.dev))
        return super().fit(problem, params, run)


class NeedsKnownWordsTagger(WordTagger):
    def predict(self, corpus: Corpus) -> np.ndarray:
        known = set(self.words) & set(corpus.column("word").strings())
        assert known or not corpus.n_tokens
        return super().predict(corpus)


class NeedsKnownWords(WordTable):
    tagger = NeedsKnownWordsTagger


class NeedsOneShard(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        shards = list(problem.unlabeled)
        assert len(shards) <= 1
        return super().fit(problem, params, run)


class NeedsTwoSentences(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        run.trace["second"] = problem.labeled.sentence(1, "word")
        return super().fit(problem, params, run)


class NeedsTwoTokens(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        assert problem.labeled.lengths.max() > 1
        return super().fit(problem, params, run)


class NeedsHiddenSentences(WordTable):
    """Wants unlabeled text unless its amount was capped."""

    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        assert problem.labeled.n_sentences < 20 or problem.unlabeled.n_sentences
        return super().fit(problem, params, run)


class WrongBound(WordTable):
    class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        smoothing: Annotated[float, msgspec.Meta(gt=0)] = 1.0
        rounds: Annotated[int, msgspec.Meta(ge=0)] = 1

    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        run.trace["share"] = 1 / params.rounds
        return super().fit(problem, params, run)


class AcceptsAnyParameter(WordTable):
    class Params(msgspec.Struct, frozen=True):
        smoothing: float = 1.0


class Hangs(WordTable):
    """Never returns if it may use two threads."""

    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        while run.threads > 1:
            time.sleep(0.01)
        return super().fit(problem, params, run)


class FitsOneTaskOnly(WordTable):
    def fit(self, problem: Problem, params: Any, run: RunContext) -> WordTagger:
        assert problem.encoding is None
        return super().fit(problem, params, run)
