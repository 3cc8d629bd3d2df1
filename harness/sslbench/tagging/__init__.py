"""Use a saved tagger on text: raw text, results for each sentence, output formats."""
