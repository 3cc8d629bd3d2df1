"""Whether a method has looked at the labels of development sentences, which counts as tuning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any


@dataclass
class DevLabels:
    """Whether a method has read development sentences with their labels."""

    seen: bool = False


class HoldsDev:
    """An object whose attribute ``dev`` has development sentences with labels, or is None.

    Reading it is noted in `dev_labels`; `unseen` reads it for the harness.
    """

    dev_labels: DevLabels

    if not TYPE_CHECKING:  # mypy would take every missing attribute for Any

        def __getattribute__(self, name: str) -> Any:
            value = super().__getattribute__(name)
            if name == "dev" and value is not None:
                self.dev_labels.seen = True
            return value


def unseen(holder: HoldsDev) -> Any:
    """Return the attribute ``dev`` without the note: the harness shows it to no method."""
    return vars(holder)["dev"]
