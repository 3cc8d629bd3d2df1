"""The code of a run's plugins in a process of its own, which has no hidden labels.

`MethodProcess` is the side of the run, `server` the side of the plugins.
"""
