"""Reports: leaderboards, significance, learning curves. Pure functions of run records."""
