"""Features: templates over text columns, symbol streams, attribute indices."""

from sslbench.engine.features.crfpp import load_featurizer, load_template_file
from sslbench.engine.features.derived import coded_column, word_type
from sslbench.engine.features.index import AttributeIndex, Attributes, TemplateFeaturizer
from sslbench.engine.features.streams import StreamCodes, Streams, SymbolRows
from sslbench.engine.features.templates import Atom, Template, load_templates

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
