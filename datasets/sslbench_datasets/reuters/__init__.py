"""Reuters newswire, the unlabeled text of conll00 and conll03."""
