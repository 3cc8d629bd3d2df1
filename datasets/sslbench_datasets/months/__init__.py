"""CoNLL-2003 with all of Reuters-21578, or one of its months, as unlabeled text."""
