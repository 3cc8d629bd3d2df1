"""Templates of context features.

A template reads the five tokens around the center of an n-gram, offsets -2 to 2, and gives one
feature per token: the tuple of the values of its atoms (docs/specs/graph.md, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

AtomKind: TypeAlias = Literal["form", "suffix", "ending1", "ending2", "ending3", "type"]


@dataclass(frozen=True)
class ContextAtom:
    """One value of a template.

    kind: "form" is the word in the feature form of the set; "suffix" its longest listed suffix, ""
        if none; "endingN" its last N characters, absent unless the word is longer; "type" the
        `forms.character_type` of the word.
    offset: in tokens from the center.
    """

    kind: AtomKind
    offset: int


@dataclass(frozen=True)
class ContextTemplate:
    """A conjunction of atoms; it gives no feature at tokens where an atom is absent."""

    name: str
    atoms: tuple[ContextAtom, ...]


@dataclass(frozen=True)
class TemplateSet:
    """Templates with the normal forms that they are used with.

    vertex_form, feature_form: names of normal forms of words (`forms.FORMS`); None = as they are.
    excluded_characters: tokens that consist of these characters alone have no vertex.
    """

    templates: tuple[ContextTemplate, ...]
    vertex_form: str | None = None
    feature_form: str | None = None
    excluded_characters: str = ""

    @property
    def reach(self) -> int:
        """The largest distance of an atom from the center."""
        return max(abs(atom.offset) for template in self.templates for atom in template.atoms)

    def reads(self, kind: AtomKind) -> bool:
        """Return whether any template has an atom of this kind."""
        return any(atom.kind == kind for template in self.templates for atom in template.atoms)


def atoms(kind: AtomKind, *offsets: int) -> tuple[ContextAtom, ...]:
    """Return atoms of one kind at several offsets."""
    return tuple(ContextAtom(kind, offset) for offset in offsets)


def words(name: str, *offsets: int) -> ContextTemplate:
    """Return the template of the words at these offsets."""
    return ContextTemplate(name, atoms("form", *offsets))
