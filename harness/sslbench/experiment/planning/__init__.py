"""From a request to runs: parameters, settings, search spaces."""
