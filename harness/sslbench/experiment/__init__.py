"""Experiments: datasets, protocols, problems, tuning, runs and their records."""
