"""Numbers of threads within a test."""

from __future__ import annotations

THREADS = [1, 2, 3, 5]
