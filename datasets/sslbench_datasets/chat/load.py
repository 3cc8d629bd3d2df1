"""``nps_chat``: part-of-speech tags of chat posts.

Source: E. N. Forsyth and C. H. Martell, Lexical and discourse analysis of online chat dialog, 2007.
The tags are those of the Penn Treebank; ^ before a tag marks a misspelled word.
"""

from __future__ import annotations

from xml.parsers import expat

from sslbench.engine.corpus import Corpus, Vocabulary, read_bytes
from sslbench.engine.corpus.files import COPY_AGAIN, Source, source_name
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.chat.info import COUNTS, NPS_CHAT, SESSIONS
from sslbench_datasets.loading import SIZE, DocumentOptions, parse_options

Token = tuple[str, str]

# The tag of a word that has none in the file.
_TAG_OF = {"!": "."}


def load(home: DataHome, **options: object) -> Dataset:
    """Read the posts; options are those of `DocumentOptions`.

    UserError for a bad option, a missing or malformed file or unexpected counts.
    """
    settings = parse_options("nps_chat", options, DocumentOptions)
    path = home.path(NPS_CHAT)
    vocabularies: dict[str, Vocabulary] = {}
    splits = {}
    for split, sessions in SESSIONS.items():
        columns: dict[str, list[list[str]]] = {"word": [], "label": []}
        if settings.documents:
            columns["document"] = []
        for session in sessions:
            for post in read_posts((path, f"nps_chat/{session}.xml")):
                columns["word"].append([word for word, _ in post])
                columns["label"].append([tag for _, tag in post])
                if settings.documents:
                    columns["document"].append([session.partition("_")[0]] * len(post))
        splits[split] = Corpus.from_sentences(columns, vocabularies)
    SIZE.check(splits, COUNTS, dict.fromkeys(splits, path))
    return Dataset(
        name="nps_chat",
        task="tagging",
        metric="accuracy",
        encoding=None,
        splits=splits,
        metadata={"sha256": NPS_CHAT.sha256},
    )


def read_posts(source: Source) -> list[list[Token]]:
    """Word and tag of the tokens of each post that has tokens.

    White space inside of a word is left out, and so is a token without word and tag. UserError with
    the line for what is not XML, a document type, a token outside of a post, a word without tag and
    a tag without word; UserError for a file without posts.
    """
    posts: list[list[Token]] = []
    inside = False
    parser = expat.ParserCreate("utf-8")

    def refuse(*_: object) -> None:
        raise _error(source, parser.CurrentLineNumber, "a document type is not expected")

    def start(element: str, attributes: dict[str, str]) -> None:
        nonlocal inside
        if element == "Post":
            posts.append([])
            inside = True
        elif element == "t":
            if not inside:
                raise _error(source, parser.CurrentLineNumber, "a token outside of a post")
            posts[-1].extend(_token(attributes, source, parser.CurrentLineNumber))

    def end(element: str) -> None:
        nonlocal inside
        inside = inside and element != "Post"

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(read_bytes(source), True)
    except expat.ExpatError as error:
        message = f"not XML: {expat.ErrorString(error.code)}"
        raise _error(source, error.lineno, message) from None
    full = [post for post in posts if post]
    if not full:
        raise UserError("no post in the file", file=source_name(source), hint=COPY_AGAIN)
    return full


def _token(attributes: dict[str, str], source: Source, line: int) -> list[Token]:
    """The token, or none if word and tag are empty."""
    word = "".join(attributes.get("word", "").split())
    tag = attributes.get("pos", "").strip() or _TAG_OF.get(word, "")
    if bool(word) != bool(tag):
        raise _error(source, line, f"word {word!r} with the tag {tag!r}: one of them is missing")
    return [(word, tag)] if word else []


def _error(source: Source, line: int, message: str) -> UserError:
    return UserError(message, file=source_name(source), line=line, hint=COPY_AGAIN)
