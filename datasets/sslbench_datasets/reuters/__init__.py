"""Reuters newswire, the unlabeled text of English newswire."""
