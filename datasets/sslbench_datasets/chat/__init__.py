"""Part-of-speech tags of chat posts."""
