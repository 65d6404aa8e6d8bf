"""Decides what follows failures: a retry, or the stop of a model.

`RETRY_RULES` is one table from error class to decision. The table decides; the
scheduler waits and the driver acts. Retries are always bounded: per class, per task and
by the task's overall deadline.

`Refusals` distinguishes a refusal of all tasks of a model from one of a single prompt.

`FutilityMonitor` stops a model whose replies are useless (`--stop-if`).

A wrong model name, a missing route or an option that the endpoint does not take is
refused in every request. Failing every task would lose the plan, so the model is
stopped and its tasks stay open. A model that has never answered is stopped by a first
unknown model or route, and by the same words to a few different requests. One that has
answered needs more, in a row: a gateway may lose a model for a moment, and the request
may be at fault.

A rule names a kind of outcome and a share, such as `unparsed>50%`. Outcomes are tested
one by one as they arrive, per model and rule, and the rule fires as soon as the share
is significantly above the limit. The test runs after every outcome, so it is
sequential. Let p0 be the limit and let S of the n outcomes so far be of the kind. Then

    E_n = mean over q of (q / p0)^S * ((1 - q) / (1 - p0))^(n - S)

with q on a fixed grid between p0 and 1 is a mixture of likelihood ratios (Wald,
"Sequential Analysis", 1947; Robbins, "Statistical methods related to the law of the
iterated logarithm", 1970). As long as every outcome is of the kind with a chance of at
most p0, given those before it, E is a non-negative supermartingale that starts at 1. By
Ville's inequality the chance that it ever reaches 1 / alpha is at most alpha. So a
model whose true share is at the limit or below is stopped by mistake in at most one of
1 / alpha runs, however many outcomes there are.

The bound assumes that order is unrelated to quality. Under concurrency the fastest
replies come first, so the first verdict waits for `LEAST_OUTCOMES` outcomes.
"""

from __future__ import annotations

import enum
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from runner import errors as e
from runner.messages import AnyReply, ParseFailure, Reply

MAX_ATTEMPTS = 24
"""Attempts of one task over all classes: a publicly reported run repeated one request
1,149 times in 24 days because nothing bounded the sum."""


MOST_DOUBLINGS = 30
"""Maximum doublings of a backoff: above every cap, far below float overflow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRule:
    """Handling of one class of failure."""

    max_attempts: int  #: attempts that may end this way before the task fails; 1: final
    base_s: float = 1.0  #: first backoff is drawn from (0, base]; it doubles
    cap_s: float = 60.0
    stops_endpoint: bool = False  #: nothing more is sent to the endpoint
    may_stop_model: bool = False
    """All tasks of the model may share it: see `runner.engine.failure_policy`."""
    is_billed: bool = False  #: it may be billed: the provider may have done its work
    is_counted: bool = True  #: counts against the bounds on a task's attempts


RETRY_RULES: Mapping[type[e.AttemptError], RetryRule] = {
    e.RateLimited: RetryRule(max_attempts=16),
    e.Overloaded: RetryRule(max_attempts=10, base_s=2.0),
    e.ServerError: RetryRule(max_attempts=8),
    e.Timeout: RetryRule(max_attempts=4, base_s=2.0, is_billed=True),
    e.ConnectionLost: RetryRule(max_attempts=8, base_s=0.5, is_billed=True),
    # bounded by the task's deadline: neither the task nor the endpoint is at fault
    e.OutOfFiles: RetryRule(max_attempts=MAX_ATTEMPTS, is_counted=False),
    e.MalformedReply: RetryRule(max_attempts=6, base_s=0.5, is_billed=True),
    # `Refusals` distinguishes a refusal of all tasks from one of a single prompt
    e.BadRequest: RetryRule(max_attempts=1, may_stop_model=True),
    e.NotServed: RetryRule(max_attempts=6, may_stop_model=True),
    e.Unavailable: RetryRule(max_attempts=6, may_stop_model=True),
    e.AuthFailed: RetryRule(max_attempts=1, stops_endpoint=True),
    e.QuotaSpent: RetryRule(max_attempts=1, stops_endpoint=True),
    # batches take up to a day, which is backoff enough
    e.Expired: RetryRule(max_attempts=4, base_s=0.0),
    # at once, in a simpler form: its client never repeats a refused one
    e.FormRefused: RetryRule(max_attempts=1, base_s=0.0, is_counted=False),
    e.OptionRefused: RetryRule(max_attempts=1, stops_endpoint=True, is_counted=False),
    # its client omits the schema that caused the error
    e.ContentFault: RetryRule(max_attempts=3, base_s=0.5),
    e.ContextTooLong: RetryRule(max_attempts=1),
    e.ContentFiltered: RetryRule(max_attempts=1),
    # the job's setting `reask` decides, not a backoff
    e.SchemaMismatch: RetryRule(max_attempts=1),
    e.BudgetExceeded: RetryRule(max_attempts=1),
    e.Cancelled: RetryRule(max_attempts=1, is_billed=True, is_counted=False),
    # the same code would raise again
    e.JobFault: RetryRule(max_attempts=1),
}


BILLED: Final = frozenset(
    error.__name__ for error, rule in RETRY_RULES.items() if rule.is_billed
)
"""Names of the classes of failure that may be billed."""


def may_be_billed(error: e.AttemptError) -> bool:
    """Return whether a failed attempt may cost money; an error status never does."""
    is_refused = error.status is not None and error.status >= HTTPStatus.BAD_REQUEST
    return RETRY_RULES[type(error)].is_billed and error.was_sent and not is_refused


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDecision:
    """Decision after a failure."""

    retry_in_s: float | None  #: None: the task has failed
    pause_endpoint_s: float = 0.0  #: the endpoint asked all clients to wait this long


def decide_retry(
    error: e.AttemptError,
    *,
    same: int,
    attempts: int,
    elapsed_s: float,
    deadline_s: float,
    chance: float,
) -> RetryDecision:
    """Return the decision for a task whose attempt just ended with *error*.

    Args:
        error: the attempt's error.
        same: attempts of the task that ended this way, this one included.
        attempts: attempts of the task that count, this one included.
        elapsed_s: since the task's first attempt in this process.
        deadline_s: no retry may start later than this.
        chance: uniform in [0, 1); full jitter (Brooker, "Exponential Backoff And
            Jitter", 2015): delay = chance * min(cap, base * 2^(same - 1)).
    """
    rule = RETRY_RULES[type(error)]
    requested_s = error.retry_after_s or 0.0
    pause = requested_s if isinstance(error, e.RateLimited | e.Overloaded) else 0.0
    if rule.stops_endpoint:
        # the task stays open: it has no fault
        return RetryDecision(retry_in_s=0.0)
    # while an endpoint is out, its probes fail for as long as that takes
    doublings = min(same - 1, MOST_DOUBLINGS)
    backoff_s = min(rule.cap_s, rule.base_s * 2.0**doublings)
    delay = max(requested_s, chance * backoff_s)
    spent = same >= rule.max_attempts or attempts >= MAX_ATTEMPTS
    if spent or elapsed_s + delay > deadline_s:
        return RetryDecision(retry_in_s=None, pause_endpoint_s=pause)
    return RetryDecision(retry_in_s=delay, pause_endpoint_s=pause)


SAME_REFUSALS_AT_FIRST: Final = 5
"""Different tasks refused in the same words before anything was answered."""
SAME_REFUSALS: Final = 20
"""The same in a row, of a model that has answered; as `runner.limits.breaker`."""
NOT_SERVED: Final = 6
"""Unknown models or routes in a row, of a model that has answered."""
SUSPECT_ATTEMPTS: Final = 3
"""Attempts of a refused task while no task was answered: the task may not be at fault.
Error statuses cost nothing."""

_VARIABLE: Final = re.compile(
    r"[0-9a-f]{8,}|[0-9]+|[\"'`][^\"'`]*[\"'`]", re.IGNORECASE
)
"""Parts that vary between refusals of one cause: ids, counts, quotations."""


class Refusals:
    """Refusals of one model since its last reply."""

    def __init__(self) -> None:
        self._has_answered = False
        self._tasks: defaultdict[str, set[int]] = defaultdict(set)
        self._not_served = 0

    def answered(self) -> None:
        """Record a reply: earlier refusals did not concern all tasks."""
        self._has_answered = True
        self._tasks.clear()
        self._not_served = 0

    def is_suspect(self, error: e.AttemptError) -> bool:
        """Return whether the refused task should be retried before it fails."""
        return isinstance(error, e.BadRequest) and self._counts(error)

    def _counts(self, error: e.AttemptError) -> bool:
        """Return whether an endpoint refused and nothing was answered yet."""
        return not self._has_answered and error.status is not None

    def stops(self, error: e.AttemptError, task: int) -> str | None:
        """Return why *error* stops the model; None if it does not."""
        if not RETRY_RULES[type(error)].may_stop_model:
            return None
        if isinstance(error, e.Unavailable):
            return str(error)
        if isinstance(error, e.NotServed):
            self._not_served += 1
            enough = NOT_SERVED if self._has_answered else 1
            return str(error) if self._not_served >= enough else None
        if error.status is None:
            return None  # a gap in a recording, which no request can fill
        tasks = self._tasks[_VARIABLE.sub("#", str(error))]
        tasks.add(task)
        enough = SAME_REFUSALS if self._has_answered else SAME_REFUSALS_AT_FIRST
        if len(tasks) < enough:
            return None
        first = "first " if not self._has_answered else ""
        return f"{len(tasks)} {first}requests were all refused alike: {error}"


ALPHA: Final = 0.001
"""Maximum chance of stopping a model whose true share is at the limit."""
LEAST_OUTCOMES: Final = 20
"""Outcomes before the first verdict."""
GRID: Final = 32
"""Alternatives q in the mixture: a finer grid detects no earlier by a whole outcome."""
OFF: Final = "off"
GO_ON: Final = f"--stop-if {OFF}"
"""Hint in the message of a stop: how to continue despite useless replies."""
DEFAULT: Final = "unusable>50%"
"""The default rule, above which most of the paid work is lost."""

_RULE: Final = re.compile(r"\s*([a-z]+)\s*>\s*(\d{1,2}(?:\.\d+)?)\s*%\s*")


class Flaw(enum.StrEnum):
    """A fault of an outcome, which is a reply or a failed task."""

    UNUSABLE = "unusable"  #: truncated, empty, unparsed, or failed by the job's code
    TRUNCATED = "truncated"  #: the reply ended at the output limit
    EMPTY = "empty"  #: the reply has no text
    UNPARSED = "unparsed"  #: the parser could not read the reply
    REFUSED = "refused"  #: the model declined
    FILTERED = "filtered"  #: the provider's filter intervened
    FAILED = "failed"  #: the task ended without a reply
    JOB_FAULT = "raised"  #: the task failed in the job's code


_WASTE: Final = {Flaw.TRUNCATED, Flaw.EMPTY, Flaw.UNPARSED, Flaw.JOB_FAULT}

_ADVICE: Final[Mapping[Flaw, str]] = {
    Flaw.JOB_FAULT: "fix the job",
    Flaw.TRUNCATED: "raise the output limit or lower the reasoning effort",
    Flaw.EMPTY: "inspect a reply with 'siftlog tasks'",
    Flaw.REFUSED: "change the prompt or the model",
    Flaw.FILTERED: "change the prompt or the provider",
    Flaw.UNPARSED: "inspect a reply with 'siftlog tasks' and fix the prompt or the "
    "parser",
    Flaw.FAILED: "see the errors with 'siftlog status'",
}
"""Advice by the most frequent fault; on a tie the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRule:
    """Stops a model once more than `share` of its outcomes have the fault."""

    flaw: Flaw
    share: float  #: above 0 and below 1

    @classmethod
    def of(cls, typed: str) -> StopRule:
        """Parse a rule written as `WHAT>SHARE%`.

        Raises:
            ValueError: it has another form, names an unknown fault, or the share is 0.
        """
        match = _RULE.fullmatch(typed)
        names = [flaw.value for flaw in Flaw]
        if match is None or match[1] not in names or float(match[2]) <= 0:
            raise ValueError(
                f"{typed!r} is not a rule: write WHAT>SHARE% with a share "
                "above 0 and below 100, as unparsed>50%, or off; WHAT is "
                f"one of {', '.join(names)}"
            )
        return cls(flaw=Flaw(match[1]), share=float(match[2]) / 100)

    def __str__(self) -> str:
        """Return the rule as typed."""
        return f"{self.flaw}>{100 * self.share:g}%"


def rules_of(typed: Iterable[str]) -> tuple[StopRule, ...]:
    """Parse rules, separated by commas or one by one; `off`: none.

    Raises:
        ValueError: one is not a rule, or `off` is not alone.
    """
    words = [word.strip() for text in typed for word in text.split(",")]
    if OFF in words:
        if len(words) > 1:
            raise ValueError("'off' cannot be given together with a rule")
        return ()
    return tuple(StopRule.of(word) for word in words)


def flaws_of(reply: AnyReply, parsed: object) -> frozenset[Flaw]:
    """Return the faults of a reply, given the parser's result."""
    flaws = set()
    if isinstance(reply, Reply):
        if reply.is_truncated:
            flaws.add(Flaw.TRUNCATED)
        if not reply.text.strip():
            flaws.add(Flaw.EMPTY)
        if reply.finish_reason == "refusal":
            flaws.add(Flaw.REFUSED)
        if reply.finish_reason == "content_filter":
            flaws.add(Flaw.FILTERED)
    if isinstance(parsed, ParseFailure):
        flaws.add(Flaw.UNPARSED)
    return frozenset(flaws)


class ShareEvidence:
    """Evidence that a share is above a limit: E of the module's docstring, in logs."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        grid = [limit + (1 - limit) * (k + 0.5) / GRID for k in range(GRID)]
        self._gains = [math.log(q / limit) for q in grid]
        self._losses = [math.log((1 - q) / (1 - limit)) for q in grid]

    def log(self, hits: int, others: int) -> float:
        """Return the logarithm of E after counts of the kind and of others."""
        if hits <= self._limit * (hits + others):
            return 0.0  # not above the limit: healthy runs skip the computation
        terms = [
            hits * gain + others * loss
            for gain, loss in zip(self._gains, self._losses, strict=True)
        ]
        top = max(terms)
        return top + math.log(sum(math.exp(term - top) for term in terms) / GRID)


class FutilityMonitor:
    """Judges the outcomes of each model by the rules for it."""

    def __init__(
        self, rules: Iterable[StopRule] = (), models: Collection[str] = ()
    ) -> None:
        """Judge the outcomes of *models* by *rules*; ignore other models."""
        self._rules = [(rule, ShareEvidence(rule.share)) for rule in rules]
        self._flaws: dict[str, Counter[Flaw]] = {model: Counter() for model in models}
        self._outcomes: Counter[str] = Counter()

    @property
    def models(self) -> tuple[str, ...]:
        """Models that are judged and not stopped."""
        return tuple(self._flaws)

    @property
    def rules(self) -> tuple[StopRule, ...]:
        """The rules."""
        return tuple(rule for rule, _ in self._rules)

    def judge(self, model: str, flaws: frozenset[Flaw]) -> str | None:
        """Count an outcome; return once why the model must stop, otherwise None."""
        seen = self._flaws.get(model)
        if seen is None or not self._rules:
            return None
        for flaw in flaws:
            seen[flaw] += 1
        seen[Flaw.UNUSABLE] += not flaws.isdisjoint(_WASTE)
        self._outcomes[model] += 1
        n = self._outcomes[model]
        if n < LEAST_OUTCOMES:
            return None
        for rule, evidence in self._rules:
            hits = seen[rule.flaw]
            if evidence.log(hits, n - hits) >= -math.log(ALPHA):
                del self._flaws[model]
                return self._stop_reason(model, rule, seen, n)
        return None

    @staticmethod
    def _stop_reason(model: str, rule: StopRule, seen: Counter[Flaw], n: int) -> str:
        hits = seen[rule.flaw]
        kinds = [
            f"{seen[flaw]:,} {flaw}"
            for flaw in Flaw
            if seen[flaw] and flaw not in {rule.flaw, Flaw.UNUSABLE}
        ]
        parts = f": {', '.join(kinds)}" if kinds else ""
        advice = _ADVICE[max(_ADVICE, key=lambda flaw: seen[flaw])]
        return (
            f"{model}: {hits:,} of {n:,} replies and failed tasks are {rule.flaw} "
            f"({100 * hits / n:.0f} %{parts}), which is above {100 * rule.share:g} % "
            f"beyond chance (--stop-if '{rule}'); {advice}"
        )
