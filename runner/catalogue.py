"""The models that are known by name: what litellm's packaged table says of them.

The table is read as a file; importing litellm would take seconds. What a run pays is
another matter (its options may say otherwise), and so is whether an endpoint has the
model at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

TABLE: Final = "model_prices_and_context_window_backup.json"
"""Inside litellm's package: its prices as of its release."""

KINDS: Final = {"chat": "chat", "embedding": "embed", "rerank": "rerank"}
"""What siftlog can ask for, by the table's word for it."""

TOKENS: Final = 1_000_000
"""Prices are shown for so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A model as the table has it; None: the table does not say."""

    model: str  #: as `--model` takes it
    kind: str  #: of request: "chat", "embed" or "rerank"
    usd_per_mtok_in: float | None
    usd_per_mtok_cached: float | None  #: prompt tokens from the provider's cache
    usd_per_mtok_out: float | None
    context_tokens: int | None  #: longest prompt


def listed() -> Iterator[Listed]:
    """The models of the table that siftlog can ask, by name."""
    rows = (_listed(name, row) for name, row in _table().items())
    return iter(sorted((row for row in rows if row), key=lambda row: row.model))


def _table() -> Mapping[str, Mapping[str, Any]]:
    litellm = find_spec("litellm")
    folders = litellm.submodule_search_locations if litellm is not None else None
    if not folders:
        return {}
    content = (Path(folders[0]) / TABLE).read_bytes()
    return msgspec.json.decode(content, type=dict[str, dict[str, Any]])


def _listed(name: str, row: Mapping[str, Any]) -> Listed | None:
    kind = KINDS.get(row.get("mode", ""))
    provider = row.get("litellm_provider", "")
    if kind is None or not provider:
        return None
    if provider.startswith("vertex_ai-"):
        provider = "vertex_ai"  # the rest says which family the model is of
    context = row.get("max_input_tokens") or row.get("max_tokens")
    return Listed(
        model=name if name.startswith(f"{provider}/") else f"{provider}/{name}",
        kind=kind,
        usd_per_mtok_in=_per_mtok(row, "input_cost_per_token"),
        usd_per_mtok_cached=_per_mtok(row, "cache_read_input_token_cost"),
        usd_per_mtok_out=_per_mtok(row, "output_cost_per_token"),
        context_tokens=int(context) if isinstance(context, int | float) else None,
    )


def _per_mtok(row: Mapping[str, Any], key: str) -> float | None:
    """A price for a million tokens, without the noise of the multiplication.

    Zero stands in the table for what is not known, or not charged by tokens.
    """
    price = row.get(key)
    return float(f"{float(price) * TOKENS:.9g}") if price else None
