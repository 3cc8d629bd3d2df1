"""Compiled kernels: their options, their cache, their threads."""
