"""The models that are known by name: those of litellm's table that siftlog can ask.

Whether an endpoint has a model at all, and what its owner charges, is another matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from runner.clients.route import Api, Route, is_offline, route
from runner.errors import UsageError
from runner.money.prices import Price, listed_price, row_of, table
from runner.options import RunOptions

KINDS: Final = {
    "chat": "chat",
    "responses": "chat",
    "embedding": "embed",
    "rerank": "rerank",
}
"""What siftlog can ask for, by the table's word for it."""


CHAT: Final = "/v1/chat/completions"
RESPONSES: Final = "/v1/responses"
"""Among the endpoints that a row may list."""


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


def api_of(model: str, options: RunOptions) -> Api:
    """The form in which *model* is sent chats, where its endpoint is of OpenAI's form.

    Raises:
        UsageError: responses are asked for, and the model is reached in another way.
    """
    own = options.of(model)
    if own.api == "chat" or is_offline(model):
        return "chat"
    if own.api == "auto":
        return "responses" if lacks_chat(model) else "chat"
    if route(model, has_base_url=own.base_url is not None) is not Route.DIRECT:
        raise UsageError(
            f"{model} is reached through litellm, which has no Responses form here; "
            "give its address with --base-url, or leave out --api responses."
        )
    return "responses"


def lacks_chat(model: str) -> bool:
    """Whether the table has *model* as one that takes responses and no chats."""
    row = row_of(model) or {}
    endpoints = row.get("supported_endpoints") or ()
    if RESPONSES in endpoints:
        return CHAT not in endpoints
    return row.get("mode") == "responses"


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
