"""``ud_da`` to ``ud_sv``: part-of-speech tagging with 12 universal tags in ten languages.

Set-up: He et al. (2013): 100 labeled sentences, the rest of the text without labels. Text: ten
treebanks of Universal Dependencies. The forms of syntactic words are the tokens.

Tags: S. Petrov, D. Das, R. McDonald, A universal part-of-speech tagset, LREC 2012. The 17 tags of
column UPOS grew out of these 12 (J. Nivre et al., Universal Dependencies v1, LREC 2016); each goes
back to the tag that it came from, symbols and interjections to X. Petrov et al.'s maps from native
tags are not used: column XPOS holds such tags in three of the ten treebanks only (German, English,
Italian), and not all of those are in the maps.

Protocols. By default train is all that upstream did not call test, test is its test file, and the
harness draws the labeled sample: inductive. The paper is transductive: all files are pooled, 1,000
random sentences are cut into ten disjoint sets of 100, and all sentences outside the set are both
the unlabeled text and the test. The option ``draw`` gives this; its random sets are not the
paper's, and come from the whole pool, since only Greek has a train file here.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from sslbench.corpus import Column, Corpus, CorpusShards, LabelConstraint, Vocabulary
from sslbench.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench.graph import forms
from sslbench_datasets.checks import check_sizes, chosen
from sslbench_datasets.ud.conllu import read_conllu
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
# Part of the protocol: changing it changes every labeled sample.
_DRAW_STREAM = 0x48475431


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the ten data sets."""

    draw: Annotated[
        Annotated[int, Meta(ge=0, lt=N_DRAWS)] | None,
        Meta(
            description="which of ten sets of 100 sentences is train; all other sentences are test"
            " and, with --labeled all, the unlabeled text"
        ),
    ] = None
    size: Annotated[
        int, Meta(ge=1, description="sentences of such a set, for curves; the paper has 50 to 500")
    ] = DRAW_SENTENCES
    punct_constraint: Annotated[
        bool,
        Meta(
            description='tokens made of .,!?:; alone can only have the tag ".", for all methods, as'
            " in the program of the paper's authors"
        ),
    ] = False


def load_treebank(bank: Treebank, home: DataHome, **options: object) -> Dataset:
    """Read a treebank.

    UserError for an option outside its bounds, for what `read_conllu` refuses, when there is no
    file, or when its (sentences, tokens) are not upstream's.
    """
    name = f"ud_{bank.code}"
    asked = chosen(name, options, Options)
    draw = asked.draw
    paths = {split: home.path(file) for split, file in bank.files.items()}
    vocabularies: dict[str, Vocabulary] = {}
    labels = Vocabulary(UNIVERSAL_TAGS)
    files = {
        split: universal(read_conllu(path, vocabularies, tags=TAG_OF), labels)
        for split, path in paths.items()
    }
    sizes = {split: (facts.sentences, facts.words) for split, facts in bank.facts.items()}
    check_sizes(files, sizes, paths)
    rest = Corpus.concatenate([corpus for split, corpus in files.items() if split != "test"])
    splits = {"train": rest, "test": files["test"]}
    if draw is not None:
        splits = cut_draw(Corpus.concatenate(list(files.values())), draw, asked.size)
    raw = splits["test"].drop("label")
    return Dataset(
        name=name,
        task="tagging",
        metric="accuracy",
        encoding=None,
        splits=splits,
        external=None if draw is None else partial(CorpusShards, raw),
        transductive=draw is not None,
        label_constraint=PUNCTUATION if asked.punct_constraint else None,
        metadata={"commit": bank.commit},
    )


def cut_draw(pool: Corpus, draw: int, size: int = DRAW_SENTENCES) -> dict[str, Corpus]:
    """The labeled set of that number as train, all other sentences of the pool as test.

    UserError when the pool has no such set and something left.
    """
    if (draw + 1) * size >= pool.n_sentences:
        raise UserError(
            f"draw={draw} of {size} sentences, but there are {pool.n_sentences}",
            hint="take a smaller size or draw",
        )
    order = np.random.default_rng(_DRAW_STREAM).permutation(pool.n_sentences)
    train = np.zeros(pool.n_sentences, dtype=np.bool_)
    train[order[draw * size : (draw + 1) * size]] = True
    return {"train": pool.select(train), "test": pool.select(~train)}


def universal(corpus: Corpus, labels: Vocabulary) -> Corpus:
    """The corpus with its column upos rewritten into the column label of 12 tags."""
    upos = corpus.column("upos")
    # "_" and the like are in the vocabulary through rows that are no words.
    table = np.array([labels.lookup(TAG_OF.get(tag, "")) for tag in upos.vocabulary.strings])
    return corpus.drop("upos").with_column("label", Column(labels, table[upos.codes]))


# ``load.da(home, **options)`` and so on: one loader for each registration.
load = SimpleNamespace(**{bank.code: partial(load_treebank, bank) for bank in TREEBANKS})
