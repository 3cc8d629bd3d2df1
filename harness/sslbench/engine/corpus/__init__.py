"""Corpora as coded columns: CoNLL files, chunk encodings, label constraints and codecs, shards."""

from sslbench.engine.corpus.codecs import LabelCodec, PreviousType
from sslbench.engine.corpus.columns import (
    Column,
    Corpus,
    Derived,
    Vocabulary,
    first_tokens,
    sentence_ids,
)
from sslbench.engine.corpus.conll import read_conll
from sslbench.engine.corpus.conllu import read_conllu
from sslbench.engine.corpus.constraints import LabelConstraint, made_of
from sslbench.engine.corpus.encodings import (
    SCHEMES,
    Scheme,
    Task,
    convert_labels,
    detect_scheme,
    split_tag,
    tag_fits,
)
from sslbench.engine.corpus.files import RawBytes, numbered_lines, read_bytes, read_text
from sslbench.engine.corpus.shards import (
    ChainedShards,
    CorpusShards,
    HeadShards,
    HeadTokens,
    Shards,
    StoredShards,
    write_shards,
)

__all__ = [
    "SCHEMES",
    "ChainedShards",
    "Column",
    "Corpus",
    "CorpusShards",
    "Derived",
    "HeadShards",
    "HeadTokens",
    "LabelCodec",
    "LabelConstraint",
    "PreviousType",
    "RawBytes",
    "Scheme",
    "Shards",
    "StoredShards",
    "Task",
    "Vocabulary",
    "convert_labels",
    "detect_scheme",
    "first_tokens",
    "made_of",
    "numbered_lines",
    "read_bytes",
    "read_conll",
    "read_conllu",
    "read_text",
    "sentence_ids",
    "split_tag",
    "tag_fits",
    "write_shards",
]
