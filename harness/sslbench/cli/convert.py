"""``sslbench convert``."""

from __future__ import annotations

import zipfile
from pathlib import Path

import click

from sslbench.cli.messages import tell
from sslbench.cli.options import PATH, names_in
from sslbench.cli.text import checked_registry, counted
from sslbench.engine.errors import UserError


@click.command("convert")
@click.argument("file", type=PATH)
@click.argument("out", type=PATH)
@click.option("--columns", help="That an imported tagger reads. Default: the file's.")
def command(file: Path, out: Path, columns: str | None) -> None:
    """Convert a saved tagger to a model of CRFsuite, or a text dump of another model to a tagger.

    \b
    saved tagger              -> a model file of CRFsuite; `sslbench tag TAGGER TEXT --format
                                 crfsuite` computes the attributes that it needs
    crfsuite dump MODEL       -> a tagger, if attributes are named like word[-1]|word[0]=of|the
    crf_learn -t (CRF++)      -> a tagger
    """

    if not file.is_file():
        raise UserError("there is no such file", file=file)
    if zipfile.is_zipfile(file):
        if columns is not None:
            raise UserError("--columns is for the text dump of another program")
        tell(f"{out}: {_export(file, out)}")
    else:
        from sslbench.conversion.importing import import_dump

        names = None if columns is None else _without_label(names_in(columns))
        crf = import_dump(file, out, names)
        n = crf.index.n_node + crf.index.n_edge
        labels = counted(len(crf.labels), "label")
        tell(f"{out}: {labels}, {counted(n, 'attribute')}; see sslbench show {out}")


def _without_label(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name != "label")


def _export(file: Path, out: Path) -> str:
    from sslbench.conversion.export import Exported
    from sslbench.experiment.run.saved import load_tagger

    plugins = checked_registry()
    exported = Exported.of(load_tagger(file, plugins))
    exported.model().write(out)
    size = counted(len(exported.names), "attribute")
    return f"{size}; its input: sslbench tag {file} TEXT --format crfsuite"
