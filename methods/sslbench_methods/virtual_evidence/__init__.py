"""Virtual evidence (Zeng et al. 2013)."""
