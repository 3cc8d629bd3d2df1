"""CoNLL-2000 chunking."""
