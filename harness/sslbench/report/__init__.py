"""Reports, pure functions of run records: leaderboards, paired tests, learning curves, errors."""
