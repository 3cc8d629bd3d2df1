"""A generated language."""
