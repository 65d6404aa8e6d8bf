"""Which of several forms of reply an endpoint is asked for: the best it takes.

No endpoint tells beforehand what it takes. So the best form is asked for first, and
each refusal (`FormRefused`) leaves it, for good, for the next. A refusal is paid with a
request, at most once for each call that was in flight when it came; a resumed run
finds out anew.

One task may need a plainer form than the endpoint takes: its reply broke the form
(`FormMissed`), or the server fails on it again and again. Its next attempts go down
from where the endpoint stands (`below`), and the other tasks stay. Where nothing but a
plainer form was ever answered, the endpoint as a whole goes down (`answered`).
"""

from __future__ import annotations

from collections import Counter
from typing import Final, Generic, TypeVar

from runner.errors import (
    AttemptError,
    BadRequest,
    FormMissed,
    FormRefused,
    SchemaMismatch,
)

T = TypeVar("T")

ENOUGH: Final = 3
"""Tasks that were answered in a plainer form alone before all are asked in it."""


class Ladder(Generic[T]):
    """Forms of reply from the best to the plainest, and where an endpoint stands."""

    def __init__(self, *rungs: T) -> None:
        """Begin with the first of *rungs*; the last is what every endpoint takes."""
        self._rungs = rungs
        self._at = 0
        self._answers: Counter[int] = Counter()  #: by rung

    @property
    def rung(self) -> T:
        """What to ask for now."""
        return self.below(0)

    def below(self, steps: int) -> T:
        """The rung that many *steps* below, or the last."""
        return self._rungs[min(self._at + steps, len(self._rungs) - 1)]

    def answered(self, asked: T) -> None:
        """Count a reply to what *asked* for a rung."""
        rung = self._rungs.index(asked)
        self._answers[rung] += 1
        above = sum(self._answers[at] for at in range(self._at, rung))
        if not above and self._answers[rung] >= ENOUGH:
            self._at = max(self._at, rung)

    def met(self, error: AttemptError, asked: T) -> AttemptError:
        """What an attempt that *asked* for a rung ends with.

        Where that rung was refused and another one is below it, the next attempt asks
        for that. There is none below the last: then the request itself is at fault.
        """
        if not isinstance(error, FormRefused | FormMissed):
            return error
        below = self._rungs.index(asked) + 1
        if below < len(self._rungs):
            if isinstance(error, FormRefused):
                self._at = max(self._at, below)
            return error
        final = BadRequest if isinstance(error, FormRefused) else SchemaMismatch
        return final(
            str(error),
            status=error.status,
            retry_after_s=error.retry_after_s,
            body=error.body,
            headers=error.headers,
        )
