"""Posterior regularization with constraints of a file."""
