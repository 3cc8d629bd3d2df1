"""Saved taggers: writing a trained tagger to a file, reading it, tagging new text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import msgspec
import numpy as np

from sslbench.engine.checked import part_of
from sslbench.engine.corpus import Column, Corpus, CorpusShards, Scheme, Vocabulary, convert_labels
from sslbench.engine.corpus.tokens import Token, corpus_of, sentence_lists
from sslbench.engine.crf import BatchPotentials, ChainCRF, add_facts, read_model
from sslbench.engine.crf.quick import FEW, quick_encoder, quick_potentials
from sslbench.engine.crf.restoring import RESTORE
from sslbench.engine.errors import UserError
from sslbench.engine.features.dicts import DictFeatures, TextReader, TokenReader
from sslbench.engine.features.index import Dense, QuickEncoder
from sslbench.engine.files.atomic import folder_beside
from sslbench.engine.lazy import lazy
from sslbench.engine.types import F64, I32, Arrays
from sslbench.experiment.checks.audit import audit_warnings, duplicates, unseen_labels
from sslbench.experiment.data import Dataset
from sslbench.experiment.data.spelling import Spelling, in_known_spelling
from sslbench.experiment.data.template_file import FILE_PREFIX
from sslbench.experiment.data.weak import PREFIX
from sslbench.experiment.inputs.problem import DecodedTagger, Tagger, predicted_marginals
from sslbench.experiment.inputs.protocol import Sample
from sslbench.experiment.inputs.text_features import KIND as FEATURED
from sslbench.experiment.inputs.text_features import FeaturedTagger, joined_dense, learned_of
from sslbench.experiment.metrics import SentenceCounts
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.planning.task import RunTask, load_dataset
from sslbench.experiment.records.record import jsonable
from sslbench.experiment.request.request import TrainRequest
from sslbench.experiment.run.fitting import LocalMethod, Session
from sslbench.experiment.run.scoring import predict, score_labels
from sslbench.experiment.run.training import Trained, train
from sslbench.plugins import Registry, registry

#: kinds of saved models that are not named after the method that restores them
_ENGINE_KINDS = {"chain_crf": ChainCRF.from_arrays}
_CORPUS = "corpus"
_SHARD_TOKENS = 2**18  # tagged at a time: memory does not grow with the file


class TrainingCorpus(msgspec.Struct, frozen=True):
    """Properties of the training corpus that the use of a tagger depends on.

    Attributes
    ----------
    columns: the columns of the training file, in its order ("_" = skipped).
    task, encoding: see `Problem`.
    scheme: that of the labels in the file, which are converted to `encoding`; None for plain tags.
    tags: under a label codec, the tag that each label of the model stands for.
    spelling: of the labels in the file.
    conllu: the file is in CoNLL-U, and its label in a field of that.
    """

    columns: tuple[str, ...]
    task: str
    encoding: str | None
    scheme: str | None
    tags: tuple[str, ...] | None = None
    spelling: Spelling = Spelling()
    conllu: bool = False


def save_tagger(
    path: Path,
    trained: Trained,
    plugins: Registry,
    scores: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
) -> None:
    """Write a trained tagger to a file, atomically.

    scores: metrics by split, for the file.

    UserError if the tagger has no ``save``, or cannot be read back.
    """
    spec = trained.sample.spec
    failure = f"method {spec.method} cannot save its tagger"
    tagger = trained.tagger
    inner = tagger.tagger if isinstance(tagger, DecodedTagger) else tagger
    save: Callable[[str], None] | None = getattr(inner, "save", None)
    if save is None:
        raise UserError(f"{failure}: the object that fit() returns has no save()")
    metadata = {
        _CORPUS: msgspec.to_builtins(training_corpus(trained)),
        "trained": {**msgspec.to_builtins(spec), "params": trained.fitted.params},
        "scores": {split: dict(metrics) for split, metrics in scores.items()},
    }
    guard = trained.run.trace.get("guard", {})
    if guard.get("kept") == "baseline":
        metadata["in_place_of"] = {"method": spec.method, "tagger": guard["baseline"]}
    with folder_beside(path) as folder:
        file = os.path.join(folder, "model")
        save(file)
        try:
            add_facts(file, cast(dict[str, Any], jsonable(metadata)))
            load_tagger(file, plugins)
        except UserError as error:
            raise UserError(f"{failure}: {error.message}", hint="see docs/plugins.md") from error
        os.replace(file, path)


def training_corpus(trained: Trained) -> TrainingCorpus:
    """The properties of the corpus of a training."""
    dataset = trained.sample.dataset
    columns = trained.sample.spec.data.columns or tuple(dataset.splits["train"].columns)
    columns = tuple(name for name in columns if not name.startswith(PREFIX))
    scheme = dataset.metadata.get("source_scheme", dataset.encoding)
    return TrainingCorpus(
        columns,
        dataset.task,
        dataset.encoding,
        None if dataset.encoding is None else str(scheme),
        trained.problem.tags,
        msgspec.convert(dataset.metadata.get("spelling", {}), Spelling),
        bool(dataset.metadata.get("conllu")),
    )


@dataclass(frozen=True)
class SavedTagger:
    """A tagger read from a file.

    corpus: None if the model was not saved by ``sslbench train``.
    features: what reads tokens that are dicts; None for texts.
    """

    tagger: Tagger
    corpus: TrainingCorpus | None
    features: DictFeatures | None = None

    def tag(self, corpus: Corpus) -> I32:
        """int32[N]: predicted codes into `tagger.labels`; a label column is ignored.

        UserError if the corpus lacks a column.
        """
        parts = [predict(self.tagger, shard) for shard in CorpusShards(corpus, _SHARD_TOKENS)]
        return np.concatenate([np.empty(0, np.int32), *parts])

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of `predict_proba`, in its order."""
        return tuple(self.tagger.labels)

    @property
    def columns(self) -> tuple[str, ...]:
        """What the tagger reads of a token, e.g. ("word", "pos")."""
        trained = ("word",) if self.corpus is None else self.corpus.columns
        return tuple(name for name in trained if name not in ("label", "_"))

    @lazy
    def needed(self) -> tuple[str, ...]:
        """The columns without which it cannot tag: ("word",) if the word is enough, else all."""
        if "word" not in self.columns or len(self.columns) == 1:
            return self.columns
        try:
            self.tag(corpus_of([["word"]], ["word"]))
        except UserError:  # a column is missing
            return self.columns
        return ("word",)

    def predict(self, sentences: Iterable[Iterable[Token]]) -> list[list[str]]:
        """A label for each token, in the scheme of the training file.

        sentences: any iterable of sentences, which is read once; a sentence is an iterable of
            tokens and may be empty; a token is a text, or a text for each of `columns`.
        UserError for anything else, with the numbers of sentence and token.
        """
        rows = self.reader.read(sentence_lists(sentences))
        full = [row for row in rows if row]
        few = self._few(full)
        if few is None:
            corpus = self.reader.corpus(full)
            texts = iter(self.texts(corpus, self.tag(corpus)))
        else:
            texts = iter(self.texts(Corpus({}, few.batch.offsets), few.viterbi()))
        return [list(islice(texts, len(row))) for row in rows]

    def predict_proba(self, sentences: Iterable[Iterable[Token]]) -> list[F64]:
        """Probability of each of `labels` for each token: float64[n, L] by sentence.

        sentences: as of `predict`. UserError also if the tagger of the method gives labels only.
        """
        rows = self.reader.read(sentence_lists(sentences))
        full = [row for row in rows if row]
        few = self._few(full)
        if few is None:
            marginals = predicted_marginals(self.tagger, self.reader.corpus(full))
        else:
            marginals = few.posterior(counted=False).node
        borders = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return [marginals[first:last] for first, last in pairwise(borders)]

    @property
    def reader(self) -> TokenReader:
        """What reads tokens."""
        return self.features or TextReader(self.columns)

    def _few(self, rows: Sequence[Sequence[Any]]) -> BatchPotentials | None:
        """The potentials of a few sentences; None for more, and for another tagger than a CRF."""
        if not 0 < sum(map(len, rows)) <= FEW or type(self.tagger) is not ChainCRF:
            return None
        encoder = self._quick_encoder
        if encoder is None:
            return None
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return quick_potentials(self.tagger, encoder, list(chain.from_iterable(rows)), offsets)

    @lazy
    def _quick_encoder(self) -> QuickEncoder | None:
        return quick_encoder(cast(ChainCRF, self.tagger), self.columns)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is made again in milliseconds."""
        made = ("_quick_encoder", "needed")
        return {name: value for name, value in vars(self).items() if name not in made}

    def texts(self, corpus: Corpus, codes: I32) -> list[str]:
        """The label of each token as text, in the scheme of the training file; codes: int32[N]."""
        trained, labels = self.corpus, self.tagger.labels
        if trained is None:
            return [labels[code] for code in codes.tolist()]
        if trained.scheme != trained.encoding:
            tagged = corpus.with_column("label", Column(Vocabulary(labels), codes))
            source, target = cast(Scheme, trained.encoding), cast(Scheme, trained.scheme)
            column = convert_labels(tagged, source, target).column("label")
            codes, labels = column.codes, column.vocabulary.strings
        written = list(map(trained.spelling.write, labels))
        return [written[code] for code in codes.tolist()]

    def counts(self, corpus: Corpus, codes: I32) -> tuple[SentenceCounts, bool]:
        """What metrics against the label column of the corpus are made of.

        Also returns whether the tagger has any of the labels of the column, which may have another
        scheme or spelling than the training file.

        codes: int32[N], the predictions. UserError if a label is no chunk tag and should be one.
        """
        trained = self.corpus or TrainingCorpus((), "tagging", None, None)
        if trained.encoding is not None:
            target = cast(Scheme, trained.encoding)
            corpus, source = in_known_spelling(corpus, trained.spelling, trained.scheme or target)
            if source != target:
                corpus = convert_labels(corpus, source, target)
        labels = set(corpus.column("label").vocabulary.strings)
        scores = score_labels(trained.task, trained.encoding, corpus, self.tagger, codes)
        return scores.counts, not labels.isdisjoint(self.tagger.labels)


def _dense_columns(metadata: dict[str, Any], plugins: Registry) -> Dense | None:
    """The function of the featurizer that makes dense columns; None for a model without them."""
    name = metadata.get("trained", {}).get("featurizer", "")
    if not _has_columns(metadata) or name.startswith(FILE_PREFIX):
        return None
    return cast(Dense | None, plugins.featurizer(name).load()().dense)


def _has_columns(metadata: Mapping[str, Any]) -> bool:
    """Whether a model, or a part of it, has weights for dense columns."""
    parts = [value for value in metadata.values() if isinstance(value, dict)]
    return bool(metadata.get("n_columns")) or any(map(_has_columns, parts))


def _restored(kind: str, arrays: Arrays, metadata: dict[str, Any], plugins: Registry) -> Tagger:
    """The tagger of a saved model; ``metadata["dense"]`` makes the dense columns."""
    if kind == FEATURED:
        learners = {name: plugins.learner(name).load() for name in metadata["learned"]}
        learned = learned_of(arrays, metadata, learners)
        inner, values = part_of(arrays, metadata, "tagger")
        values = {**values, "dense": joined_dense(metadata["dense"], tuple(learned.values()))}
        values[RESTORE] = metadata[RESTORE]
        tagger = _restored(str(metadata["tagger_kind"]), inner, values, plugins)
        return FeaturedTagger(tagger, learned)
    restore = _ENGINE_KINDS.get(kind)
    if restore is None:
        info = plugins.models.get(kind) if kind not in plugins.methods else None
        restore = (info or plugins.method(kind)).load().restore
    return cast(Tagger, restore(arrays, metadata))


def load_tagger(path: str | os.PathLike[str], plugins: Registry) -> SavedTagger:
    """Read a saved tagger; UserError if the file is damaged or the method is not installed."""
    kind, arrays, metadata = read_model(path)
    try:
        metadata["dense"] = _dense_columns(metadata, plugins)
        metadata[RESTORE] = lambda name: plugins.model(name).load().restore
        tagger = _restored(kind, arrays, metadata, plugins)
        if _CORPUS not in metadata:
            return SavedTagger(tagger, None)
        corpus = msgspec.convert(metadata[_CORPUS], TrainingCorpus)
        if corpus.tags is None:
            return SavedTagger(tagger, corpus)
        if len(corpus.tags) != len(tagger.labels):
            raise ValueError(f"{len(corpus.tags)} tags for {len(tagger.labels)} labels")
        return SavedTagger(DecodedTagger(tagger, corpus.tags), corpus)
    except UserError as error:
        message, hint = f"a model of {kind!r}: {error.message}", error.hint
        raise UserError(message, file=path, hint=hint) from error
    except Exception as error:  # restore() may raise anything on a damaged file
        message = f"the model cannot be restored: {type(error).__name__}: {error}"
        raise UserError(message, file=path, hint="train it again") from error


@dataclass(frozen=True)
class TrainedTagger(SavedTagger):
    """A tagger with the training that it comes from."""

    session: Session = field(repr=False, kw_only=True)
    trained: Trained = field(repr=False, kw_only=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tagger to a file, for `load_tagger`; UserError if the method cannot save it."""
        save_tagger(Path(path), self.trained, self.session.plugins, self.scores)

    @lazy
    def scores(self) -> dict[str, dict[str, float]]:
        """Metrics in [0, 1] on the splits "dev" and "test", where the data have them."""
        dataset, metrics = self.trained.sample.dataset, {}
        for name, corpus in dataset.splits.items():
            if name in ("dev", "test"):
                codes = predict(self.tagger, corpus)
                scores = score_labels(dataset.task, dataset.encoding, corpus, self.tagger, codes)
                metrics[name] = dict(scores.metrics)
        return metrics


def train_tagger(
    request: TrainRequest, notice: Callable[[str], None], *, quiet: bool = False
) -> TrainedTagger:
    """Train the one method of a request on its one dataset.

    notice: called with messages for the user.  quiet: no progress messages of the method.
    UserError for data, parameters or a method that do not fit.
    """
    if len(request.methods) != 1 or len(request.datasets) > 1:
        raise UserError("one method is trained on one dataset", hint="give one name of each")
    (task,) = plan(request.run_request(), store=None, notice=notice, cut=False)
    if task.skip_reason is not None:
        method, dataset = task.spec.method, task.spec.dataset
        raise UserError(
            f"{method} cannot be trained on {dataset}: it is {task.skip_reason}",
            hint=f"see sslbench show {method}",
        )
    session = Session.open(msgspec.structs.replace(task, quiet=quiet), registry())
    with session.clock.phase("load"):
        loaded = load_dataset(task, session.plugins)
    return _trained(session, Sample.of(task.spec, loaded))


def train_on(
    dataset: Dataset, method: LocalMethod, *, threads: int = 1, quiet: bool = True
) -> TrainedTagger:
    """Train a method on a dataset that is in memory, by the protocol of the method's spec."""
    task = RunTask(spec=method.spec, metric=dataset.metric, threads=threads, quiet=quiet)
    return _trained(Session.open(task, method.plugins, method), Sample.of(task.spec, dataset))


def _trained(session: Session, sample: Sample) -> TrainedTagger:
    trained = train(session, sample)
    spec, test = sample.spec, sample.dataset.splits.get("test")
    if spec.data.columns is not None:
        problem = trained.problem
        sizes = {"labeled": problem.labeled.n_sentences, "unlabeled": problem.unlabeled.n_sentences}
        found: dict[str, Any] = {"duplicates": {}}
        if test is not None:
            found["duplicates"] = duplicates(problem.labeled, problem.unlabeled, {"test": test})
            found["unseen_labels"] = unseen_labels(problem.labeled, test)
        sizes["test"] = 0 if test is None else test.n_sentences
        needs_text = not session.plugins.method(spec.method).baseline
        lines = audit_warnings(found, sizes, spec.method, needs_text)
        trained = replace(trained, warnings=(*trained.warnings, *lines), audit=found)
    return TrainedTagger(trained.tagger, training_corpus(trained), session=session, trained=trained)
