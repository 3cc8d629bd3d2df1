"""Models inside saved taggers: those of the engine, and those of plugins.

A tagger of a method is saved with the arrays of its model.  What it takes to read a model of a
plugin comes with the metadata: the reader of the file puts it there.
"""

from __future__ import annotations

from typing import Any

from sslbench.engine.checked import Saved
from sslbench.engine.crf.model import ChainCRF
from sslbench.engine.crf.sequence import SequenceModel
from sslbench.engine.types import Arrays

#: of a tagger: the kind of its model, if that is no `ChainCRF`
KIND = "model_kind"
#: put into the metadata by the reader of a file: a function from the kind of a model to what
#: restores it
RESTORE = "restore_model"


def saved_model(model: SequenceModel) -> Saved:
    """Return the arrays and metadata of a model, from which `restored_model` restores it."""
    arrays, metadata = model.arrays()
    if not isinstance(model, ChainCRF):
        metadata = {**metadata, KIND: model.kind}
    return arrays, metadata


def restored_model(arrays: Arrays, metadata: dict[str, Any]) -> SequenceModel:
    """Restore a model; ValueError when arrays and metadata do not fit together."""
    if KIND not in metadata:
        return ChainCRF.from_arrays(arrays, metadata)
    model: SequenceModel = metadata[RESTORE](str(metadata[KIND]))(arrays, metadata)
    return model
