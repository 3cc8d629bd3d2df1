"""The case of words by their document: two columns for features of named entities.

Headlines are in capitals, and the first word of a sentence has one anyway. How the same word is
written elsewhere in the document shows whether it is a name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from sslbench.engine.corpus import Corpus, Vocabulary

#: no evidence in the document
NONE = "none"
Words = Sequence[str]


def with_case(corpus: Corpus, vocabularies: dict[str, Vocabulary]) -> Corpus:
    """Add the columns ``case`` and ``cased``, made from the columns ``word`` and ``document``.

    case: how the word is most often written at the other places of its document that leave a
        choice: "lower", "title", "upper" or "mixed"; `NONE` if there are none.
    cased: the word; at a place without a choice, as it is most often written at those with one; in
        a headline without any, as a title.

    The first word of a sentence has no choice, nor have words of headlines: sentences of two
    letters or more that are all capitals. Labels are not read.

    vocabularies: vocabularies by column; they are extended.
    """
    sentences = zip(corpus.sentences("document"), corpus.sentences("word"), strict=True)
    case, cased = [], []
    for _, group in groupby(sentences, key=lambda sentence: sentence[0][:1]):
        document = Document([words for _, words in group])
        for sentence in document.sentences:
            pairs = list(document.restored(sentence))
            case.append([kind for kind, _ in pairs])
            cased.append([form for _, form in pairs])
    shared = {name: vocabularies.setdefault(name, Vocabulary()) for name in ("case", "cased")}
    made = Corpus.from_sentences({"case": case, "cased": cased}, shared)
    return Corpus({**corpus.columns, **made.columns}, corpus.offsets)


@dataclass
class Document:
    """The sentences of a document, and how its words are written where there is a choice.

    forms: spellings by the word in lower case.
    """

    sentences: list[Words]
    forms: dict[str, Counter[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.forms = defaultdict(Counter)
        for sentence in self.sentences:
            for word in () if is_headline(sentence) else sentence[1:]:
                self.forms[word.lower()][word] += 1

    def restored(self, sentence: Words) -> Iterator[tuple[str, str]]:
        """For each word its case elsewhere, and its form."""
        headline = is_headline(sentence)
        for place, word in enumerate(sentence):
            fixed = headline or place == 0
            form = self.usual(word, counted=not fixed)
            kind = NONE if form is None else kind_of(form)
            if fixed and form is not None:
                yield kind, form
            else:
                yield kind, word[:1] + word[1:].lower() if headline else word

    def usual(self, word: str, counted: bool) -> str | None:
        """How a word is most often written at other places, None if nowhere; of equals the first.

        counted: the word itself is one of `forms`, so that it has to be left out.
        """
        counts = dict(self.forms.get(word.lower(), {}))
        if counted:
            counts[word] -= 1
        best = max(counts, key=counts.__getitem__, default=None)
        return best if best is not None and counts[best] else None


def is_headline(sentence: Words) -> bool:
    """Whether all letters are capitals, and there are two or more."""
    letters = [character for word in sentence for character in word if character.isalpha()]
    return len(letters) > 1 and all(map(str.isupper, letters))


def kind_of(form: str) -> str:
    """The case of a form, `NONE` without letters."""
    if form.islower():
        return "lower"
    if form.isupper() and sum(map(str.isalpha, form)) > 1:
        return "upper"
    if form.istitle():
        return "title"
    return "mixed" if any(map(str.isalpha, form)) else NONE
