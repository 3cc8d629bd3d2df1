"""Template sets and dense columns."""
