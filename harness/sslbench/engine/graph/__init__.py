"""Similarity graphs over n-gram types, and what is propagated over them."""
