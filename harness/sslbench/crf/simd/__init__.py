"""Numba extensions: vector registers and operations on rows of labels."""
