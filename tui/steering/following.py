"""What becomes of a request that was made here, told as it happens. Pure.

Nothing waits for it: a run may take its time, or not be there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from store.asked import OPEN, Answer, Asked
from store.sums import US_PER_S
from tui.drawing.format import duration
from tui.sources.requests import Requests

PATIENCE_S = 5.0
"""From here on a run that has not answered is said not to have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """Something to be told about a request."""

    sentence: str
    is_bad: bool = False
    is_passing: bool = False  #: more is soon to come


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A request, and how much of its fate was told."""

    id: str
    words: str
    run_id: str
    asked_us: int
    answer: Answer = Answer.WAITING  #: the last that was told
    is_missed: bool = False  #: it was told that nobody answers

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be told."""
        return self.answer not in OPEN

    def see(self, found: Requests, now_us: int) -> tuple[Followed, News | None]:
        """It with what is known by now, and what is new about that."""
        request = next((each for each in found.asked if each.id == self.id), None)
        if request is not None and request.answer is not self.answer:
            return replace(self, answer=request.answer), _told(self, request)
        if self.answer is Answer.WAITING and not self.is_missed:
            news = self._missing(found, now_us)
            return replace(self, is_missed=news is not None), news
        return self, None

    def _missing(self, found: Requests, now_us: int) -> News | None:
        if not found.is_alive:
            return News(
                sentence=f"{self.words}: queued, for no process works on "
                f"{self.run_id}; siftlog resume {self.run_id} takes it up"
            )
        if now_us - self.asked_us < PATIENCE_S * US_PER_S:
            return None
        beat = found.heartbeat_us
        age = None if beat is None else max(0.0, (now_us - beat) / US_PER_S)
        return News(
            sentence=f"{self.words}: the run has not answered (heartbeat "
            f"{duration(age)} ago); the command stays queued: a opens the commands "
            "log, W withdraws it there",
            is_bad=True,
        )


def _told(followed: Followed, request: Asked) -> News:
    words, said = followed.words, request.said
    match request.answer:
        case Answer.APPLIED:
            return News(sentence=f"{words}: requested, accepted, applied: {said}")
        case Answer.REJECTED:
            return News(sentence=f"{words}: refused: {said}", is_bad=True)
        case Answer.ACCEPTED:
            return News(sentence=f"{words}: requested, accepted", is_passing=True)
        case _:
            return News(sentence=f"{words}: withdrawn before it was answered")
