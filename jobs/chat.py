"""The request of a chat, under the settings that all jobs share."""

from __future__ import annotations

from typing import Literal, Protocol

from runner.messages import ChatRequest, Message, Schema


class Asking(Protocol):
    """Settings of how a model is asked."""

    @property
    def max_output_tokens(self) -> int:
        """The longest reply, in tokens."""

    @property
    def temperature(self) -> float | None:
        """Of sampling; None: the endpoint's own."""

    @property
    def structured(self) -> Literal["auto", "off"]:
        """Whether a schema is sent along."""


def chat(
    settings: Asking,
    messages: tuple[Message, ...],
    schema: Schema,
    *,
    max_tokens: int | None = None,
) -> ChatRequest:
    """A prompt as a request.

    Args:
        settings: of the run.
        messages: the prompt.
        schema: of the reply.
        max_tokens: of the reply; None: as many as the settings allow.
    """
    return ChatRequest(
        messages=messages,
        max_tokens=settings.max_output_tokens if max_tokens is None else max_tokens,
        temperature=settings.temperature,
        schema=schema if settings.structured == "auto" else None,
    )
