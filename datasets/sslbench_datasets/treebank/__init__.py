"""Wall Street Journal tagging."""
