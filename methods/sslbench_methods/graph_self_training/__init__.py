"""Graph-based self-training (Subramanya et al. 2010)."""
