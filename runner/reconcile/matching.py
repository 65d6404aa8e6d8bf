"""Matches the lines of a usage file with the calls of a run.

First by request id: that of the log, then that of the stored reply. What remains is
matched by time, model, tokens and amount, the best candidates first (`candidates`). A
line gives way where it can move to another call. So no line counts as misbilled only
because a line that could be of several calls took its own. Then lines change places
where that leaves fewer causes.

Two calls that ran at the same time at the same cost cannot be told apart without an id;
no sum depends on it. Lines with the same id are one charge and its repetitions.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import takewhile
from typing import Final

from runner.reconcile.attempts import CallPrices, SentCall
from runner.reconcile.candidates import (
    LEVELS,
    LOOSE_LEVELS,
    RIGHT_LEVELS,
    CallCandidate,
    CallIndex,
    Nearest,
    Passed,
)
from runner.reconcile.causes import FITTING, Misfit
from runner.reconcile.usage_file import UsageLine

MOST_EXCHANGED: Final = 100
"""Calls that are tried for a line to change places with others."""


@dataclass(slots=True)
class Matches:
    """Pairs of usage lines and calls."""

    lines: dict[int, list[UsageLine]] = field(default_factory=dict)
    """Lines of a call by its index; several: it was charged more than once."""
    strangers: list[UsageLine] = field(default_factory=list)
    """Lines that belong to no call."""


def match(
    calls: Sequence[SentCall],
    lines: Iterable[UsageLine],
    bodies: Callable[[Sequence[SentCall]], Iterator[tuple[int, str]]],
    prices: CallPrices,
    tolerance_pico: int,
) -> Matches:
    """Match lines with calls.

    Args:
        calls: of the run.
        lines: of single calls.
        bodies: yields positions of calls with the ids in their replies.
        prices: of the run.
        tolerance_pico: largest difference of equal amounts.
    """
    matches = Matches()
    repeats: dict[tuple[str, ...], list[UsageLine]] = {}
    for line in lines:
        repeats.setdefault(_key(line), []).append(line)
    firsts = [same[0] for same in repeats.values()]
    ids = ((i, call.request_id) for i, call in enumerate(calls))
    rest = _by_id(matches, firsts, ids)
    if any(line.ids for line in rest):
        left = [i for i in range(len(calls)) if i not in matches.lines]
        in_bodies = bodies([calls[i] for i in left])
        rest = _by_id(matches, rest, ((left[at], name) for at, name in in_bodies))
    free = (i for i in range(len(calls)) if i not in matches.lines)
    index = CallIndex(calls, free, prices, tolerance_pico)
    rest = _Assignment(rest, index).fill(matches)
    charged = CallIndex(calls, matches.lines, prices, tolerance_pico)
    matches.strangers = _repeats(matches, charged, rest)
    for same in (matches.strangers, *matches.lines.values()):
        same += [again for line in tuple(same) for again in repeats[_key(line)][1:]]
    return matches


def _key(line: UsageLine) -> tuple[str, ...]:
    """Return what lines of the same request share."""
    return line.ids or (f"row {line.row}",)


def _by_id(
    matches: Matches, lines: Iterable[UsageLine], ids: Iterable[tuple[int, str | None]]
) -> list[UsageLine]:
    """Match by id; return the other lines. An id of several calls is none."""
    by_id: dict[str, list[int]] = defaultdict(list)
    for i, name in ids:
        if name is not None:
            by_id[name].append(i)
    rest: list[UsageLine] = []
    for line in lines:
        named = {i for name in line.ids for i in by_id.get(name, ())}
        if len(named) == 1:
            matches.lines.setdefault(named.pop(), []).append(line)
        else:
            rest.append(line)
    return rest


class _Search:
    """Calls that the searches of a level have met."""

    def __init__(self, level: int) -> None:
        self.level = level  #: of the worst candidate
        #: by call: the line that can move there, of the search that is under way
        self.reached: dict[int, tuple[int, CallCandidate]] = {}
        #: calls from which no free one can be reached
        self._exhausted: set[int] = set()
        self.passed = Passed(lambda i: i in self.reached or i in self._exhausted)

    def succeed(self) -> None:
        """End a search that found a free call: the others can be reached again."""
        self.reached.clear()
        self.passed.forget()

    def fail(self) -> None:
        """End a search that found none."""
        self._exhausted.update(self.reached)
        self.reached.clear()


class _Assignment:
    """Lines and their calls, as many as possible, level by level (Kuhn's algorithm)."""

    def __init__(self, lines: Sequence[UsageLine], index: CallIndex) -> None:
        self._lines, self._index = lines, index
        self._line_of: dict[int, int] = {}  #: by call
        self._place_of: dict[int, CallCandidate] = {}  #: by line
        self._held = Passed(self._line_of.__contains__)
        self._misfits: dict[tuple[int, int], Misfit] = {}  #: by line and call

    def fill(self, matches: Matches) -> list[UsageLine]:
        """Match the lines; return those that have no call."""
        right, possible = self._index.rightly_billed, self._index.possible
        self._grow(RIGHT_LEVELS, right, right)
        self._grow(len(LEVELS), possible, partial(possible, only_expected=True))
        self._exchange()
        for number, place in self._place_of.items():
            matches.lines.setdefault(place.call, []).append(self._lines[number])
        return [self._lines[number] for number in self._left()]

    def _left(self) -> list[int]:
        return [n for n in range(len(self._lines)) if n not in self._place_of]

    def _grow(
        self,
        levels: int,
        nearest: Callable[[UsageLine], Nearest],
        of_right: Callable[[UsageLine], Nearest],
    ) -> None:
        """Match the lines that are left with candidates of the first *levels*.

        Args:
            levels: how many.
            nearest: the nearest candidates of a line.
            of_right: of a line that has a call which it bills as expected.
        """

        @cache
        def of_line(number: int, *, is_right: bool) -> Nearest:
            return (of_right if is_right else nearest)(self._lines[number])

        def near(number: int) -> Nearest:
            return of_line(number, is_right=self._is_right(number))

        left = [number for number in self._left() if near(number).candidates]
        left.sort(key=lambda number: near(number).candidates[0])
        for level in range(levels):
            search = _Search(level)
            left = [number for number in left if not self._place(number, near, search)]

    def _is_right(self, number: int) -> bool:
        place = self._place_of.get(number)
        return place is not None and place.level < RIGHT_LEVELS

    def _place(
        self, number: int, near: Callable[[int], Nearest], search: _Search
    ) -> bool:
        """Match a line, and move as few others as possible; return whether it worked.

        Args:
            number: of the line.
            near: the nearest candidates of a line.
            search: of the level.
        """
        waiting = deque([number])
        while waiting:
            mover = waiting.popleft()
            for candidate in self._candidates(mover, near(mover), search):
                call = candidate.call
                if search.passed.is_passed(call) or self._is_worse(mover, candidate):
                    continue
                search.reached[call] = (mover, candidate)
                if call not in self._line_of:
                    self._shift(call, search.reached)
                    search.succeed()
                    return True
                waiting.append(self._line_of[call])
        search.fail()
        return False

    def _candidates(
        self, mover: int, near: Nearest, search: _Search
    ) -> Iterator[CallCandidate]:
        """Yield the calls that a line can move to; free ones first where many fit."""
        level = search.level
        if not near.is_cut or mover not in self._place_of:
            yield from takewhile(lambda c: c.level <= level, near.candidates)
        if near.is_cut:
            line = self._lines[mover]
            yield from self._index.further(line, near.spans, level, self._held)
            yield from self._index.further(line, near.spans, level, search.passed)

    def _is_worse(self, mover: int, candidate: CallCandidate) -> bool:
        """Return whether a right line would be misbilled, or lose its call to such."""
        holder = self._line_of.get(candidate.call)
        return not candidate.is_expected and (
            self._is_right(mover) or (holder is not None and self._is_right(holder))
        )

    def _exchange(self) -> None:
        """Let lines change places as long as they then fit their calls better in sum.

        The levels say which calls have lines, but of several lines that would fit a
        call equally well, they do not say which one another call should have instead.
        """
        nearest = cache(lambda number: self._index.possible(self._lines[number]))
        loose = [number for number in sorted(self._place_of) if self._is_loose(number)]
        has_changed = True
        while has_changed:
            changed = [self._change_places(number, nearest) for number in loose]
            has_changed = any(changed)

    def _is_loose(self, number: int) -> bool:
        return self._place_of[number].level in LOOSE_LEVELS

    def _misfit(self, number: int, candidate: CallCandidate) -> Misfit:
        pair = (number, candidate.call)
        if pair not in self._misfits:
            self._misfits[pair] = self._index.misfit(self._lines[number], candidate)
        return self._misfits[pair]

    def _change_places(self, first: int, nearest: Callable[[int], Nearest]) -> bool:
        """Find a circle of lines that fit better if each takes the call of the next.

        From one of its lines on, a circle that fits better in sum does so all along the
        way. So a way ends where it is no better.

        Args:
            first: line of the circle.
            nearest: the nearest candidates of a line.
        """
        start = self._place_of[first].call
        least: dict[int, Misfit] = {}  #: changes of the sum, by call
        #: with the change of the sum, and by call the line that takes it
        ways: deque[tuple[int, Misfit, dict[int, tuple[int, CallCandidate]]]]
        ways = deque([(first, FITTING, {})])
        while ways and len(least) < MOST_EXCHANGED:
            mover, change, way = ways.popleft()
            place = self._place_of[mover]
            before = change.plus(self._misfit(mover, place), -1)
            if before >= FITTING:
                continue
            for candidate in nearest(mover).candidates:
                call, holder = candidate.call, self._line_of.get(candidate.call)
                is_later = candidate.is_late and not place.is_late
                if holder is None or call == place.call or call in way or is_later:
                    continue
                if not self._is_loose(holder):
                    continue
                after = before.plus(self._misfit(mover, candidate))
                if after >= least.get(call, FITTING):
                    continue
                circle = {**way, call: (mover, candidate)}
                if call == start:
                    for taken, (number, at) in circle.items():
                        self._line_of[taken], self._place_of[number] = number, at
                    return True
                least[call] = after
                ways.append((holder, after, circle))
        return False

    def _shift(self, call: int, reached: dict[int, tuple[int, CallCandidate]]) -> None:
        """Move each line on the way to a free call by one place."""
        free: int | None = call
        while free is not None:
            number, candidate = reached[free]
            before = self._place_of.get(number)
            self._line_of[free], self._place_of[number] = number, candidate
            free = None if before is None else before.call


def _repeats(
    matches: Matches, charged: CallIndex, lines: Sequence[UsageLine]
) -> list[UsageLine]:
    """Match lines that repeat the line of a call; return the other ones."""
    strangers: list[UsageLine] = []
    for line in lines:
        repeated = charged.with_its_tokens(line)
        if repeated:
            matches.lines[repeated[0].call].append(line)
        else:
            strangers.append(line)
    return strangers
