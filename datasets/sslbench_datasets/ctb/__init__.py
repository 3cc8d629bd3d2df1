"""Chinese Treebank 7."""
