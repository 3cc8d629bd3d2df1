"""The page: one HTML file with its style, script and pictures inside."""
