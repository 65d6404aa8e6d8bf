"""The course of a batch, as one table; pure.

A provider has the batch from some moment between `PREPARED` and `OPEN` on, and which
moment a process that is killed there cannot know. Hence `SOUGHT`: whoever does not know
looks for the batch before anything of it is sent again.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class Stage(enum.Enum):
    """Where a batch stands."""

    GATHERING = "gathering"  #: calls may still join it
    PREPARED = "prepared"  #: the log has it, and the provider has not
    SOUGHT = "sought"  #: the provider may have it
    OPEN = "open"  #: the provider has it, by an id that the log knows
    ENDED = "ended"  #: its results are there to be read
    COLLECTED = "collected"  #: each of its calls has an outcome
    REFUSED = "refused"  #: the provider would not take it, or not keep it
    MISSING = "missing"  #: the provider did nothing of it: its calls may be sent again

    @property
    def is_final(self) -> bool:
        """Whether nothing is left to do about it."""
        return self in {Stage.COLLECTED, Stage.REFUSED, Stage.MISSING}


class Happening(enum.Enum):
    """What a step of a batch came to."""

    RECORDED = "the log has it"
    CREATED = "the provider gave it an id"
    POSTPONED = "the provider took nothing, and is to be asked later"
    UNSURE = "the provider may have taken it"
    DECLINED = "the provider will not take it"
    FOUND = "the provider's list has it"
    ABSENT = "the provider's list has it not"
    UNDECIDED = "the provider's list does not tell yet"
    SEEN = "the provider is at work on it"
    DONE = "the provider has ended it"
    TURNED_AWAY = "too much waits there already: the provider did nothing of it"
    GONE = "the provider knows no such batch"
    BROKEN = "its results did not come whole"
    READ = "its results were read to the end"


_S, _H = Stage, Happening
MOVES: Final[Mapping[tuple[Stage, Happening], Stage]] = {
    (_S.GATHERING, _H.RECORDED): _S.PREPARED,
    (_S.GATHERING, _H.FOUND): _S.OPEN,
    (_S.PREPARED, _H.CREATED): _S.OPEN,
    (_S.PREPARED, _H.POSTPONED): _S.PREPARED,
    (_S.PREPARED, _H.UNSURE): _S.SOUGHT,
    (_S.PREPARED, _H.DECLINED): _S.REFUSED,
    (_S.SOUGHT, _H.FOUND): _S.OPEN,
    (_S.SOUGHT, _H.ABSENT): _S.MISSING,
    (_S.SOUGHT, _H.UNDECIDED): _S.SOUGHT,
    (_S.OPEN, _H.SEEN): _S.OPEN,
    (_S.OPEN, _H.DONE): _S.ENDED,
    (_S.OPEN, _H.TURNED_AWAY): _S.MISSING,
    (_S.OPEN, _H.GONE): _S.REFUSED,
    (_S.ENDED, _H.BROKEN): _S.ENDED,
    (_S.ENDED, _H.READ): _S.COLLECTED,
}
"""A pair that is not in here is a bug."""


def after(stage: Stage, happening: Happening) -> Stage:
    """Where a batch stands once that has happened; `KeyError` for what cannot."""
    return MOVES[stage, happening]
