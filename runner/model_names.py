"""Names models: those of litellm's table, as `--model` takes them, and for files.

Reads the table with the standard library alone, in 30 ms: the completion of a shell and
the sentence about a typing mistake need names, not prices (`runner.money.prices`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from store.nearest import nearest

TABLE: Final = "model_prices_and_context_window_backup.json"
"""Inside litellm's package: its models, with their prices as of its release."""

KINDS: Final = {
    "chat": "chat",
    "responses": "chat",
    "embedding": "embed",
    "rerank": "rerank",
}
"""Kinds of request that siftlog supports, by the table's modes."""


OFFLINE: Final = "baseline/lexical"
"""The offline baseline of every job."""

RATIO: Final = 0.7
"""Similarity from which a model's name is near: models have long names, much alike."""


def table_file() -> Path | None:
    """Return litellm's table; None if litellm is not installed. Imports nothing."""
    litellm = find_spec("litellm")
    folders = litellm.submodule_search_locations if litellm is not None else None
    return Path(folders[0]) / TABLE if folders else None


def full_name(name: str, row: Mapping[str, Any]) -> str | None:
    """Return a row's model as `--model` takes it; None if siftlog cannot call it."""
    provider = row.get("litellm_provider", "")
    if row.get("mode", "") not in KINDS or not provider:
        return None
    if provider.startswith("vertex_ai-"):
        provider = "vertex_ai"  # the rest is the model's family
    return name if name.startswith(f"{provider}/") else f"{provider}/{name}"


def model_names(kind: str = "chat") -> list[str]:
    """Return the names of the table's models of one kind of request, sorted."""
    return sorted(
        full
        for name, row in _rows().items()
        if (full := full_name(name, row)) and KINDS[row["mode"]] == kind
    )


def nearest_models(word: str, *, limit: int = 1) -> list[str]:
    """Return the models of the table that *word* may stand for, the likeliest first.

    Of a name without a provider, the maker's own models come first: `gpt-4o-mini` is
    `openai/gpt-4o-mini`.
    """
    full_names = {
        name: full for name, row in _rows().items() if (full := full_name(name, row))
    }
    known = dict.fromkeys([OFFLINE, *full_names.values()])
    if word in known:
        return []
    # makers stand first in the table's names: these have none
    bare = {} if "/" in word else {n: full_names[n] for n in full_names if "/" not in n}
    near = [bare[name] for name in nearest(word, bare, limit=limit, ratio=RATIO)]
    if not near:
        near = nearest(word, known, limit=limit, ratio=RATIO)
    first = [name for name in known if _is_of_maker(name, word)]
    return list(dict.fromkeys([*first, *near]))[:limit]


def model_hint(word: str) -> str:
    """Return "did you mean 'x'? " for a sentence about an unknown model, or nothing."""
    near = nearest_models(word)
    return f"did you mean {near[0]!r}? Otherwise " if near else ""


def _is_of_maker(name: str, word: str) -> bool:
    """Return whether a provider named like the model serves it: gemini/gemini-x."""
    provider, _, model = name.partition("/")
    return model == word and word.startswith(provider)


@cache
def _rows() -> Mapping[str, Mapping[str, Any]]:
    path = table_file()
    if path is None:
        return {}
    rows: dict[str, dict[str, Any]] = json.loads(path.read_bytes())
    return rows


_UNSAFE = re.compile(r"^[.-]|[^A-Za-z0-9._-]")

_TAKEN = re.compile(r"|figures|.*\.(csv|db|html|json|jsonl|txt)", re.IGNORECASE)
"""Names that a scoring's own files could have; a model may be called so."""

LONGEST_SLUG = 100
"""Characters; most file systems take names of 255 bytes, with what comes after it."""


def slugs(models: Iterable[str]) -> dict[str, str]:
    """Return how each model is called in file names; two never share a name.

    Nor do two that differ in upper and lower case alone, which are one file on some
    systems.
    """
    plain = {model: _UNSAFE.sub("_", model) for model in models}
    uses = Counter(slug.lower() for slug in plain.values())
    return {
        model: slug
        if uses[slug.lower()] == 1
        and len(slug) <= LONGEST_SLUG
        and not _TAKEN.fullmatch(slug)
        else f"{slug[:LONGEST_SLUG] or '_'}-{sha256(model.encode()).hexdigest()[:6]}"
        for model, slug in plain.items()
    }
