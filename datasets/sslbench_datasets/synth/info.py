"""Registration of ``synth``, a generated language."""

from __future__ import annotations

from sslbench import DatasetInfo

DATASETS: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        name="synth",
        summary="a generated language with a known Bayes-optimal accuracy; needs no file",
        reference="generator of sslbench (sslbench_datasets/synth/language.py)",
        target="sslbench_datasets.synth.load:load",
        licence="none needed: generated from a seed",
        task="tagging",
        family="synthetic",
        metric="accuracy",
        featurizer="pos47",
        protocol=(
            "train 400, dev 200, test 400 sentences; external text = 3,000 sentences; the record"
            " has the accuracy of posterior decoding under the generating model on test"
            " (bayes_accuracy)"
        ),
        options="sslbench_datasets.synth.load:Options",
    ),
)
