"""Universal Dependencies tagging."""
