"""Words cut into pieces by the tokenizer of a transformer's folder, and the folder's identity."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sslbench import UserError
from sslbench.experiment.identity import input_hashes


def needed_library(name: str, extra: str) -> Any:
    """Import a library; UserError if it is missing. extra: of the installation that brings it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        hint = f"pip install 'sslbench[{extra}]'"
        raise UserError(f"{name} is needed: {error}", hint=hint) from None


def files_digest(paths: Mapping[str, str]) -> str:
    """Return a digest of files, by the names that they have there; UserError as `input_hashes`."""
    hashes = input_hashes(paths, paths)
    facts = {name: hashes[path] for name, path in paths.items()}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def windows(counts: Sequence[int], room: int) -> list[range]:
    """Words that are read at once: at most `room` pieces, or one word. counts: pieces by word."""
    parts: list[range] = []
    begin = end = 0
    while not parts or end < len(counts):
        end, used = begin, 0
        while end < len(counts) and (end == begin or used + counts[end] <= room):
            used, end = used + counts[end], end + 1
        parts.append(range(begin, end))
        begin = max(begin + 1, (begin + end) // 2)
    return parts


def open_tokenizers(path: str, limit: int) -> tuple[Any, Any]:
    """The tokenizer, which cuts after `limit` pieces, and one that does not cut; UserError."""
    library = needed_library("tokenizers", "encoder")
    try:
        with open(path, encoding="utf-8") as file:
            text = json.dumps(_with_spaces(json.load(file)))
        tokenizer, counter = (library.Tokenizer.from_str(text) for _ in range(2))
        for each in (tokenizer, counter):
            each.no_padding()
            each.no_truncation()
        special = tokenizer.num_special_tokens_to_add(False)
        if limit > special:
            tokenizer.enable_truncation(limit)
    except Exception as error:  # of the library, without a class for it
        raise UserError(f"no tokenizer: {first_line(error)}", file=path) from None
    if limit <= special:
        raise UserError(f"no room for words in {limit} pieces", file=path)
    return tokenizer, counter


def most_positions(config: Path) -> int:
    """As the configuration says; without one, there is no limit."""
    if not config.exists():
        return 2**31
    try:
        limit = json.loads(config.read_text(encoding="utf-8")).get("max_position_embeddings", 2**31)
        return int(limit)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UserError(f"no configuration of a model: {error}", file=str(config)) from None


def _with_spaces(tokenizer: dict[str, Any]) -> dict[str, Any]:
    """Make a byte-level tokenizer read words of a sentence, which need a space before them."""
    first = tokenizer.get("pre_tokenizer") or {}
    for part in first.get("pretokenizers", [first]):
        if part.get("type") == "ByteLevel":
            part["add_prefix_space"] = True
    return tokenizer


def first_line(error: Exception) -> str:
    """Return the first line of a message, or the name of the exception's class."""
    return (str(error).splitlines() or [type(error).__name__])[0]
