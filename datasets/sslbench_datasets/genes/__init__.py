"""Gene mentions."""
