"""Numba kernels of the engine: flat arrays in, flat arrays out, no Python objects.

Every kernel is ``nogil`` and free of ``fastmath`` (which would license ignoring -inf).  A kernel
that sums does so in an order that is fixed by the data, never by the number of threads.
"""
