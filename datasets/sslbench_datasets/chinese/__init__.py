"""Chinese Universal Dependencies and bakeoff corpora."""
