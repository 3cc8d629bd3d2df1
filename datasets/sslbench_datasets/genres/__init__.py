"""Part-of-speech tags of corpora that have genres."""
