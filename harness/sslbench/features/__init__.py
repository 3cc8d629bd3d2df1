"""Features: templates over text columns, symbol streams, attribute indices."""

from sslbench.features.crfpp import load_featurizer, load_template_file
from sslbench.features.derived import coded_column, word_type
from sslbench.features.index import AttributeIndex, Attributes, TemplateFeaturizer
from sslbench.features.streams import StreamCodes, Streams, SymbolRows
from sslbench.features.templates import Atom, Template, load_templates

__all__ = [
    "Atom",
    "AttributeIndex",
    "Attributes",
    "StreamCodes",
    "Streams",
    "SymbolRows",
    "Template",
    "TemplateFeaturizer",
    "coded_column",
    "load_featurizer",
    "load_template_file",
    "load_templates",
    "word_type",
]
