"""Which earlier runs a run can be compared with, and on which items.

Two runs are comparable on an item where what must be the same is the same: for a review
its truth and the way of matching, and what was searched, unless runs over other data
are let in. An unfinished run is compared with nothing. A model is held against itself;
the first run of a new one, against a run of one model by a run of one model.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from jobs.history.row import Row
from store.results import Milestone


def akin(now: Milestone, then: Milestone) -> tuple[str, ...]:
    """The items that ask for the same in both, whatever was searched."""
    return tuple(
        item for item, same in now.items.items() if then.items.get(item) == same
    )


def common(now: Row, then: Row, *, across: bool) -> tuple[str, ...]:
    """The items on which two rows are comparable, in the order of *now*.

    Args:
        now: one of them.
        then: the other.
        across: whether other data may have been searched.
    """
    one, other = now.milestone, then.milestone
    if one.partial or other.partial or (one.data != other.data and not across):
        return ()
    return tuple(
        item
        for item in akin(one, other)
        if item in now.standings and item in then.standings
    )


def paired(now: Row, others: Sequence[Row]) -> tuple[Row, ...]:
    """The rows of other models left out, unless there is none of this one's.

    Then runs of one model stay, if *now* is one itself.
    """
    same = tuple(row for row in others if row.model == now.model)
    if same or not now.is_alone:
        return same
    return tuple(row for row in others if row.is_alone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Rows seen so far, by what a later one could share with them."""

    across: bool
    _own: dict[Hashable, tuple[int, Row]] = field(default_factory=dict)
    _alone: dict[Hashable, tuple[int, Row]] = field(default_factory=dict)

    def add(self, place: int, row: Row) -> None:
        """Take in a row that is at *place*, after all before it."""
        for key in self._keys(row):
            self._own[row.model, key] = (place, row)
            if row.is_alone:
                self._alone[key] = (place, row)

    def before(self, row: Row) -> Row | None:
        """The last comparable row."""
        keys = list(self._keys(row))
        found = _last(self._own.get((row.model, key)) for key in keys)
        if found is None and row.is_alone:
            return _last(map(self._alone.get, keys))
        return found

    def _keys(self, row: Row) -> Iterator[Hashable]:
        own = row.milestone
        if not own.partial:
            data = "" if self.across else own.data
            yield from ((item, own.items[item], data) for item in row.standings)


def _last(found: Iterable[tuple[int, Row] | None]) -> Row | None:
    known = [each for each in found if each is not None]
    return max(known, key=lambda each: each[0])[1] if known else None


def with_previous(
    rows: Sequence[Row], *, across: bool
) -> Iterator[tuple[Row, Row | None]]:
    """Each row with the last comparable one before it; *rows* are in order of time."""
    past = Past(across=across)
    for place, row in enumerate(rows):
        yield row, past.before(row)
        past.add(place, row)
