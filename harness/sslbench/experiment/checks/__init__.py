"""Checks of a run: audit, guard, convergence, forecasts, replays."""
