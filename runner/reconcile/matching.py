"""Matches the lines of a usage file with the calls of a run.

First by request id: that of the log, then that of the stored reply. What remains is
matched by time, model and tokens. A line may belong to a call that lasted when the
line's began; the clocks of provider and run may differ by `SKEW_US`. Of the calls that
are possible, those that lasted then come first, then those whose tokens agree best,
then the nearest. Lines with the same id are one charge and its repetitions.

Two calls that ran at the same time with the same tokens cannot be told apart without an
id; their cost is the same, so no sum depends on it.
"""

from __future__ import annotations

import enum
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from runner.messages import Usage
from runner.reconcile.attempts import CallOutcome, SentCall
from runner.reconcile.causes import stated
from runner.reconcile.usage_file import US, UsageLine
from runner.reconcile.usage_forms import COUNTS

SKEW_US: Final = 5 * US
"""Largest difference of two clocks, with the time that a request is under way."""

RESOLUTION_US: Final = 10_000
"""Of times in usage files, many of which have milliseconds."""

LONGEST_US: Final = 3_600 * US
"""Largest duration of a call whose end is not known, in a batch one day."""

DAY_US: Final = 24 * LONGEST_US

MOST_MOVES: Final = 200
"""Calls that are tried for one line: a bound of the recursion."""


class _Fit(enum.IntEnum):
    """How well the tokens of a line and a call agree; smaller is better."""

    SAME = 0  #: all that the line states is the same
    NEAR = 1  #: prompt and output are the same, but not their parts
    PROMPT = 2  #: the prompt is the same; no more is known of the call
    POSSIBLE = 3  #: nothing is known of the call, and the cost is within its bound
    PARTLY = 4  #: prompt or output is the same
    FREE = 5  #: the call was refused, so it should have no line


class _Candidate(NamedTuple):
    """A call that a line may belong to."""

    level: int  #: of the fit; those that did not last then come after all others
    unequal: int  #: counts that the line states otherwise
    since_us: int  #: between the starts of call and line
    call: int  #: index


@dataclass(slots=True)
class Matches:
    """Which line belongs to which call."""

    lines: dict[int, list[UsageLine]] = field(default_factory=dict)
    """Lines of a call by its index; several: it was charged more than once."""
    strangers: list[UsageLine] = field(default_factory=list)
    """Lines that belong to no call."""


def match(
    calls: Sequence[SentCall],
    lines: Iterable[UsageLine],
    bodies: Callable[[Sequence[SentCall]], Iterator[tuple[int, str]]],
) -> Matches:
    """Match lines with calls.

    Args:
        calls: of the run.
        lines: of single calls.
        bodies: yields positions of calls with the ids in their replies.
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
    rest = _by_tokens(matches, calls, rest)
    matches.strangers = _repeats(matches, calls, rest)
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


class _Candidates:
    """Calls by time, and what is known of their tokens."""

    def __init__(
        self,
        calls: Sequence[SentCall],
        free: Iterable[int],
        prompts: Mapping[str, int] | None = None,
    ) -> None:
        self._calls = calls
        self._prompts = prompts or {}
        self._indices = sorted(free, key=lambda i: calls[i].started_us)
        self._starts = [calls[i].started_us for i in self._indices]
        self._longest = max(
            (self._end(calls[i]) - calls[i].started_us for i in self._indices),
            default=0,
        )

    @staticmethod
    def _end(call: SentCall) -> int:
        if call.ended_us is not None:
            # a line of that moment is of the call that was sent then
            is_again = call.outcome is CallOutcome.UNKNOWN
            return call.ended_us - 2 * RESOLUTION_US * is_again
        return call.started_us + (DAY_US if call.is_batched else LONGEST_US)

    def of(self, line: UsageLine) -> list[_Candidate]:
        """Return the possible calls of a line, the most likely first."""
        if line.start_us is None:
            return []
        first = bisect_left(self._starts, line.start_us - self._longest - SKEW_US)
        last = bisect_right(self._starts, line.start_us + SKEW_US)
        possible: list[_Candidate] = []
        for i in self._indices[first:last]:
            call = self._calls[i]
            if not is_same_model(call, line.model):
                continue
            late_us = line.start_us - self._end(call)
            early_us = call.started_us - line.start_us
            away_us = max(0, early_us, late_us)
            fit = self._fit(call, line)
            if away_us <= SKEW_US and fit is not None:
                level = fit + (len(_Fit) if away_us > RESOLUTION_US else 0)
                possible.append(
                    _Candidate(level, _unequal(call, line), abs(early_us), i)
                )
        return sorted(possible)

    def _fit(self, call: SentCall, line: UsageLine) -> _Fit | None:
        if call.usage is not None:
            return _answered_fit(call.usage, line)
        prompt = self._prompts.get(call.request_sha256)
        if prompt is not None and line.tokens_in and line.tokens_in != prompt:
            return None
        if call.outcome is CallOutcome.FAILED:
            return _Fit.FREE
        if prompt is not None and line.tokens_in:
            return _Fit.PROMPT
        is_within = call.possible_pico == 0 or (
            line.billed_pico is not None and line.billed_pico <= call.possible_pico
        )
        return _Fit.POSSIBLE if is_within else None


def _unequal(call: SentCall, line: UsageLine) -> int:
    """Return how many counts of a line are others than in the reply."""
    if call.usage is None:
        return 0
    billed = stated(line, call.usage)
    return sum(getattr(billed, n) != getattr(call.usage, n) for n in COUNTS)


def _answered_fit(usage: Usage, line: UsageLine) -> _Fit | None:
    if stated(line, usage) == usage:
        return _Fit.SAME
    same = (line.tokens_in == usage.tokens_in, line.tokens_out == usage.tokens_out)
    if all(same):
        return _Fit.NEAR
    return _Fit.PARTLY if any(same) else None


def is_same_model(call: SentCall, name: str | None) -> bool:
    """Return whether a line names the call's model, dated or not, or none."""
    if name is None:
        return True
    bare = _bare(name)
    known = {_bare(call.model), _bare(call.served_model or call.model)}
    return any(
        bare == other or bare.startswith(f"{other}-") or other.startswith(f"{bare}-")
        for other in known
    )


def _bare(name: str) -> str:
    return name.rpartition("/")[2].partition(":")[0].lower()


def _by_tokens(
    matches: Matches, calls: Sequence[SentCall], lines: Sequence[UsageLine]
) -> list[UsageLine]:
    """Match by time, model and tokens; return the other lines.

    Lines with the tokens of a call come first, each against the few calls that have
    them, so that the other lines meet only the calls that remain.
    """
    same = _by_counts(calls, (i for i in range(len(calls)) if i not in matches.lines))
    rest: list[UsageLine] = []
    grouped: dict[_Counts, list[UsageLine]] = defaultdict(list)
    for line in lines:
        counts = (line.tokens_in, line.tokens_out)
        if counts in same:
            grouped[counts].append(line)
        else:
            rest.append(line)
    for counts, group in grouped.items():
        # a call that did not last then may have a line with other tokens
        lasting = len(_Fit)
        rest += _assign(matches, group, _Candidates(calls, same[counts]), lasting)
    free = (i for i in range(len(calls)) if i not in matches.lines)
    # the same request has the same prompt tokens whenever it is sent
    prompts = {
        call.request_sha256: call.usage.tokens_in
        for call in calls
        if call.usage is not None
    }
    return _assign(matches, rest, _Candidates(calls, free, prompts))


_Counts: TypeAlias = tuple[int | None, int | None]


def _by_counts(
    calls: Sequence[SentCall], indices: Iterable[int]
) -> dict[_Counts, list[int]]:
    """Return the indices of calls by their prompt and output tokens."""
    by_counts: dict[_Counts, list[int]] = defaultdict(list)
    for i in indices:
        usage = calls[i].usage
        if usage is not None:
            by_counts[usage.tokens_in, usage.tokens_out].append(i)
    return by_counts


def _assign(
    matches: Matches,
    lines: Sequence[UsageLine],
    free: _Candidates,
    levels: int = 2 * len(_Fit),
) -> list[UsageLine]:
    """Match as many lines as possible, the best fits first; return the other ones.

    A line gives way where it can move to another call of the same fit (Kuhn's
    algorithm).
    """
    possible = [free.of(line) for line in lines]
    line_of: dict[int, int] = {}
    call_of: dict[int, int] = {}

    def place(number: int, worst: int, seen: set[int]) -> bool:
        calls = [
            i
            for level, *_, i in possible[number]
            if level <= worst and i not in seen and len(seen) <= MOST_MOVES
        ]
        # no line gives way where a call is free
        for i in sorted(calls, key=line_of.__contains__):
            seen.add(i)
            if i not in line_of or place(line_of[i], worst, seen):
                line_of[i], call_of[number] = number, i
                return True
        return False

    nearest = sorted(
        (number for number in range(len(lines)) if possible[number]),
        key=lambda number: possible[number][0],
    )
    for worst in range(levels):
        for number in nearest:
            if number not in call_of:
                place(number, worst, set())
    for number, i in call_of.items():
        matches.lines.setdefault(i, []).append(lines[number])
    return [line for number, line in enumerate(lines) if number not in call_of]


def _repeats(
    matches: Matches, calls: Sequence[SentCall], lines: Sequence[UsageLine]
) -> list[UsageLine]:
    """Match lines that repeat the line of a call; return the other ones."""
    charged = _by_counts(calls, matches.lines)
    strangers: list[UsageLine] = []
    for line in lines:
        same = charged.get((line.tokens_in, line.tokens_out), ())
        possible = _Candidates(calls, same).of(line)
        if possible:
            matches.lines[possible[0].call].append(line)
        else:
            strangers.append(line)
    return strangers
