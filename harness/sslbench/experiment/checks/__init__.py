"""Checks of a run: audit, guard, convergence, replays."""
