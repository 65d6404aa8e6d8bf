"""What is asked of a model: ordered message parts and the few knobs jobs may turn.

Parts stand in the order of the prompt, the stable ones first, so that a provider's
prompt cache can reuse the paper for all questions about it. A part's text is stored
once per log by its hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a message's text."""

    text: str
    cache: bool = False  #: a good place for a provider's cache breakpoint, after it


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message: its parts are joined without anything between them."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The message as the model sees it."""
        return "".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A JSON schema that the content of the reply should follow."""

    name: str  #: letters, digits, "_" and "-"; shown to the provider
    json: str  #: the schema as compact JSON with sorted keys


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One chat completion to be asked for."""

    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None = 0.0  #: None: leave it to the endpoint
    schema: Schema | None = None  #: None: free text
