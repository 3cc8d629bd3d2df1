"""Compiled loops over vertices and edges. Rows of a graph are independent: no sum is shared."""
