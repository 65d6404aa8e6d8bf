"""Finds the calls of a run that a line of a usage file may belong to.

A line may belong to a call of its model that lasted when the line's began; the clocks
of provider and run may differ by `SKEW_US`. The calls are indexed by model, tokens and
amount, and in each group by time, so that a line meets few of them. Where many calls
are alike, a line meets the nearest ones first; a search that needs the others passes
over those that it has met, so that it meets each call once, not once for each line.
"""

from __future__ import annotations

import enum
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from runner.messages import Usage
from runner.reconcile.attempts import CallOutcome, CallPrices, SentCall
from runner.reconcile.causes import FITTING, Misfit, charge_of, misfit
from runner.reconcile.usage_file import US, UsageLine
from runner.reconcile.usage_forms import COUNTS

SKEW_US: Final = 5 * US
"""Largest difference of two clocks, with the time that a request is under way."""

RESOLUTION_US: Final = 10_000
"""Resolution of times in usage files, many of which have milliseconds."""

LONGEST_US: Final = 3_600 * US
"""Largest duration of a call whose end is not known, in a batch one day."""

DAY_US: Final = 24 * LONGEST_US

MOST_NEAR: Final = 30
"""Calls with the same tokens that are tried first: the nearest ones in time."""


_counts: Final = attrgetter(*COUNTS)


class _Fit(enum.Enum):
    """Degree of agreement of a line and a call."""

    RIGHT = enum.auto()  #: cost, and all tokens that the line states, are as in the log
    ALIKE = enum.auto()  #: cost, prompt and output are, but not the parts of the prompt
    SAME = enum.auto()  #: as RIGHT, at another cost
    NEAR = enum.auto()  #: as ALIKE, at another cost
    SETTLED = enum.auto()  #: of the reply the prompt is known, which is the same
    WITHIN = enum.auto()  #: nothing is known of the reply, and the bound is kept
    PROMPT = enum.auto()  #: as SETTLED, at another price than that of its tokens
    POSSIBLE = enum.auto()  #: as WITHIN, at another price than that of its tokens
    PARTLY = enum.auto()  #: prompt or output is the same
    FREE = enum.auto()  #: the call was refused, so it should have no line


LEVELS: Final = {
    (fit, is_late): level
    for level, (is_late, fit) in enumerate(
        (
            *((False, fit) for fit in (_Fit.RIGHT, _Fit.ALIKE)),
            *((True, fit) for fit in (_Fit.RIGHT, _Fit.ALIKE)),
            # calls without a right line; then those that may have none
            *((False, fit) for fit in (_Fit.SAME, _Fit.NEAR)),
            *((False, fit) for fit in (_Fit.SETTLED, _Fit.WITHIN, _Fit.PARTLY)),
            *((True, fit) for fit in (_Fit.SETTLED, _Fit.WITHIN)),
            *((False, fit) for fit in (_Fit.PROMPT, _Fit.POSSIBLE, _Fit.FREE)),
            *((True, fit) for fit in (_Fit.SAME, _Fit.NEAR, _Fit.PARTLY)),
            *((True, fit) for fit in (_Fit.PROMPT, _Fit.POSSIBLE, _Fit.FREE)),
        )
    )
}
"""The order of matching, by fit, and whether the call did not last when the line began.

What bills no call wrongly comes before what does, except where an answered call would
be left without a line.
"""

_MISBILLED: Final = frozenset(
    {*(_Fit.SAME, _Fit.NEAR, _Fit.PROMPT, _Fit.POSSIBLE, _Fit.PARTLY, _Fit.FREE)}
)

RIGHT_LEVELS: Final = 4
"""Levels of lines that bill an answered call as the log expects."""

LOOSE_LEVELS: Final = frozenset(
    level
    for (fit, _), level in LEVELS.items()
    if fit not in {_Fit.RIGHT, _Fit.ALIKE, _Fit.SAME}
)
"""Levels of lines that have other tokens than a reply in the log, or none to have."""

_FIRST_LATE: Final = LEVELS[_Fit.RIGHT, True]
"""The first level of calls that did not last when their line began."""


class CallCandidate(NamedTuple):
    """A call that a line may belong to."""

    level: int
    unequal: int  #: counts that the line states otherwise
    since_us: int  #: between the starts of call and line
    call: int  #: index
    is_expected: bool  #: nothing would be misbilled
    is_late: bool  #: the call did not last when the line began


class Passed:
    """Calls that a search passes over: each is met once in a span, not once a line."""

    def __init__(self, is_passed: Callable[[int], bool]) -> None:
        self.is_passed = is_passed  #: of a call; true until `forget`
        self._links: dict[_Span, _Links] = {}

    def links(self, span: _Span) -> _Links:
        """Return the ways over passed calls of a span."""
        return self._links.setdefault(span, _Links({}, {}))

    def forget(self) -> None:
        """Meet all calls again, because fewer are passed than before."""
        self._links.clear()


class _Links(NamedTuple):
    """Positions of passed calls, with one that is nearer to the next other call."""

    earlier: dict[int, int]
    later: dict[int, int]


def _follow(links: dict[int, int], at: int) -> int:
    """Return the next position that is not passed, and shorten the way there."""
    while at in links:
        following = links[at]
        links[at] = links.get(following, following)
        at = links[at]
    return at


class _Span:
    """Calls with something in common, in the order of their starts."""

    def __init__(self) -> None:
        self._calls: list[tuple[int, int, int]] = []  #: starts, indices, ends
        self._longest_us = 0

    def add(self, i: int, start_us: int, end_us: int) -> None:
        self._calls.append((start_us, i, end_us))
        self._longest_us = max(self._longest_us, end_us - start_us)

    def near(
        self, at_us: int, apart_us: int, passed: Passed
    ) -> Iterator[tuple[int, int]]:
        """Yield the calls that may have lasted at a time, the nearest start first.

        With each call comes the time between its start and the time.

        Args:
            at_us: the time.
            apart_us: largest time between it and a call.
            passed: calls that are left out.
        """
        calls, links = self._calls, passed.links(self)
        middle = bisect_left(calls, (at_us, -1))
        first = bisect_left(calls, (at_us - self._longest_us - apart_us, -1))
        last = bisect_right(calls, (at_us + apart_us + 1, -1))
        before = _follow(links.earlier, middle - 1)
        after = _follow(links.later, middle)
        while before >= first or after < last:
            is_before = after >= last or (
                before >= first and at_us - calls[before][0] < calls[after][0] - at_us
            )
            at = before if is_before else after
            start_us, call, end_us = calls[at]
            if passed.is_passed(call):
                links.earlier[at], links.later[at] = at - 1, at + 1
            elif end_us >= at_us - apart_us:
                yield abs(start_us - at_us), call
            if is_before:
                before = _follow(links.earlier, at - 1)
            else:
                after = _follow(links.later, at + 1)


_Kind: TypeAlias = tuple[str, str | None, bool]
"""Model as requested, model that served, and whether the call is of a batch."""

_Sign: TypeAlias = tuple[str | int | None, ...]
"""Something that a line states of its call, such as `("out", 50)`."""


class Nearest(NamedTuple):
    """The nearest calls that a line may belong to, and where the others are."""

    candidates: list[CallCandidate]  #: the best first
    spans: list[tuple[_Fit, tuple[_Span, ...]]]  #: of all, with the best fit of each
    is_cut: bool  #: there may be others


class CallIndex:
    """Calls by what a line states of them: model, time, tokens, amount."""

    def __init__(
        self,
        calls: Sequence[SentCall],
        indices: Iterable[int],
        prices: CallPrices,
        tolerance_pico: int,
    ) -> None:
        self._calls, self._prices = calls, prices
        self._tolerance_pico = tolerance_pico
        self._kinds: dict[_Kind, SentCall] = {}  #: with one call of each
        self._named: dict[str | None, list[_Kind]] = {}
        self._spans: dict[tuple[_Kind, _Sign], dict[int, _Span]] = defaultdict(dict)
        self._all = Passed(lambda _: False)
        for i in sorted(indices, key=lambda i: calls[i].started_us):
            call = calls[i]
            kind = (call.model, call.served_model, call.is_batched)
            self._kinds[kind] = call
            end_us = _end_us(call)
            # durations of one length differ by a factor of 4, so that a search meets
            # few calls that had ended
            length = (end_us - call.started_us).bit_length() // 2
            for sign in self._signs(call):
                span = self._spans[kind, sign].setdefault(length, _Span())
                span.add(i, call.started_us, end_us)
        # the same request has the same prompt tokens whenever it is sent
        self._prompts = {
            call.request_sha256: call.usage.tokens_in
            for call in calls
            if call.usage is not None
        }

    def _signs(self, call: SentCall) -> Iterator[_Sign]:
        if call.usage is None:
            is_failed = call.outcome is CallOutcome.FAILED
            yield ("failed",) if is_failed else ("open",)
            return
        tokens_in, tokens_out = call.usage.tokens_in, call.usage.tokens_out
        yield ("answered",)
        yield "in", tokens_in
        yield "out", tokens_out
        yield "both", tokens_in, tokens_out
        if call.cost_pico is not None:
            yield "cost", self._amount(call.cost_pico)
        else:
            yield ("unpriced",)
            yield "unpriced", tokens_in, tokens_out

    def _amount(self, pico: int) -> int:
        """Round, so that equal amounts differ by 1 at most."""
        return pico // (self._tolerance_pico + 1)

    def rightly_billed(self, line: UsageLine) -> Nearest:
        """Return the calls that a line bills as the log expects."""
        nearest = self._nearest(line, self._right_signs(line))
        right = [c for c in nearest.candidates if c.level < RIGHT_LEVELS]
        return nearest._replace(candidates=right)

    def with_its_tokens(self, line: UsageLine) -> list[CallCandidate]:
        """Return the nearest answered calls with prompt and output of a line.

        A line that does not state them has only its amount.
        """
        if not line.has_tokens:
            return self.rightly_billed(line).candidates
        return self._nearest(line, [(_Fit.RIGHT, _both(line))]).candidates

    def possible(self, line: UsageLine, *, only_expected: bool = False) -> Nearest:
        """Return all calls that a line may belong to.

        Args:
            line: of the file.
            only_expected: leave out what would be misbilled.
        """
        signs = self._right_signs(line)
        signs += [(_Fit.SETTLED, ("open",)), (_Fit.FREE, ("failed",))]
        if line.has_tokens:
            signs.append((_Fit.RIGHT, ("unpriced", line.tokens_in, line.tokens_out)))
            signs.append((_Fit.SAME, _both(line)))
        else:
            signs.append((_Fit.RIGHT, ("unpriced",)))
        if line.tokens_in is None and line.tokens_out is None:
            signs.append((_Fit.SAME, ("answered",)))
        else:
            fit = _Fit.PARTLY if line.has_tokens else _Fit.SAME
            signs.append((fit, ("in", line.tokens_in)))
            signs.append((fit, ("out", line.tokens_out)))
        if only_expected:
            signs = [(fit, sign) for fit, sign in signs if fit not in _MISBILLED]
        return self._nearest(line, signs)

    def _right_signs(self, line: UsageLine) -> list[tuple[_Fit, _Sign]]:
        amount = self._amount(line.billed_pico or 0)
        near = (amount - 1, amount, amount + 1)
        return [(_Fit.RIGHT, ("cost", amount)) for amount in near]

    def misfit(self, line: UsageLine, candidate: CallCandidate) -> Misfit:
        """Return how little a line fits a call that it may belong to."""
        if candidate.is_expected:
            return FITTING
        call, tolerance_pico = self._calls[candidate.call], self._tolerance_pico
        charge = charge_of(call, line, self._prices, tolerance_pico)
        return misfit(charge, self._prices, tolerance_pico)

    def _nearest(self, line: UsageLine, signs: Iterable[tuple[_Fit, _Sign]]) -> Nearest:
        """Return the nearest calls, of which `signs` have the best fit of each sign."""
        candidates: set[CallCandidate] = set()
        spans: list[tuple[_Fit, tuple[_Span, ...]]] = []
        is_cut = False
        kinds = [] if line.start_us is None else self._kinds_of(line.model)
        for fit, sign in signs:
            for kind in kinds:
                of_sign = tuple(self._spans.get((kind, sign), {}).values())
                fitting = self._fitting(line, of_sign, SKEW_US, self._all)
                nearest = list(islice(fitting, MOST_NEAR))
                candidates.update(nearest)
                spans.append((fit, of_sign))
                is_cut |= len(nearest) == MOST_NEAR
        return Nearest(sorted(candidates), spans, is_cut)

    def further(
        self,
        line: UsageLine,
        spans: Iterable[tuple[_Fit, tuple[_Span, ...]]],
        level: int,
        passed: Passed,
    ) -> Iterator[CallCandidate]:
        """Yield all calls of spans that a line may belong to.

        Args:
            line: of the file.
            spans: its `Nearest.spans`.
            level: of the worst candidate.
            passed: calls that are left out.
        """
        apart_us = RESOLUTION_US if level < _FIRST_LATE else SKEW_US
        for fit, of_sign in spans:
            if LEVELS[fit, False] > level:
                continue
            for candidate in self._fitting(line, of_sign, apart_us, passed):
                if candidate.level <= level:
                    yield candidate

    def _fitting(
        self,
        line: UsageLine,
        spans: Iterable[_Span],
        apart_us: int,
        passed: Passed,
    ) -> Iterator[CallCandidate]:
        at_us = line.start_us or 0
        near = (span.near(at_us, apart_us, passed) for span in spans)
        return filter(None, (self._candidate(i, line) for _, i in merge(*near)))

    def _kinds_of(self, model: str | None) -> list[_Kind]:
        if model not in self._named:
            self._named[model] = [
                kind for kind, call in self._kinds.items() if is_same_model(call, model)
            ]
        return self._named[model]

    def _candidate(self, i: int, line: UsageLine) -> CallCandidate | None:
        call, start_us = self._calls[i], line.start_us or 0
        early_us = call.started_us - start_us
        away_us = max(0, early_us, start_us - _end_us(call))
        if away_us > SKEW_US:
            return None
        unequal = _unequal(call, line)
        fit = (
            self._open_fit(call, line)
            if call.usage is None
            else self._answered_fit(call, call.usage, line, unequal)
        )
        if fit is None:
            return None
        is_late = away_us > RESOLUTION_US
        return CallCandidate(
            level=LEVELS[fit, is_late],
            unequal=unequal,
            since_us=abs(early_us),
            call=i,
            is_expected=fit not in _MISBILLED,
            is_late=is_late,
        )

    def _answered_fit(
        self, call: SentCall, usage: Usage, line: UsageLine, unequal: int
    ) -> _Fit | None:
        billed = line.billed_pico or 0
        is_right = call.cost_pico is None or (
            abs(billed - call.cost_pico) <= self._tolerance_pico
        )
        if not unequal:
            return _Fit.RIGHT if is_right else _Fit.SAME
        same = (line.tokens_in == usage.tokens_in, line.tokens_out == usage.tokens_out)
        if all(same):
            return _Fit.ALIKE if is_right else _Fit.NEAR
        return _Fit.PARTLY if any(same) else None

    def _open_fit(self, call: SentCall, line: UsageLine) -> _Fit | None:
        prompt = self._prompts.get(call.request_sha256)
        if prompt is not None and line.tokens_in and line.tokens_in != prompt:
            return None
        if call.outcome is CallOutcome.FAILED:
            return _Fit.FREE
        if prompt is not None and line.tokens_in:
            return _Fit.SETTLED if self._is_expected(call, line) else _Fit.PROMPT
        is_within = call.possible_pico == 0 or (
            line.billed_pico is not None and line.billed_pico <= call.possible_pico
        )
        if not is_within:
            return None
        return _Fit.WITHIN if self._is_expected(call, line) else _Fit.POSSIBLE

    def _is_expected(self, call: SentCall, line: UsageLine) -> bool:
        charge = charge_of(call, line, self._prices, self._tolerance_pico)
        if charge.expected_pico is None:
            return True
        excess = charge.billed_pico - charge.expected_pico
        return abs(excess) <= self._tolerance_pico


def _both(line: UsageLine) -> _Sign:
    return "both", line.tokens_in, line.tokens_out


def _end_us(call: SentCall) -> int:
    if call.ended_us is not None:
        # a line of that moment is of the call that was sent then
        is_again = call.outcome is CallOutcome.UNKNOWN
        return call.ended_us - 2 * RESOLUTION_US * is_again
    return call.started_us + (DAY_US if call.is_batched else LONGEST_US)


def _unequal(call: SentCall, line: UsageLine) -> int:
    """Return how many counts of a line are others than in the reply."""
    if call.usage is None:
        return 0
    pairs = zip(_counts(line), _counts(call.usage), strict=True)
    return sum(stated not in {None, count} for stated, count in pairs)


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
