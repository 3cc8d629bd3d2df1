"""Suites: which runs a board consists of, what they cost, in which order they are made."""
