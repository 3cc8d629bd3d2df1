"""Named entities: CoNLL-2002 and CoNLL-2003."""
