"""What a model returned, as a job sees it: the text, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as the endpoint counted them."""

    tokens_in: int
    tokens_out: int
    tokens_cached: int = 0  #: part of tokens_in read from the provider's prompt cache
    tokens_cache_write: int = 0  #: part of tokens_in written to it, at a higher price


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply's text and the reason it ended; the raw bytes stay in the log."""

    text: str
    finish_reason: str = "stop"  #: "stop", "length", "content_filter", ...
    usage: Usage | None = None

    @property
    def is_truncated(self) -> bool:
        """Whether the output limit cut the reply."""
        return self.finish_reason == "length"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseFailure:
    """A value, not an error: the reply could not be read, and why."""

    reason: str  #: a short word such as "truncated", "no_list"; counted by it
