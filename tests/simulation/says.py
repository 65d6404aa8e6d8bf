"""What a model answers: a function of the request alone, whoever asks and how often.

Kept apart from faults, which depend on when and how often something is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from runner.reply import Reply
from runner.simulate.chance import Chance

Identity: TypeAlias = tuple[str, str, str, int]
"""Stage, key, model and replicate."""

REFUSED = 0.04
"""Share of tasks that no attempt will ever get an answer to."""
UNREADABLE = 0.15
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

    def refusal(self, asked: Identity) -> str | None:
        """The error class that every attempt of this task ends in, if one does."""
        chance = Chance("refused", self.seed, *asked)
        if chance.unit() >= REFUSED:
            return None
        return chance.pick(tuple(REFUSALS))

    def reply(self, asked: Identity, turn: int) -> Reply:
        """The answer to the task; *turn* says how often it was asked before."""
        chance = Chance("said", self.seed, *asked, turn)
        if chance.unit() < UNREADABLE:
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
