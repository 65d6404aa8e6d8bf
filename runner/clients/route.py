"""Which kind of client serves a model, by the model's name alone."""

from __future__ import annotations

import enum
from typing import Literal, TypeAlias

Api: TypeAlias = Literal["chat", "responses"]
"""The form in which chats are sent on the direct way."""


class Route(enum.Enum):
    """The ways a request can take; the values are shown to people."""

    BASELINE = "baseline"  #: the job itself
    RECORDED = "recorded"  #: a file, or an earlier run
    DIRECT = "direct"  #: over HTTP to an OpenAI-compatible endpoint, without an SDK
    LITELLM = "litellm"  #: to a provider, through litellm


def route(model: str, *, has_base_url: bool) -> Route:
    """How *model* is reached, with an address of its own or without.

    >>> route("openai/gpt-4o-mini", has_base_url=False)
    <Route.DIRECT: 'direct'>
    """
    provider = model.partition("/")[0]
    if provider == "baseline":
        return Route.BASELINE
    if model.startswith("recorded:"):
        return Route.RECORDED
    if has_base_url or provider == "openai":
        return Route.DIRECT
    return Route.LITELLM


def is_offline(model: str) -> bool:
    """Whether no endpoint serves *model*: it costs nothing, and takes no time."""
    return route(model, has_base_url=False) in {Route.BASELINE, Route.RECORDED}
