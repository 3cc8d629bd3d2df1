"""JESS-CM (Suzuki & Isozaki 2008)."""
