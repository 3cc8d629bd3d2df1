"""``python -m sslbench``."""

from __future__ import annotations

from sslbench.cli import main

if __name__ == "__main__":
    main()
