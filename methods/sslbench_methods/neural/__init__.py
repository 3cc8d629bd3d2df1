"""Neural sequence models: a chain on top of a network, trained by Adam."""
