"""Tells a refusal that all tasks of a model share from one of a single prompt.

A wrong model name, a missing route or an option that the endpoint does not take is
refused in every request alike. Failing task after task for it would lose the plan; so
the model is stopped and its tasks stay open. A model that has never answered is
stopped by a first unknown model or route, and by the same words to a few different
requests. One that has answered needs more, in a row: a gateway may lose a model for a
moment, and the request may be at fault.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final

from runner import errors as e
from runner.engine.retry import RULES

ALIKE_AT_FIRST: Final = 5
"""Different tasks refused in the same words before anything was answered."""
ALIKE: Final = 20
"""The same in a row, of a model that has answered; as `runner.limits.breaker`."""
NOT_SERVED: Final = 6
"""Unknown models or routes in a row, of a model that has answered."""
SUSPECT_TRIES: Final = 3
"""Attempts of a refused task while nothing was answered: it may not be at fault. Error
statuses cost nothing."""

_VARIABLE: Final = re.compile(
    r"[0-9a-f]{8,}|[0-9]+|[\"'`][^\"'`]*[\"'`]", re.IGNORECASE
)
"""What differs between refusals of one cause: ids, counts, quoted pieces."""


class Refusals:
    """What one model was refused for, since its last reply."""

    def __init__(self) -> None:
        self._has_answered = False
        self._tasks: defaultdict[str, set[int]] = defaultdict(set)
        self._not_served = 0

    def answered(self) -> None:
        """A reply came: what was refused before was not shared by all."""
        self._has_answered = True
        self._tasks.clear()
        self._not_served = 0

    def is_suspect(self, error: e.AttemptError) -> bool:
        """Whether the refused task should be tried again before it fails."""
        return isinstance(error, e.BadRequest) and self._counts(error)

    def _counts(self, error: e.AttemptError) -> bool:
        """Whether it came from an endpoint, and nothing was answered yet."""
        return not self._has_answered and error.status is not None

    def stops(self, error: e.AttemptError, task: int) -> str | None:
        """Why the model is to be stopped, if *error* settles that."""
        if not RULES[type(error)].may_stop_model:
            return None
        if isinstance(error, e.Unavailable):
            return str(error)
        if isinstance(error, e.NotServed):
            self._not_served += 1
            enough = NOT_SERVED if self._has_answered else 1
            return str(error) if self._not_served >= enough else None
        if error.status is None:
            return None  # a gap in a recording, which nothing sent would fill
        tasks = self._tasks[_VARIABLE.sub("#", str(error))]
        tasks.add(task)
        enough = ALIKE if self._has_answered else ALIKE_AT_FIRST
        if len(tasks) < enough:
            return None
        first = "first " if not self._has_answered else ""
        return f"{len(tasks)} {first}requests were all refused alike: {error}"
