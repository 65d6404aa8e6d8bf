"""Records of Every Eval Ever: version of its schemas, right answers, usage."""

from __future__ import annotations

from typing import Final, Self

import msgspec

from runner.messages import Usage
from store.events import AttemptAnswered

SCHEMA: Final = "0.3.0"

RIGHT: Final = 1.0
"""Score of a right answer, where a tool states nothing but a score."""


class InstanceUsage(msgspec.Struct, kw_only=True):
    """Tokens; cached ones are part of `input_tokens`, a total."""

    input_tokens: int
    output_tokens: int
    total_tokens: int | None = None
    input_tokens_cache_write: int | None = None
    input_tokens_cache_read: int | None = None
    reasoning_tokens: int | None = None

    @classmethod
    def of(cls, answered: AttemptAnswered) -> Self | None:
        """Return the usage of a reply; None: it is not known."""
        if answered.tokens_in is None or answered.tokens_out is None:
            return None
        return cls(
            input_tokens=answered.tokens_in,
            output_tokens=answered.tokens_out,
            total_tokens=answered.tokens_in + answered.tokens_out,
            input_tokens_cache_write=answered.tokens_cache_write,
            input_tokens_cache_read=answered.tokens_cached,
            reasoning_tokens=answered.tokens_reasoning,
        )

    @property
    def usage(self) -> Usage:
        """The tokens as siftlog counts them."""
        return Usage(
            tokens_in=self.input_tokens,
            tokens_out=self.output_tokens,
            tokens_cached=self.input_tokens_cache_read or 0,
            tokens_cache_write=self.input_tokens_cache_write or 0,
            tokens_reasoning=self.reasoning_tokens or 0,
        )
