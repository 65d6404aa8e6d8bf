"""The models that are known by name: those of litellm's table that siftlog can ask.

Whether an endpoint has a model at all, and what its owner charges, is another matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from runner.money.prices import Price, listed_price, row_of, table

KINDS: Final = {"chat": "chat", "embedding": "embed", "rerank": "rerank"}
"""What siftlog can ask for, by the table's word for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A model as the table has it."""

    model: str  #: as `--model` takes it
    kind: str  #: of request: "chat", "embed" or "rerank"
    price: Price | None  #: None: the table does not tell
    context_tokens: int | None  #: longest prompt; None: the table does not tell


def listed() -> Iterator[Listed]:
    """The models of the table that siftlog can ask, by name."""
    decoder = msgspec.json.Decoder(dict[str, Any])
    rows = (_listed(name, decoder.decode(row)) for name, row in table().items())
    return iter(sorted((row for row in rows if row), key=lambda row: row.model))


def context_tokens(model: str) -> int | None:
    """The longest prompt of a model; None: the table does not tell."""
    row = row_of(model)
    return None if row is None else _context(row)


def most_output_tokens(model: str) -> int | None:
    """The longest output of a model; None: the table does not have it."""
    tokens = (row_of(model) or {}).get("max_output_tokens")
    return int(tokens) if isinstance(tokens, int | float) and tokens else None


def _listed(name: str, row: Mapping[str, Any]) -> Listed | None:
    kind = KINDS.get(row.get("mode", ""))
    provider = row.get("litellm_provider", "")
    if kind is None or not provider:
        return None
    if provider.startswith("vertex_ai-"):
        provider = "vertex_ai"  # the rest says which family the model is of
    return Listed(
        model=name if name.startswith(f"{provider}/") else f"{provider}/{name}",
        kind=kind,
        price=listed_price(name, row),
        context_tokens=_context(row),
    )


def _context(row: Mapping[str, Any]) -> int | None:
    tokens = row.get("max_input_tokens") or row.get("max_tokens")
    return int(tokens) if isinstance(tokens, int | float) and tokens else None
