"""Similarities of n-gram types that plugins register under names (`sslbench.SimilarityInfo`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sslbench.engine.errors import UserError
from sslbench.engine.graph.similarity import ContextSimilarity, Similarity
from sslbench.plugins.registered import registry


def registered_similarity(name: str, suffixes: Iterable[str] | None = None) -> Similarity:
    """Return the similarity registered under a name.

    suffixes: the list that its templates read; None: the similarity's own list.
    Raises UserError if there is none, it cannot be imported, it is not a `Similarity`, or it reads
    no list of suffixes and one is given.
    """
    similarity = registry().similarity(name).load()()
    if not isinstance(similarity, Similarity):
        raise UserError(
            f"similarity {name}: {type(similarity).__name__} is not a Similarity",
            hint="see sslbench.engine.graph.similarity.Similarity",
        )
    if suffixes is None:
        return similarity
    if not isinstance(similarity, ContextSimilarity) or not similarity.templates.reads("suffix"):
        raise UserError(f"similarity {name} reads no list of suffixes", hint="leave out suffixes")
    return replace(similarity, suffixes=frozenset(suffixes))
