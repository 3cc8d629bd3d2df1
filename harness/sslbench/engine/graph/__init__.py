"""Graphs of similar n-gram types: vertices, similarities, neighbors, propagation."""

from sslbench.engine.graph.build import Graph, build_graph
from sslbench.engine.graph.lookup import NgramLookup, NgramScores
from sslbench.engine.graph.neighbors import NeighborLists, nearest
from sslbench.engine.graph.options import GraphOptions
from sslbench.engine.graph.propagation.harmonic import harmonic, harmonic_descent
from sslbench.engine.graph.propagation.quadratic import propagate, propagate_optimum, roughness
from sslbench.engine.graph.similarity import ContextSimilarity, Similarity
from sslbench.engine.graph.templates import ContextTemplate, TemplateSet
from sslbench.engine.graph.tokens import empirical, type_means
from sslbench.engine.graph.vertices import Vertices, ngram_vertices

__all__ = [
    "ContextSimilarity",
    "ContextTemplate",
    "Graph",
    "GraphOptions",
    "NeighborLists",
    "NgramLookup",
    "NgramScores",
    "Similarity",
    "TemplateSet",
    "Vertices",
    "build_graph",
    "empirical",
    "harmonic",
    "harmonic_descent",
    "nearest",
    "ngram_vertices",
    "propagate",
    "propagate_optimum",
    "roughness",
    "type_means",
]
