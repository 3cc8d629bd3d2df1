"""Experiments: problems, protocols, runs and their records."""
