"""What a model answers: a function of the request alone, whoever asks and how often.

Kept apart from faults, which depend on when and how often something is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from runner.messages import Reply
from runner.simulate.options import Chance

Identity: TypeAlias = tuple[str, str, str, int]
"""Stage, key, model and replicate."""

REFUSED = 0.04
"""Share of tasks that no attempt will ever get an answer to."""
UNREADABLE = (0.05, 0.15, 0.5)
"""Share of the replies that cannot be read, by seed."""
TOO_LONG = 0.1
"""Share of the dialogues that do not fit when a task is asked again."""
CUT = 0.3
"""Share of the unreadable replies that ended at their limit."""
REFUSALS = {
    "BadRequest": (400, b'{"error": {"message": "no such parameter"}}'),
    "ContextTooLong": (
        400,
        b'{"error": {"code": "context_length_exceeded", "message": "too long"}}',
    ),
    "ContentFiltered": (
        400,
        b'{"error": {"code": "content_filter", "message": "filtered"}}',
    ),
}
"""By error class: the status and body that stand for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """One seed's model."""

    seed: int

    def refusal(self, asked: Identity, turn: int) -> str | None:
        """The error class that every attempt at this request ends in, if one does."""
        chance = Chance("refused", self.seed, *asked, turn)
        if turn:
            return "ContextTooLong" if chance.unit() < TOO_LONG else None
        return chance.pick(tuple(REFUSALS)) if chance.unit() < REFUSED else None

    def reply(self, asked: Identity, turn: int) -> Reply:
        """The answer to the task; *turn* says how often it was asked before."""
        chance = Chance("said", self.seed, *asked, turn)
        if chance.unit() < UNREADABLE[self.seed % len(UNREADABLE)]:
            ended = "length" if chance.unit() < CUT else "stop"
            return Reply(text="", finish_reason=ended)
        text = f"{chance.below(1 << 30):x}"
        if asked[0] == "read":
            # a word ending in z is not asked about
            text = " ".join(
                f"{number}{'z' if chance.unit() < 0.1 else 'w'}"
                for number in range(chance.below(4))
            )
            text = text or "none"
        return Reply(text=text)
