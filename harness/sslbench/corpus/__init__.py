"""Columnar sequences: coded columns, chunk encodings, rules, reading CoNLL files, sharded text."""

from sslbench.corpus.codecs import LabelCodec, PreviousType
from sslbench.corpus.columns import Column, Corpus, Derived, Vocabulary, first_tokens, sentence_ids
from sslbench.corpus.conll import read_conll
from sslbench.corpus.constraints import LabelConstraint, made_of
from sslbench.corpus.encodings import (
    SCHEMES,
    TASKS,
    Scheme,
    Span,
    Task,
    convert_labels,
    detect_scheme,
    from_spans,
    spans_of,
    split_tag,
    tag_fits,
    to_iob2,
)
from sslbench.corpus.files import RawBytes, read_bytes
from sslbench.corpus.shards import (
    ChainedShards,
    CorpusShards,
    HeadShards,
    Shards,
    StoredShards,
    head,
    write_shards,
)

__all__ = [
    "SCHEMES",
    "TASKS",
    "ChainedShards",
    "Column",
    "Corpus",
    "CorpusShards",
    "Derived",
    "HeadShards",
    "LabelCodec",
    "LabelConstraint",
    "PreviousType",
    "RawBytes",
    "Scheme",
    "Shards",
    "Span",
    "StoredShards",
    "Task",
    "Vocabulary",
    "convert_labels",
    "detect_scheme",
    "first_tokens",
    "from_spans",
    "head",
    "made_of",
    "read_bytes",
    "read_conll",
    "sentence_ids",
    "spans_of",
    "split_tag",
    "tag_fits",
    "to_iob2",
    "write_shards",
]
