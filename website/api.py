"""The pages of the API reference: what users and authors of plugins import."""

from __future__ import annotations

_NAMES: dict[str, tuple[str, tuple[str, ...]]] = {
    "api/python.md": (
        "Functions and estimators",
        ("sslbench.api", "sslbench.sklearn"),
    ),
    "api/results.md": (
        "Taggers and records",
        (
            "sslbench.experiment.run.saved.SavedTagger",
            "sslbench.experiment.run.train_one.TrainedTagger",
            "sslbench.experiment.records.record.RunRecord",
            "sslbench.report.two_runs.RunComparison",
            "sslbench.engine.errors.UserError",
        ),
    ),
    "api/methods.md": (
        "For methods",
        (
            "sslbench.method",
            "sslbench.experiment.inputs.problem.Problem",
            "sslbench.experiment.inputs.problem.Tagger",
            "sslbench.experiment.context.context.RunContext",
            "sslbench.experiment.planning.space.SearchAxis",
        ),
    ),
    "api/engine.md": ("The engine", ("sslbench.engine.crf",)),
    "api/text.md": (
        "Corpora, features, datasets",
        ("sslbench.engine.corpus", "sslbench.engine.features", "sslbench.experiment.data.Dataset"),
    ),
    "api/graph.md": ("Graphs", ("sslbench.engine.graph",)),
    "api/plugins.md": (
        "Registrations",
        ("sslbench.plugins.registrations", "sslbench.plugins.hooks"),
    ),
}

#: text of each page by its path
PAGES = {
    path: f"# {title}\n\n" + "\n\n".join(f"::: {name}" for name in names) + "\n"
    for path, (title, names) in _NAMES.items()
}
