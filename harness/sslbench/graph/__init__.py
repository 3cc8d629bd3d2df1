"""Similarity graphs over n-gram types, and the propagation of labels over them."""
