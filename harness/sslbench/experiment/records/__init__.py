"""Run records: their schema, their checks, the store."""
