"""Self-training with labels of a graph as lift over base rates."""
