"""Graph-based posterior regularization and its baselines (He et al. 2013)."""
