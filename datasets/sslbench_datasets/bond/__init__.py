"""Names in Wikipedia and in tweets, with the text of BOND."""
