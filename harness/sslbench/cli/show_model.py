"""``sslbench show MODEL``: what a saved tagger is."""

from __future__ import annotations

from typing import Any

import numpy as np

from sslbench.cli.text import echo, labeled, percentages, table
from sslbench.engine.crf import ChainCRF, read_model
from sslbench.experiment.run.saved import load_tagger
from sslbench.plugins import Registry

LARGEST = 5  # weights shown of each label


def show_model(path: str, plugins: Registry) -> None:
    """Write the method, data, scores, labels and largest weights of a saved tagger.

    UserError if the file is no saved tagger, or its method is not installed.
    """
    kind, _, metadata = read_model(path)
    saved = load_tagger(path, plugins)
    trained = metadata.get("trained", {})
    other = metadata.get("in_place_of")  # the guard has found the method to be no better
    name = f"{other['tagger']}, in place of {other['method']}" if other else None
    echo(f"tagger {path}: {name or trained.get('method', kind)}")
    if saved.corpus is not None:
        encoding = f", labels in {saved.corpus.scheme}" if saved.corpus.scheme else ""
        echo(labeled("task", saved.corpus.task + encoding))
        echo(labeled("reads", ", ".join(saved.columns)))
    if trained:
        _show_training(trained, with_parameters=other is None)
    for split, metrics in metadata.get("scores", {}).items():
        echo(labeled(f"on {split}", percentages(metrics)))
    echo(labeled("labels", ", ".join(saved.labels)))
    inner = saved.tagger
    while hasattr(inner, "tagger"):
        inner = inner.tagger
    crf = getattr(inner, "crf", inner)
    if isinstance(crf, ChainCRF):
        _show_weights(crf)


def _show_training(trained: dict[str, Any], *, with_parameters: bool) -> None:
    protocol = trained["protocol"]
    echo(labeled("trained on", f"{trained['dataset']}, labeled {protocol['labeled']}"))
    features = "+".join([trained["featurizer"], *trained.get("text_features", {})])
    echo(labeled("features", f"{features}, model {trained['model']}"))
    if not with_parameters:  # those of the method are not those of the tagger
        return
    values = [f"{name}={value}" for name, value in sorted(trained["params"].items())]
    own = trained.get("model_params", {})
    values += [f"{trained['model']}.{name}={value}" for name, value in sorted(own.items())]
    echo(labeled("parameters", " ".join(values)))


def _show_weights(crf: ChainCRF) -> None:
    n_attributes = crf.index.n_node + crf.index.n_edge
    echo(labeled("weights", f"{crf.layout.size:,} of {n_attributes:,} attributes"))
    attribute, label, weight = crf.layout.state_weights(crf.weights)
    rows = []
    for code, name in enumerate(crf.labels):
        weights_of = np.flatnonzero(label == code)
        largest = weights_of[np.argsort(-weight[weights_of], kind="stable")[:LARGEST]]
        texts = (f"{crf.index.node_text(int(attribute[i]))} {weight[i]:+.2f}" for i in largest)
        rows.append((name, "   ".join(texts)))
    echo(f"  largest weights of each label\n{table(rows, indent='    ')}")
