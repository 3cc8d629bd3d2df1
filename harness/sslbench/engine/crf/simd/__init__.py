"""Numba extensions: vector registers of eight numbers, and operations on rows of labels."""
