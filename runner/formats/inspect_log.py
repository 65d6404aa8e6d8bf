"""Logs of inspect_ai, version 2: members of a `.eval` archive, usage, values of scores.

The names are those of `EvalLog`, `EvalSample` and `ModelUsage` in inspect_ai.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

import msgspec

from runner.messages import Usage
from store.events import AttemptAnswered

VERSION: Final = 2

HEADER: Final = "header.json"
"""Member with the header; absent if inspect was killed."""
START: Final = "_journal/start.json"
"""Member that is written first, with the header's fields but for the outcome."""
SAMPLES: Final = "samples/"
"""Folder of the samples, `samples/ID_epoch_N.json`."""

CORRECT, INCORRECT = "C", "I"
LETTERS: Final[Mapping[str, float]] = {CORRECT: 1.0, "P": 0.5, INCORRECT: 0.0, "N": 0.0}
"""Values of scores: correct, partial, incorrect, no answer."""


class InspectUsage(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Tokens of calls; cached ones are not part of `input_tokens`."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens_cache_read: int | None = None
    input_tokens_cache_write: int | None = None
    reasoning_tokens: int | None = None
    total_cost: float | None = None

    @classmethod
    def of(cls, answered: AttemptAnswered) -> Self | None:
        """Return the usage of a reply; None: it is not known."""
        if answered.tokens_in is None or answered.tokens_out is None:
            return None
        cached, written = answered.tokens_cached or 0, answered.tokens_cache_write or 0
        return cls(
            input_tokens=answered.tokens_in - cached - written,
            output_tokens=answered.tokens_out,
            total_tokens=answered.tokens_in + answered.tokens_out,
            input_tokens_cache_read=cached or None,
            input_tokens_cache_write=written or None,
            reasoning_tokens=answered.tokens_reasoning or None,
            total_cost=answered.cost_usd,
        )

    @property
    def usage(self) -> Usage:
        """The tokens as siftlog counts them."""
        cached = self.input_tokens_cache_read or 0
        written = self.input_tokens_cache_write or 0
        return Usage(
            tokens_in=(self.input_tokens or 0) + cached + written,
            tokens_out=self.output_tokens or 0,
            tokens_cached=cached,
            tokens_cache_write=written,
            tokens_reasoning=self.reasoning_tokens or 0,
        )
