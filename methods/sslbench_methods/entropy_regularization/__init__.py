"""Entropy regularization (Jiao et al. 2006)."""
