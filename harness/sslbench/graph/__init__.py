"""Similarity graphs over n-gram types, and what is spread over them."""
