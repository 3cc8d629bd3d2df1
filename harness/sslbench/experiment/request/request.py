"""What a user asks for: the only place where a parameter of a run is written.

The options of commands, the signatures of `sslbench.run` and `sslbench.train`, and the keys of a
suite file are made from these classes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from sslbench.engine.errors import UserError
from sslbench.engine.variables import processors
from sslbench.experiment.request.parameters import (
    HIDDEN,
    described,
    inherited,
    parameter,
    parameters,
)

SchemeName = Literal["IOB1", "IOB2", "IOBES", "BMES", "BILOU", "BMEWO", "plain"]
TextSource = Literal["rest", "external", "all"]
TuneBy = Literal["dev", "cv", "cv-full"]
LabeledBy = Literal["uncertainty", "diversity"]
Reuse = Literal["current", "verified", "stale"]
Names = str | Sequence[str]
PathLike = str | os.PathLike[str]

COLUMNS = ("word", "pos", "label")
MAX_SEED = 2**63 - 1


class _Checked:
    """A request whose values are checked when it is made."""

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, each in parameters(kind).items():
            each.check(getattr(self, name))

    def _replace(self, **values: Any) -> None:
        """Put values into a uniform shape, before others see the request."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class _Named(_Checked):
    method: Names = field(metadata=described("Name of a method; `run` takes several, or all."))
    dataset: Names = parameter((), "Name of a dataset; `run` takes several. Or give `data`.")


@dataclass(frozen=True, kw_only=True)
class Call(_Named):
    """What `run` and `train` take, and a table of a suite does not."""

    data: PathLike | None = parameter(
        None, "Your own CoNLL file, or folder with train, dev, test and unlabeled files."
    )
    columns: Sequence[str] = parameter(
        COLUMNS, "Columns of your own files; _ skips one, weak:NAME has weak labels."
    )
    encoding: str | None = parameter(
        None, "Of your own files, e.g. utf-16 or latin-1. Default: seen in them.", metavar="NAME"
    )
    separator: str | None = parameter(
        None,
        "Between columns: space, tab, comma, semicolon or a character. Default: seen in the files.",
        metavar="NAME",
    )
    comment: str | None = parameter(
        None,
        "Beginning of lines to leave out; none = no line. Default: # before a sentence, on lines"
        " that have other numbers of columns.",
        metavar="TEXT",
    )
    scheme: SchemeName | None = parameter(
        None, "Of the labels; plain = they are no chunk tags. Default: seen in the files."
    )
    raw: bool | None = parameter(
        None,
        "The unlabeled file is running text with a sentence per line. Default: seen in the file.",
    )
    label_names: Sequence[str] = parameter(
        (), "Names of labels that are numbers, in their order.", metavar="NAME,NAME"
    )
    labeled: int | str = parameter(
        "all",
        "Number or share of labeled sentences; 0 for methods that learn without any.",
        metavar="N|P%|all",
    )
    unlabeled: int | str | None = parameter(
        None, "Cap on the unlabeled text: N sentences, or Nt = N tokens.", metavar="N|Nt"
    )
    params: Mapping[str, Any] | Sequence[str] = parameter(
        (),
        "Parameter of all methods that have it; METHOD.KEY, DATASET.KEY, MODEL.KEY: of one."
        " `run` makes a run for each of VALUE,VALUE.",
        option="--set",
        metavar="KEY=VALUE",
    )
    weak_sources: Names = parameter(
        (),
        "Sources of weak labels, for methods that learn from them; see sslbench list weak_sources."
        " NAME.KEY in `params` sets a parameter of one.",
        option="--weak",
        metavar="NAME,NAME",
    )
    threads: int | None = parameter(
        None, "Per run; results do not depend on it. Default: cores / `jobs`.", least=1
    )

    def __post_init__(self) -> None:
        cap = self.unlabeled
        self._replace(
            columns=listed(self.columns),
            label_names=listed(self.label_names),
            weak_sources=names(self.weak_sources),
            labeled=parse_labeled(str(self.labeled)),
            unlabeled=None if cap is None else parse_unlabeled(str(cap)),
        )
        super().__post_init__()

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of methods, each once."""
        return names(self.method)

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of datasets, each once; () = the user's own data."""
        return names(self.dataset)

    @property
    def data_path(self) -> Path | None:
        """The user's own file or folder."""
        return None if self.data is None else Path(self.data)

    @property
    def settings(self) -> tuple[str, ...]:
        """The parameters as the command line takes them: texts ``[OWNER.]KEY=VALUE``."""
        if isinstance(self.params, Mapping):
            return tuple(f"{name}={_text(value)}" for name, value in self.params.items())
        return tuple(self.params)


@dataclass(frozen=True, kw_only=True)
class Options(_Checked):
    """What `run`, `train` and a table of a suite take."""

    text: TextSource | None = parameter(
        None,
        "Unlabeled text: the rest of train, the external text of the dataset, or both."
        " Default: rest if not all sentences are labeled, else external if there is any.",
    )
    preset: str | None = parameter(
        None,
        "Named parameters: paper = the values that the paper of a method prints, reproduced ="
        " those that gave the order that the paper claims, plain = defaults that do not depend on"
        " the task. sslbench show METHOD lists them; `params` replaces some of them.",
        metavar="NAME",
    )
    featurizer: str | None = parameter(
        None, "Name, or a file of templates: TOML, CRF++, Wapiti. Default: that of the dataset."
    )
    text_features: Names = parameter(
        (),
        "Features learned from the unlabeled text, on top of the others; see sslbench list"
        " text_features. NAME.KEY in `params` sets a parameter of one.",
        option="--with",
        metavar="NAME,NAME",
    )
    model: str | None = parameter(None, "Default: the first of sslbench list models.")
    tune: int | None = parameter(
        None,
        "Tuning trials per method. Default: those of the dataset if all sentences are labeled.",
        least=0,
        most=100_000,
    )
    tune_cpu: float | None = parameter(
        None,
        "CPU seconds per method after which no tuning trial starts.",
        metavar="SECONDS",
        least=0,
        above=True,
    )
    tune_by: TuneBy = parameter(
        "dev",
        "What scores a trial: dev = the development split, or folds of the labeled sentences"
        " without one; cv = these folds in any case, and no other label; after each fold the"
        " better trials alone go on; cv-full = all folds of all.",
    )
    guard: bool = parameter(
        False,
        "Fall back to the baseline's tagger unless the method wins in cross-validation."
        " This adds five trainings of both.",
    )

    def __post_init__(self) -> None:
        self._replace(text_features=names(self.text_features))
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class Draws(_Checked):
    """What `run` and a table of a suite take."""

    tune_seed: int | None = parameter(
        None,
        "Tune on the draw of this seed. Default: on that of each run.",
        least=0,
        most=MAX_SEED,
    )
    labeled_by: LabeledBy | None = parameter(
        None,
        "Choose the second half of the labeled sentences as an active learner does: uncertainty ="
        " those of which a supervised CRF of the first half is most uncertain, diversity = those"
        " least like the others. Default: at random, as the first half.",
    )
    folds: int = parameter(
        0,
        "Cross-validation: test on the labeled sentences, cut into K folds; 0 = on the test split.",
        metavar="K",
        least=0,
        most=10_000,
    )


@dataclass(frozen=True, kw_only=True)
class Execution(_Checked):
    """How a grid of runs is executed; results do not depend on it."""

    jobs: int = parameter(1, "Runs at a time.", least=1)
    executor: str = parameter(
        "local",
        "local or dask[:ADDRESS]: a cluster shares out several runs, or passes of a single one.",
    )
    timeout: float | None = parameter(None, "Seconds per run.", least=0, above=True)
    memory: int | None = parameter(
        None,
        "Bytes per run, e.g. 8G or 500M. Default: 80 % of the machine's, divided by `jobs`.",
        least=0,
    )
    retry: bool = parameter(False, "Run again what failed earlier.")
    reuse: Reuse = parameter(
        "current",
        "Stored runs to use: of today's versions of the code (current or verified), or of any.",
    )

    def execution(self) -> dict[str, Any]:
        """The values of these parameters."""
        return {each.name: getattr(self, each.name) for each in fields(Execution)}


@dataclass(frozen=True, kw_only=True)
class RunRequest(Execution, Draws, Options, Call):
    """Every combination of methods, datasets and seeds."""

    seeds: Iterable[int] = parameter((0,), "Each draws its own labeled sample.", option="--seed")
    store: PathLike = parameter("runs", "Folder of the run records.")
    verbose: bool = parameter(False, "Show messages on standard error.", option=HIDDEN)

    def __post_init__(self) -> None:
        self._replace(seeds=tuple(self.seeds))
        for seed in self.seeds:
            parameters(TrainRequest)["seed"].check(seed)
        super().__post_init__()

    @property
    def threads_per_run(self) -> int:
        """`threads`, or its default."""
        return self.threads or max(1, processors() // self.jobs)


@dataclass(frozen=True, kw_only=True)
class TrainRequest(Options, Call):
    """One training of one method."""

    seed: int = parameter(0, "Draws the labeled sample.", least=0, most=MAX_SEED)
    guard: bool = inherited(Options, "guard", default=True)
    verbose: bool = inherited(RunRequest, "verbose", default=False)

    def run_request(self) -> RunRequest:
        """The same as a grid of one run."""
        shared = {*parameters(TrainRequest)} & {*parameters(RunRequest)}
        given = {name: getattr(self, name) for name in shared}
        return RunRequest(**given, seeds=(self.seed,))


def listed(given: Sequence[str]) -> tuple[str, ...]:
    """Names in order; a string is split at its commas, as on the command line."""
    return tuple(given.split(",") if isinstance(given, str) else given)


def names(given: Names) -> tuple[str, ...]:
    """Names, each once; a text is one name."""
    return (given,) if isinstance(given, str) else tuple(dict.fromkeys(given))


def parse_labeled(text: str) -> int | str:
    """Parse a number of labeled sentences, ``all``, or a share such as ``10%``."""
    text = text.strip()
    if text == "all":
        return text
    if re.fullmatch(r"[0-9]{1,15}", text):
        return int(text)
    if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,15})?%", text) and 0 < float(text[:-1]) <= 100:
        return "all" if float(text[:-1]) == 100 else f"{float(text[:-1]):g}%"
    raise UserError(f"--labeled {text!r}", hint="give a number, 'all' or e.g. '10%'")


def parse_unlabeled(text: str) -> int | str:
    """Parse a number of unlabeled sentences, or of tokens such as ``100000t``."""
    text = text.strip()
    if re.fullmatch(r"[0-9]{1,15}", text):
        return int(text)
    if re.fullmatch(r"[0-9]{1,15}t", text):
        return f"{int(text[:-1])}t"
    raise UserError(
        f"--unlabeled {text!r}", hint="give a number of sentences, or of tokens as 100000t"
    )


def _text(value: Any) -> str:
    """A value as the command line takes it."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
