"""What the tests of the Chinese corpora share: sentences as strings, and homes of tiny files."""

from __future__ import annotations

from pathlib import Path

from sslbench.engine.corpus import Corpus
from sslbench.experiment.data import DataHome


def rows(corpus: Corpus) -> list[str]:
    """'上B 海E' by sentence."""
    return [
        " ".join(
            map("".join, zip(corpus.sentence(i, "word"), corpus.sentence(i, "label"), strict=True))
        )
        for i in range(corpus.n_sentences)
    ]


class TinyHome(DataHome):
    """A data home that checks no sha256."""

    def path(self, file: object) -> Path:
        return self.root / file.path  # type: ignore[attr-defined]


def tiny(tmp_path: Path, files: dict[str, str]) -> TinyHome:
    for path, content in files.items():
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    return TinyHome(tmp_path, tmp_path / "cache")
