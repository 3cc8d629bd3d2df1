"""Golden predictions of small runs: they force versions to be raised when predictions change."""
