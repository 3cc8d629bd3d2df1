"""Methods that learn from weak labels (docs/weak.md)."""
