"""The version of the engine: corpora, features, chains, graphs and their kernels."""

__all__ = ["VERSION"]

#: Raise it when a change of the engine moves predictions: `tests/canaries` shows when that is so.
#: Records of another version are stale.
VERSION = 1
