"""Execution of planned runs: in local processes, or on a dask cluster."""
