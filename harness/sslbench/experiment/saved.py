"""Taggers that are kept: saving what was trained, and using it on new text."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from sslbench.corpus import Column, Corpus, CorpusShards, Scheme, Vocabulary, convert_labels
from sslbench.crf import ChainCRF, add_facts, read_model
from sslbench.errors import UserError
from sslbench.experiment.problem import DecodedTagger, Tagger
from sslbench.experiment.record import jsonable
from sslbench.experiment.training import RunSetup, Trained, predict, score_labels
from sslbench.plugins import Registry
from sslbench.types import I32

#: kinds of saved models that belong to no method; the others bear the name of theirs
_ENGINE_KINDS = {"chain_crf": ChainCRF.from_arrays}
_CORPUS = "corpus"
_SHARD_TOKENS = 2**18  # tagged at a time: memory does not grow with the file


class CorpusFacts(msgspec.Struct, frozen=True):
    """What a tagger was trained on, as far as its use depends on it.

    columns: of the training file, in its order ("_" = left out).  task, encoding: as in `Problem`.
    scheme: of the label column of the file, which `encoding` was made from; None for plain tags.
    tags: of each label of the model, when a codec's labels are in their place.
    """

    columns: tuple[str, ...]
    task: str
    encoding: str | None
    scheme: str | None
    tags: tuple[str, ...] | None = None


def save_tagger(path: Path, setup: RunSetup, trained: Trained) -> None:
    """Write a trained tagger with what `load_tagger` needs; the file appears whole or not at all.

    UserError when the tagger has no ``save``, or what it saves cannot be read back.
    """
    spec = setup.spec
    trouble = f"method {spec.method} cannot save its tagger"
    save: Callable[[str], None] | None = getattr(_model(trained.tagger), "save", None)
    if save is None:
        raise UserError(f"{trouble}: what its fit() returns has no save()")
    facts = {
        _CORPUS: msgspec.to_builtins(_facts(setup, trained)),
        "trained": {**msgspec.to_builtins(spec), "params": msgspec.to_builtins(trained.params)},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".saving-") as folder:
        file = os.path.join(folder, "model")
        save(file)
        try:
            add_facts(file, cast(dict[str, Any], jsonable(facts)))
            load_tagger(file, setup.plugins)
        except UserError as error:
            raise UserError(f"{trouble}: {error.message}", hint="see docs/plugins.md") from error
        os.replace(file, path)


def _model(tagger: Tagger) -> Tagger:
    return tagger.tagger if isinstance(tagger, DecodedTagger) else tagger


def _facts(setup: RunSetup, trained: Trained) -> CorpusFacts:
    dataset = setup.dataset
    columns = setup.spec.data.columns or tuple(dataset.splits["train"].columns)
    scheme = dataset.metadata.get("source_scheme", dataset.encoding)
    return CorpusFacts(
        columns,
        dataset.task,
        dataset.encoding,
        None if dataset.encoding is None else str(scheme),
        trained.problem.tags,
    )


@dataclass(frozen=True)
class SavedTagger:
    """A tagger read back; `corpus` is None for a model that was not saved by ``sslbench train``."""

    tagger: Tagger
    corpus: CorpusFacts | None

    def tag(self, corpus: Corpus) -> I32:
        """int32[N]: codes into `tagger.labels`; a label column is not looked at. UserError when the
        corpus lacks a column.
        """
        parts = [predict(self.tagger, shard) for shard in CorpusShards(corpus, _SHARD_TOKENS)]
        return np.concatenate([np.empty(0, np.int32), *parts])

    def texts(self, corpus: Corpus, codes: I32) -> list[str]:
        """The labels as text, in the scheme of the training file."""
        column = Column(Vocabulary(self.tagger.labels), codes)
        facts = self.corpus
        if facts is not None and facts.scheme != facts.encoding:
            tagged = corpus.with_column("label", column)
            source, target = cast(Scheme, facts.encoding), cast(Scheme, facts.scheme)
            column = convert_labels(tagged, source, target).column("label")
        return column.strings()

    def metrics(self, corpus: Corpus, codes: I32) -> dict[str, float]:
        """Scores against the corpus's own label column, which is in the scheme of training.

        UserError when a label does not fit that scheme, or the tagger knows none of them.
        """
        facts = self.corpus or CorpusFacts((), "tagging", None, None)
        if facts.scheme != facts.encoding:
            source, target = cast(Scheme, facts.scheme), cast(Scheme, facts.encoding)
            corpus = convert_labels(corpus, source, target)
        if not set(corpus.column("label").vocabulary.strings) & set(self.tagger.labels):
            raise UserError("the tagger knows none of its labels")
        return score_labels(facts.task, facts.encoding, corpus, self.tagger, codes).metrics


def _dense_columns(facts: dict[str, Any], plugins: Registry) -> Any:
    """The function that makes the dense columns, from the installed featurizer that was used."""
    if not facts.get("n_columns"):
        return None
    return plugins.featurizer(facts["trained"]["featurizer"]).load()().dense


def load_tagger(path: str | os.PathLike[str], plugins: Registry) -> SavedTagger:
    """Read a saved tagger; UserError when the file is none, or its method is not installed."""
    kind, arrays, facts = read_model(path)
    restore = _ENGINE_KINDS.get(kind)
    try:
        if restore is None:
            restore = plugins.method(kind).load().restore
        facts["dense"] = _dense_columns(facts, plugins)
        tagger: Tagger = restore(arrays, facts)
        if _CORPUS not in facts:
            return SavedTagger(tagger, None)
        corpus = msgspec.convert(facts[_CORPUS], CorpusFacts)
        if corpus.tags is None:
            return SavedTagger(tagger, corpus)
        if len(corpus.tags) != len(tagger.labels):
            raise ValueError(f"{len(corpus.tags)} tags for {len(tagger.labels)} labels")
        return SavedTagger(DecodedTagger(tagger, corpus.tags), corpus)
    except UserError as error:
        raise UserError(
            f"a model of {kind!r}: {error.message}", file=path, hint=error.hint
        ) from error
    except Exception as error:  # whatever a method's restore() meets in a damaged file
        raise UserError(
            f"the model cannot be restored: {type(error).__name__}: {error}",
            file=path,
            hint="train it again",
        ) from error
