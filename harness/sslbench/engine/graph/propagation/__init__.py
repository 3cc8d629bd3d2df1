"""Label propagation on a graph."""
