"""Adapts concurrency: increases it while that helps, decreases it after refusals.

`AdaptiveConcurrency` starts slowly and grows in small steps, by latency;
`LearnedConcurrency` learns the limit of an endpoint from its refusals. Sans-IO.

The first reply shows that the endpoint answers, and raises the limit to a quarter of
the ceiling. A round ends when half as many calls as there are slots were sent and
answered. While the slots are used, the limit doubles each round until calls get much
slower; from then on it grows by a twentieth (the figures are those of inspect_ai's
adaptive concurrency). It does not grow in a round with a refusal, or in one that used
less than four fifths of it. `LearnedConcurrency` handles what refusals show about
concurrency.

At a refusal the endpoint is full: the number of calls in flight *is* the limit, unless
more of them passed a moment ago. A limit that is refused again before it was raised was
too high (replies are in transit for a moment after the endpoint has finished them) and
is cut a little deeper each time. If even that does not help, the refusals have nothing
to do with calls in flight, and the limit is *doubtful*.
"""

from __future__ import annotations

from statistics import median

from runner.limits.learned_rate import QUIET_S, UpwardSteps

START = 8
QUARTER = 0.25
"""Share of the ceiling from the first reply on."""
UNPACED = 64
"""Maximum limit at the first reply if no rate is known: more calls at once would exceed
many limits before the first refusal could arrive."""
DOUBLING = 2.0
INCREASE = 1.05
USED = 0.8
"""Share of the slots that must be used before the limit is judged."""
FEWEST = 8
"""Minimum latencies per median; fewer would fluctuate, as calls of one model differ
widely."""
KNEE = 1.7
"""A doubling that makes calls this much slower gains less than a fifth of
throughput."""
KNEE_S = 0.005
"""Smaller differences are due to the event loop, not the endpoint."""


class AdaptiveConcurrency:
    """The concurrency limit of one model, at most the user's ceiling."""

    def __init__(self, ceiling: int, start: int = START) -> None:
        """Start with *start* slots, or with *ceiling* if that is lower."""
        self._ceiling = ceiling
        self._limit = float(min(start, ceiling))
        self._is_doubling = True
        self._is_untried = True
        self._last_median: float | None = None
        self._first_s: list[float] = []  #: latencies of calls before the first reply
        self._begin(float("-inf"))

    def _begin(self, now: float) -> None:
        self._began = now
        self._latencies_s: list[float] = []
        self._most = 0
        self._is_clean = True

    @property
    def limit(self) -> int:
        """Maximum number of calls in flight."""
        return int(self._limit)

    @property
    def ceiling(self) -> int:
        """The user's ceiling."""
        return self._ceiling

    def set_ceiling(self, ceiling: int) -> None:
        """Set the ceiling; growth towards a higher one starts fast again."""
        self._ceiling = ceiling
        self._limit = min(self._limit, float(ceiling))

    def answered(
        self, now: float, sent_at: float, in_flight: int, *, is_paced: bool = False
    ) -> None:
        """Record a reply to a call of *sent_at*, one of *in_flight* calls.

        *is_paced*: a known rate limit holds requests back.
        """
        if self._is_untried:
            self._is_untried = False
            if self._is_clean:
                self._start_up(now, is_paced)
        self._most = max(self._most, in_flight)
        if sent_at < self._began:
            if self._last_median is None:
                self._first_s.append(now - sent_at)
            return
        self._latencies_s.append(now - sent_at)
        if len(self._latencies_s) >= self.limit / 2:
            self._close_round(now)

    def _start_up(self, now: float, is_paced: bool) -> None:
        start = int(self._ceiling * QUARTER)
        start = start if is_paced else min(start, UNPACED)
        if start > self._limit:
            self._limit = float(start)
            self._begin(now)

    def _close_round(self, now: float) -> None:
        if self._is_clean and self._most >= USED * self.limit:
            self._detect_knee()
            grown = max(self._limit * INCREASE, self._limit + 1.0)
            self._limit = min(
                self._limit * DOUBLING if self._is_doubling else grown, self._ceiling
            )
        self._begin(now)

    def _detect_knee(self) -> None:
        if len(self._latencies_s) < FEWEST:
            return
        median_s = median(self._latencies_s)
        before, self._last_median = self._last_median, median_s
        if before is None and len(self._first_s) >= FEWEST:
            before = median(self._first_s)
        if before is not None and median_s > KNEE * before + KNEE_S:
            self._is_doubling = False

    def refused(self) -> None:
        """Record a refusal of any kind: the limit does not grow in this round."""
        self._is_clean = False


LESS = 1 / 64
"""First cut without effect; doubled each further time."""
MOST_DOUBLINGS = 10
"""Maximum doublings; the cut covers the whole limit long before."""
NEAR_LIMIT = 0.9
"""A call refused beside fewer calls than this share of the limit counts as refused in
vain, because the limit was hardly the cause."""
OFTEN = 5
"""Refusals in a row that make a limit doubtful; by then it is 0.78 of the first."""
QUIET_ROUNDS = 30
"""Requests for each slot before the first step after a refusal; doubled after each
refused step, up to `QUIET_REQUESTS`. One slot would need minutes for those."""


class LearnedConcurrency:
    """The learned concurrency limit; unlimited until a refusal."""

    def __init__(self) -> None:
        self.drop()

    def drop(self) -> None:
        """Forget the limit."""
        self._limit = float("inf")
        self._climb = UpwardSteps()
        self._cut_at = float("-inf")
        self._held = self._limit  #: the limit before its last upward step
        self._steps_refused = 0
        self._proven = 0  #: most calls in flight that passed lately
        self._proven_at = float("-inf")

    @property
    def limit(self) -> float:
        """Maximum number of calls in flight; infinite if nothing was learned."""
        return int(self._limit) if self.is_learned else self._limit

    @property
    def is_learned(self) -> bool:
        """Whether a refusal has set a limit."""
        return self._limit < float("inf")

    @property
    def is_doubtful(self) -> bool:
        """Whether a lower limit does not reduce refusals."""
        return self._climb.in_vain >= OFTEN

    @property
    def share(self) -> float:
        """Share of refused requests since the limit became doubtful."""
        return self._climb.share

    def sent(self, now: float, among: int) -> None:
        """Record a call sent while *among* others are in flight."""
        if not self.is_learned:
            return
        if among + 1 < self.limit:
            self._climb.slack()
        if step := self._climb.sent(now):
            self._held = self._limit
            self._limit = max(self._limit * (1 + step), self._limit + 1.0)

    def passed(self, now: float, sent_at: float, among: int) -> None:
        """Record that the endpoint took a call sent beside *among* others.

        Calls that were sent before a refusal arrived, beside more others than the
        refused one, and pass, show that these were not too many: with a few slow calls
        the first of a burst may be refused by chance.
        """
        if among + 1 >= self._proven or now - self._proven_at > QUIET_S:
            self._proven, self._proven_at = among + 1, now
        if self.is_learned and sent_at <= self._cut_at and among >= self.limit:
            self._limit = self._held = float(max(self._limit, min(among + 1, START)))

    def refused(self, now: float, sent_at: float, among: int) -> None:
        """Record the refusal of a call sent beside *among* others."""
        self._climb.missed()
        if sent_at <= self._cut_at:
            return  # sent before the current limit
        if self._held < self._limit and among >= int(self._held):
            self._limit = min(self._limit, max(self._held, among))
            self._steps_refused += 1
            self._climb.refused()
        elif self.is_learned:
            self._climb.measured()
            self._climb.refused()
        self._climb.measured()
        in_vain = self._climb.in_vain
        cut = LESS * 2 ** min(in_vain - 1, MOST_DOUBLINGS) if in_vain else 0.0
        if among >= NEAR_LIMIT * self._limit or not self.is_learned:
            recent = self._proven if now - self._proven_at <= QUIET_S else 0
            self._limit = min(self._limit, max(among, min(recent, START)))
        self._limit = max(1.0, self._limit * (1 - cut))
        self._held = self._limit
        self._cut_at = now
        doubled = 2 ** min(self._steps_refused, MOST_DOUBLINGS)
        self._climb.rest(now, requests=QUIET_ROUNDS * self._limit * doubled)
