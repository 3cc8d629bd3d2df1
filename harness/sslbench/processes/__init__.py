"""Child processes: starting, limiting and ending them."""
