"""Context features of graph vertices: the template sets of three papers.

The context of a token is x1 x2 x3 x4 x5 with the token itself in the middle, x3.

SUBRAMANYA2010: Subramanya et al. (2010), table 1 ("Center Word" is printed x2).
HE2013: He et al. (2013); their w0 ... w4 are x1 ... x5.
ZENG2013: Zeng et al. (2013), table 2 ("Right Word + Left Context" is printed x1 x2 x3).
See docs/specs/graph.md, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sslbench.graph.forms import is_punctuation

Kind = Literal["form", "suffix", "tail1", "tail2", "tail3", "class"]


@dataclass(frozen=True)
class Atom:
    """One value in a template.

    kind: "form" is the word as features see it; "suffix" its longest listed suffix, "" if none;
        "tailN" its last N characters, absent if it has no more than those; "class" of characters.
    offset: in tokens from the center.
    """

    kind: Kind
    offset: int


@dataclass(frozen=True)
class GraphTemplate:
    """A conjunction of atoms; it fires once per token unless an atom is absent."""

    name: str
    atoms: tuple[Atom, ...]


@dataclass(frozen=True)
class GraphTemplates:
    """A template set with the normal forms that go with it.

    vertex_form, feature_form: normal forms of words, see `forms.FORMS`; None: as they are.
    excludes: words that are no vertices.
    """

    name: str
    templates: tuple[GraphTemplate, ...]
    vertex_form: str | None = None
    feature_form: str | None = None
    excludes: Callable[[str], bool] | None = None

    @property
    def reach(self) -> int:
        """The largest distance of an atom from the center."""
        return max(abs(atom.offset) for t in self.templates for atom in t.atoms)


def _atoms(kind: Kind, *places: int) -> tuple[Atom, ...]:
    return tuple(Atom(kind, place - 3) for place in places)


def _words(name: str, *places: int) -> GraphTemplate:
    return GraphTemplate(name, _atoms("form", *places))


_TRIGRAM_CONTEXTS = (
    _words("trigram + context", 1, 2, 3, 4, 5),
    _words("trigram", 2, 3, 4),
    _words("left context", 1, 2),
    _words("right context", 4, 5),
    _words("center word", 3),
    _words("trigram - center", 2, 4),
    _words("left word + right context", 2, 4, 5),
    _words("left context + right word", 1, 2, 4),
)

SUBRAMANYA2010 = GraphTemplates(
    "subramanya2010",
    (
        *_TRIGRAM_CONTEXTS,
        # HasSuffix is not defined in the paper: every ending of 1 to 3 characters of a longer word
        GraphTemplate("suffix of 1", _atoms("tail1", 3)),
        GraphTemplate("suffix of 2", _atoms("tail2", 3)),
        GraphTemplate("suffix of 3", _atoms("tail3", 3)),
    ),
)

HE2013 = GraphTemplates(
    "he2013",
    (
        _words("w12", 2, 3),
        _words("w13", 2, 4),
        _words("w23", 3, 4),
        _words("w2", 3),
        GraphTemplate("suffix(w3) w2", _atoms("suffix", 4) + _atoms("form", 3)),
        GraphTemplate("suffix(w1) w2", _atoms("suffix", 2) + _atoms("form", 3)),
        _words("w0134", 1, 2, 4, 5),
        _words("w012", 1, 2, 3),
        _words("w023", 1, 3, 4),
        _words("w024", 1, 3, 5),
        _words("w124", 2, 3, 5),
        _words("w234", 3, 4, 5),
        _words("w01", 1, 2),
        _words("w02", 1, 3),
        _words("w24", 3, 5),
        _words("w34", 4, 5),
    ),
    vertex_form="number",
    feature_form="lower_number",
    excludes=is_punctuation,
)

ZENG2013 = GraphTemplates(
    "zeng2013",
    (*_TRIGRAM_CONTEXTS, GraphTemplate("type of trigram", _atoms("class", 2, 3, 4))),
)

#: images are compared, not their contexts, see `letters`
LETTERS = GraphTemplates("letters", ())

TEMPLATE_SETS = {
    templates.name: templates for templates in (SUBRAMANYA2010, HE2013, ZENG2013, LETTERS)
}
