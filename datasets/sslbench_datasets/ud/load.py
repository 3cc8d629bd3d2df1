"""``ud_da`` to ``ud_sv``: part-of-speech tagging with 12 universal tags in ten languages.

Set-up of He et al. (2013): 100 labeled sentences, the rest of the text without labels. Text: ten
treebanks of Universal Dependencies. The forms of syntactic words are the tokens.

Tags: S. Petrov, D. Das, R. McDonald, A universal part-of-speech tagset, LREC 2012. The 17 tags of
column UPOS extend these 12 (J. Nivre et al., Universal Dependencies v1, LREC 2016). Each is mapped
back to the tag that it comes from, symbols and interjections to X. Petrov et al.'s maps from native
tags do not apply: column XPOS holds such tags in three of the ten treebanks only (German, English,
Italian), and the maps lack some of them.

Protocols. By default train is everything except the test file, and the harness draws the labeled
sample (inductive). The paper is transductive: it pools all files, cuts 1,000 random sentences into
ten disjoint sets of 100, and takes all sentences outside of a set as the unlabeled text and as the
test set. The option ``draws`` does the same with other random sets, one for each of the seeds 0 to
9, which come from the whole pool, since Greek alone has a train file here.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from sslbench.engine.corpus import (
    Column,
    Corpus,
    CorpusShards,
    LabelConstraint,
    Vocabulary,
    read_conllu,
)
from sslbench.engine.errors import UserError
from sslbench.engine.graph import forms
from sslbench.engine.types import Bool
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.loading import SIZE, check_draw, numbered, parse_options, read_splits
from sslbench_datasets.ud.info import TREEBANKS, Treebank

_IN_BOTH = ("NOUN", "VERB", "ADJ", "ADV", "PRON", "DET", "ADP", "NUM", "X")
UNIVERSAL_TAGS = (*_IN_BOTH, "CONJ", "PRT", ".")
# UPOS -> universal tag.
TAG_OF = {tag: tag for tag in _IN_BOTH} | {
    "PROPN": "NOUN",
    "AUX": "VERB",
    "CCONJ": "CONJ",
    "SCONJ": "CONJ",
    "PART": "PRT",
    "INTJ": "X",
    "SYM": "X",
    "PUNCT": ".",
}
N_DRAWS, DRAW_SENTENCES = 10, 100
PUNCTUATION = LabelConstraint("word", forms.PUNCTUATION, ".")
# Seed of the draws. Part of the protocol: changing it changes every labeled sample.
_DRAW_SEED = 0x48475431


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the ten datasets."""

    draws: Annotated[
        bool,
        Meta(
            description="train is one of ten sets of 100 sentences, set s for --seed s; all other"
            " sentences are test and, with --labeled all, the unlabeled text"
        ),
    ] = False
    size: Annotated[
        int, Meta(ge=1, description="sentences per set, for curves; the paper has 50 to 500")
    ] = DRAW_SENTENCES
    punct_constraint: Annotated[
        bool,
        Meta(
            description='tokens made of .,!?:; alone can only have the tag ".", for all methods, as'
            " in the program of the paper's authors"
        ),
    ] = False


def load_treebank(bank: Treebank, home: DataHome, *, seed: int = 0, **options: object) -> Dataset:
    """Read a treebank.

    UserError for a bad option, a seed without a draw, a missing or malformed file, or unexpected
    counts.
    """
    name = f"ud_{bank.code}"
    settings = parse_options(name, options, Options)
    draws = settings.draws
    if draws:
        check_draw(name, seed, N_DRAWS)
    read = partial(read_conllu, vocabularies={}, tags=TAG_OF)
    files = read_splits(home, bank.files, read, bank.counts, SIZE)
    labels = Vocabulary(UNIVERSAL_TAGS)
    files = {split: with_universal_tags(corpus, labels) for split, corpus in files.items()}
    ids = {}
    if draws:
        pool = Corpus.concatenate(list(files.values()))
        drawn = draw_of(pool.n_sentences, seed, settings.size)
        splits, ids = {"train": pool.select(drawn), "test": pool.select(~drawn)}, numbered(drawn)
    else:
        train = Corpus.concatenate([corpus for split, corpus in files.items() if split != "test"])
        splits = {"train": train, "test": files["test"]}
    return Dataset(
        name=name,
        task="tagging",
        metric="accuracy",
        encoding=None,
        splits=splits,
        external=partial(CorpusShards, splits["test"].drop("label")) if draws else None,
        transductive=draws,
        sentence_ids=ids,
        label_constraint=PUNCTUATION if settings.punct_constraint else None,
        metadata={"commit": bank.commit},
    )


def draw_of(n_sentences: int, draw: int, size: int = DRAW_SENTENCES) -> Bool:
    """bool[n_sentences]: the labeled set of number `draw`; UserError for too few sentences."""
    if (draw + 1) * size >= n_sentences:
        raise UserError(
            f"draw {draw} of {size} sentences needs more than {(draw + 1) * size} sentences,"
            f" but there are {n_sentences}",
            hint="give a smaller size or seed",
        )
    order = np.random.default_rng(_DRAW_SEED).permutation(n_sentences)
    train = np.zeros(n_sentences, dtype=np.bool_)
    train[order[draw * size : (draw + 1) * size]] = True
    return train


def with_universal_tags(corpus: Corpus, labels: Vocabulary) -> Corpus:
    """The corpus with the column label of 12 tags in place of the column upos."""
    upos = corpus.column("upos")
    # The vocabulary also has UPOS values of rows that are not words, such as "_".
    table = np.array([labels.lookup(TAG_OF.get(tag, "")) for tag in upos.vocabulary.strings])
    return corpus.drop("upos").with_column("label", Column(labels, table[upos.codes]))


# ``load.da(home, **options)`` and so on: the loaders that the registrations name.
load = SimpleNamespace(**{bank.code: partial(load_treebank, bank) for bank in TREEBANKS})
