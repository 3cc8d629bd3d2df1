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
            "sslbench.experiment.saved.SavedTagger",
            "sslbench.experiment.train_one.TrainedTagger",
            "sslbench.experiment.record.RunRecord",
            "sslbench.report.two_runs.RunComparison",
            "sslbench.errors.UserError",
        ),
    ),
    "api/methods.md": (
        "For methods",
        (
            "sslbench.method",
            "sslbench.experiment.problem.Problem",
            "sslbench.experiment.problem.Tagger",
            "sslbench.experiment.context.RunContext",
            "sslbench.experiment.space.SearchAxis",
        ),
    ),
    "api/engine.md": ("The engine", ("sslbench.crf",)),
    "api/text.md": (
        "Corpora, features, datasets",
        ("sslbench.corpus", "sslbench.features", "sslbench.experiment.data.Dataset"),
    ),
    "api/graph.md": ("Graphs", ("sslbench.graph",)),
    "api/plugins.md": ("Registrations", ("sslbench.registrations", "sslbench.hooks")),
}

#: text of each page by its path
PAGES = {
    path: f"# {title}\n\n" + "\n\n".join(f"::: {name}" for name in names) + "\n"
    for path, (title, names) in _NAMES.items()
}
