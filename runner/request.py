"""What is asked of a model: a chat, vectors of texts, or an order of documents.

The parts of a chat stand in the order of the prompt, the stable ones first, so that a
provider's prompt cache can reuse the paper for all questions about it. Whatever the
kind, a text is stored once per log by its hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from runner.parameters import NOTHING_SET, Parameters


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
    json: str  #: compact JSON, its properties in the order of the reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One chat completion to be asked for."""

    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None = 0.0  #: None: leave it to the endpoint
    schema: Schema | None = None  #: None: free text
    room: int = 0  #: tokens for reasoning beyond `max_tokens`; not part of its hash
    parameters: Parameters = NOTHING_SET

    @property
    def limit(self) -> int:
        """Output tokens at most, reasoning included."""
        return self.max_tokens + self.room


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedRequest:
    """Vectors to be asked for, one a text, all in one call."""

    texts: tuple[str, ...]
    dimensions: int | None = None  #: length of a vector; None: the model's own
    purpose: Literal["query", "document"] | None = None
    """What the texts are for, for the providers that embed the two differently; None:
    both or neither. Models that want a prefix instead get it in the text."""
    parameters: Parameters = NOTHING_SET


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankRequest:
    """Scores of documents for one query to be asked for."""

    query: str
    documents: tuple[str, ...]
    top_n: int | None = None  #: only the best so many; None: all of them
    parameters: Parameters = NOTHING_SET


Request: TypeAlias = ChatRequest | EmbedRequest | RerankRequest
"""What a task asks; its stage's parser gets the reply of the same kind."""
