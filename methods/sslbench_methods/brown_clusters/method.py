"""Brown clusters of the words of a text as features: prefixes of paths in a tree of clusters.

Brown et al. (1992): merge the two clusters whose merge loses least average mutual information of
neighboring words. Liang (2005) makes it O(V C^2 + T): the C most frequent words are clusters, each
further word is added as one and then two are merged, at last the C clusters are merged into a tree.
Miller et al. (2004) and Turian et al. (2010) use prefixes of a word's path as its features.

The information is that of the bigrams of the words that were added so far. Bigrams do not cross
borders of sentences.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from sslbench import Count, Problem, RunContext, SearchAxis, TrainingParams, doc
from sslbench.engine.features.words import WordFeatures
from sslbench.engine.types import Arrays
from sslbench_methods.brown_clusters import kernels
from sslbench_methods.on_text_features import OnTextFeatures
from sslbench_methods.shared import WIDE, WIDEST, TaskDefaults, by_task
from sslbench_methods.text_words import TextWords

Clusters = Annotated[int, doc("of words", ge=1, le=5_000)]
ClusterMinCount = Annotated[Count, doc("rarer words are in no cluster")]
Prefixes = Annotated[
    tuple[Annotated[int, msgspec.Meta(ge=1, le=10_000)], ...],
    doc("lengths of the prefixes of a path that are features"),
]
ClusterWindow = Annotated[int, doc("features of words up to so far away", ge=0, le=10)]
ClusterColumn = Annotated[str, doc("whose words are clustered")]


class BrownClusters:
    """Clusters of words by their neighbors."""

    class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """Parameters of the clusters and of their features."""

        clusters: Clusters = 320
        cluster_min_count: ClusterMinCount = 2
        prefixes: Prefixes = (4, 6, 10, 20)
        cluster_window: ClusterWindow = 2
        cluster_column: ClusterColumn = "word"

    def learn(self, problem: Problem, params: Params, run: RunContext) -> WordFeatures:
        """Cluster the words of the labeled and the unlabeled sentences."""
        text = TextWords.of(problem, params.cluster_column, params.cluster_min_count)
        paths = brown_paths(text, params.clusters)
        classes = {}
        for length in sorted(set(params.prefixes)):
            names, codes = np.unique([path[:length] for path in paths], return_inverse=True)
            classes[f"brown{length}"] = names.tolist(), codes.astype(np.int32)
        run.trace["words"], run.trace["clusters"] = len(text.words), len(set(paths))
        window = tuple(range(-params.cluster_window, params.cluster_window + 1))
        return WordFeatures(params.cluster_column, text.words, window, classes)

    @staticmethod
    def restore(arrays: Arrays, facts: dict[str, Any]) -> WordFeatures:
        """Return features of a saved tagger."""
        return WordFeatures.from_arrays(arrays, facts)


class BrownClustersCRF(OnTextFeatures):
    """A supervised CRF that reads the clusters."""

    name = "brown_clusters"
    learner = BrownClusters
    order_invariant = True

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Those of the training and of the clusters."""

        clusters: Clusters = 320
        cluster_min_count: ClusterMinCount = 2
        prefixes: Prefixes = (4, 6, 10, 20)
        cluster_window: ClusterWindow = 2
        cluster_column: ClusterColumn = "word"
        task_defaults: ClassVar[TaskDefaults] = by_task(WIDE, WIDE, {}, WIDEST)
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("clusters", (100, 320, 1000)),
            SearchAxis("cluster_min_count", low=1, high=20, log=True, integer=True),
        )


def bigrams_of(text: TextWords) -> kernels.Bigrams:
    """Return successors and predecessors of the words."""
    after = text.pairs(1)
    before = after.T.tocsr()
    parts = (after.indptr, after.indices, after.data, before.indptr, before.indices, before.data)
    return kernels.Bigrams(*(part.astype(np.int64) for part in parts))


def brown_paths(text: TextWords, clusters: int) -> list[str]:
    """Return the path of each word's cluster from the root of the tree, as a text of 0 and 1."""
    state = kernels.empty_state(len(text.words), min(clusters, len(text.words)))
    kernels.cluster_words(clusters, bigrams_of(text), state)
    cluster = state.cluster.copy()
    # by slot: its clusters of the end, the one with the most frequent word first
    members = {slot: [slot] for slot in dict.fromkeys(cluster.tolist())}
    rank = {slot: number for number, slot in enumerate(members)}
    path = dict.fromkeys(members, "")
    while len(members) > 1:
        pair = sorted(kernels.cheapest(state), key=rank.__getitem__)
        for bit, slot in enumerate(pair):
            for leaf in members[slot]:
                path[leaf] = f"{bit}{path[leaf]}"
        first, second = pair
        kernels.merge(second, first, state)
        members[first] += members.pop(second)
    return [path[slot] for slot in cluster.tolist()]
