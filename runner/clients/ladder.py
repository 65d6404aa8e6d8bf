"""Which of several forms of reply an endpoint is asked for: the best it takes.

No endpoint tells beforehand what it takes. So the best form is asked for first, and
each refusal (`FormRefused`) leaves it, for good, for the next. A refusal is paid with a
request, at most once for each call that was in flight when it came; a resumed run
finds out anew.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from runner.errors import AttemptError, BadRequest, FormRefused

T = TypeVar("T")


class Ladder(Generic[T]):
    """Forms of reply from the best to the plainest, and where an endpoint stands."""

    def __init__(self, *rungs: T) -> None:
        """Begin with the first of *rungs*; the last is what every endpoint takes."""
        self._rungs = rungs
        self._at = 0

    @property
    def rung(self) -> T:
        """What to ask for now."""
        return self._rungs[self._at]

    def met(self, error: AttemptError, asked: T) -> AttemptError:
        """What an attempt that *asked* for a rung ends with.

        Where that rung was refused and another one is below it, the next attempt asks
        for that. There is none below the last: then the request itself is at fault.
        """
        if not isinstance(error, FormRefused):
            return error
        below = self._rungs.index(asked) + 1
        if below < len(self._rungs):
            self._at = max(self._at, below)
            return error
        return BadRequest(
            str(error),
            status=error.status,
            retry_after_s=error.retry_after_s,
            body=error.body,
            headers=error.headers,
        )
