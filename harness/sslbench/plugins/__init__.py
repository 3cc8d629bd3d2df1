"""Plugins: entry points, hooks, registrations, the registry."""

from sslbench.plugins.registered import Registry, registry

__all__ = ["Registry", "registry"]
