"""Use of a saved tagger on text: raw text, what is told of each sentence, forms of output."""
