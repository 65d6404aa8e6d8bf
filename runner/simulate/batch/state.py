"""What a batch goes through, from its creation to its end; pure, told the time.

All that is going to happen is settled when a batch is made (its `Schedule`, and what
becomes of every item), so looking at it late or often changes nothing. Only a
cancellation comes from outside.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from runner.simulate.asked import Asked


class Phase(enum.StrEnum):
    """Where a batch stands, in OpenAI's words; Anthropic knows three of them."""

    VALIDATING = "validating"  #: accepted, its lines not yet looked at
    IN_PROGRESS = "in_progress"  #: items are worked on
    FINALIZING = "finalizing"  #: all are done, the results are being written
    CANCELLING = "cancelling"  #: asked to stop; what was begun may still be done
    COMPLETED = "completed"  #: every item was answered or refused
    EXPIRED = "expired"  #: the window closed before some items were done
    CANCELLED = "cancelled"
    FAILED = "failed"  #: its lines are no batch: nothing was worked on

    @property
    def is_terminal(self) -> bool:
        """Whether nothing happens to it any more."""
        return not any(phase is self for phase, _ in TRANSITIONS)


class Step(enum.Enum):
    """What moves a batch on."""

    ADMIT = enum.auto()  #: its lines are fine
    REJECT = enum.auto()  #: they are not
    WORK_OFF = enum.auto()  #: the last item is done
    RUN_OUT = enum.auto()  #: the window closed
    FILE = enum.auto()  #: the results are written
    CANCEL = enum.auto()  #: somebody asked for it
    WIND_DOWN = enum.auto()  #: what was begun is done


TRANSITIONS: Final[Mapping[tuple[Phase, Step], Phase]] = {
    (Phase.VALIDATING, Step.ADMIT): Phase.IN_PROGRESS,
    (Phase.VALIDATING, Step.REJECT): Phase.FAILED,
    (Phase.VALIDATING, Step.CANCEL): Phase.CANCELLING,
    (Phase.IN_PROGRESS, Step.WORK_OFF): Phase.FINALIZING,
    (Phase.IN_PROGRESS, Step.RUN_OUT): Phase.EXPIRED,
    (Phase.IN_PROGRESS, Step.CANCEL): Phase.CANCELLING,
    (Phase.FINALIZING, Step.FILE): Phase.COMPLETED,
    (Phase.CANCELLING, Step.WIND_DOWN): Phase.CANCELLED,
}
"""Every move there is; anything else changes nothing."""


class Ending(enum.StrEnum):
    """What became of an item, in Anthropic's words; only success is billed."""

    SUCCEEDED = "succeeded"
    ERRORED = "errored"
    EXPIRED = "expired"
    CANCELED = "canceled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One request of a batch, and what becomes of it if nobody cancels."""

    custom_id: str
    digest: str  #: SHA-256 of its body, hex: what its answer depends on
    ending: Ending
    due_us: int  #: when that happens
    asked: Asked | None = None  #: None: the body is no request
    status: int = 200  #: of the reply, as a single call would have had it
    problem: str = ""  #: what is wrong with it, where it is errored


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a batch gets on if nobody cancels, in microseconds since 1970 UTC."""

    created_us: int
    admitted_us: int
    worked_us: int  #: nothing is worked on any more
    filed_us: int  #: its end
    winding_us: int  #: how long a cancellation takes


class Batch:
    """One batch; it gets on where `advance` is told the time."""

    def __init__(
        self,
        schedule: Schedule,
        items: Sequence[Item],
        *,
        is_sound: bool = True,
    ) -> None:
        self._schedule = schedule
        self._is_sound = is_sound
        self._runs_out = any(item.ending is Ending.EXPIRED for item in items)
        self._waiting = sorted(items, key=lambda item: item.due_us, reverse=True)
        self.total = len(items)
        self.phase = Phase.VALIDATING
        self.entered: dict[Phase, int] = {Phase.VALIDATING: schedule.created_us}
        """From each phase it was in to when that began, microseconds."""
        self.ended: list[Item] = []
        """The items that are done, in the order of their ends."""

    def advance(self, now_us: int) -> list[Item]:
        """Get on to *now_us*; the items that ended since the last time.

        Time does not go back: an earlier time than before does nothing.
        """
        known = len(self.ended)
        while (due := self._next()) is not None and due[0] <= now_us:
            moment_us, step = due
            self._work(moment_us)
            if step is Step.WIND_DOWN:
                self._abandon()
            self._take(step, moment_us)
        self._work(now_us)
        return self.ended[known:]

    def cancel(self, now_us: int) -> bool:
        """Ask it to stop; False: it is beyond that.

        Asking again while it is stopping is no mistake and does nothing.
        """
        if self.phase is Phase.CANCELLING:
            return True
        if (self.phase, Step.CANCEL) not in TRANSITIONS:
            return False
        self._take(Step.CANCEL, now_us)
        return True

    def count(self, ending: Ending) -> int:
        """How many of its items ended so."""
        return sum(item.ending is ending for item in self.ended)

    def _next(self) -> tuple[int, Step] | None:
        """When which step comes by itself, in the phase it is in."""
        schedule = self._schedule
        match self.phase:
            case Phase.VALIDATING:
                return schedule.admitted_us, (
                    Step.ADMIT if self._is_sound else Step.REJECT
                )
            case Phase.IN_PROGRESS:
                return schedule.worked_us, (
                    Step.RUN_OUT if self._runs_out else Step.WORK_OFF
                )
            case Phase.FINALIZING:
                return schedule.filed_us, Step.FILE
            case Phase.CANCELLING:
                asked_us = self.entered[Phase.CANCELLING]
                return asked_us + schedule.winding_us, Step.WIND_DOWN
            case _:
                return None

    def _work(self, until_us: int) -> None:
        """End the items that are due, where any are worked on."""
        if Phase.IN_PROGRESS not in self.entered:
            return
        while self._waiting and self._waiting[-1].due_us <= until_us:
            self.ended.append(self._waiting.pop())

    def _abandon(self) -> None:
        """End the items that nobody got to."""
        while self._waiting:
            self.ended.append(replace(self._waiting.pop(), ending=Ending.CANCELED))

    def _take(self, step: Step, moment_us: int) -> None:
        self.phase = TRANSITIONS[self.phase, step]
        self.entered[self.phase] = moment_us
