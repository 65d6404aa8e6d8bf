"""Stops a model whose replies are of no use: the sans-IO core of `--stop-if`.

A rule names a kind of outcome and a share, such as `unparsed>50%`. Outcomes are looked
at one by one as they come, per model and rule, and the rule fires as soon as the share
is above the limit beyond chance. The test may look after every outcome, so it is
sequential. Let p0 be the limit and let S of the n outcomes so far be of the kind. Then

    E_n = mean over q of (q / p0)^S * ((1 - q) / (1 - p0))^(n - S)

with q on a fixed grid between p0 and 1 is a mixture of likelihood ratios (Wald,
"Sequential Analysis", 1947; Robbins, "Statistical methods related to the law of the
iterated logarithm", 1970). As long as every outcome is of the kind with a chance of at
most p0, given those before it, E is a non-negative supermartingale that begins at 1.
By Ville's inequality the chance that it ever reaches 1 / alpha is at most alpha. So a
model whose true share is at the limit or below is stopped by mistake in at most one of
1 / alpha runs, however many outcomes there are.

The bound assumes that order says nothing about quality. Under concurrency the fastest
replies come first; `LEAST` outcomes are therefore awaited before the first verdict.
"""

from __future__ import annotations

import enum
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from runner.reply import AnyReply, ParseFailure, Reply

ALPHA: Final = 0.001
"""Chance of stopping a model whose true share is at the limit, at most."""
LEAST: Final = 20
"""Outcomes before the first verdict."""
GRID: Final = 32
"""Alternatives q in the mixture: a finer grid detects no earlier by a whole outcome."""
OFF: Final = "off"
GO_ON: Final = f"--stop-if {OFF}"
"""How a run goes on though its replies are of no use; said where it stops."""
DEFAULT: Final = "unusable>50%"
"""What a run stops at unless it is told otherwise: most of what is paid for is lost."""

_RULE: Final = re.compile(r"\s*([a-z]+)\s*>\s*(\d{1,2}(?:\.\d+)?)\s*%\s*")


class Flaw(enum.StrEnum):
    """What may be wrong with an outcome, which is a reply or a failed task."""

    UNUSABLE = "unusable"  #: truncated, empty, unparsed, or failed by the job's code
    TRUNCATED = "truncated"  #: the reply ended at the output limit
    EMPTY = "empty"  #: the reply has no text
    UNPARSED = "unparsed"  #: the parser could not read the reply
    REFUSED = "refused"  #: the model declined
    FILTERED = "filtered"  #: the provider's filter stepped in
    FAILED = "failed"  #: the task ended without a reply
    JOB_FAULT = "raised"  #: the task failed in the job's own code


_WASTE: Final = {Flaw.TRUNCATED, Flaw.EMPTY, Flaw.UNPARSED, Flaw.JOB_FAULT}

_ADVICE: Final[Mapping[Flaw, str]] = {
    Flaw.JOB_FAULT: "mend the job",
    Flaw.TRUNCATED: "raise the output limit or lower the reasoning effort",
    Flaw.EMPTY: "look at a reply with 'siftlog tasks'",
    Flaw.REFUSED: "change the prompt or the model",
    Flaw.FILTERED: "change the prompt or the provider",
    Flaw.UNPARSED: "look at a reply with 'siftlog tasks' and mend prompt or parser",
    Flaw.FAILED: "look at the errors with 'siftlog status'",
}
"""The next step by what most outcomes share; on a tie the first one counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRule:
    """Stop a model once more than `share` of its outcomes have the flaw."""

    flaw: Flaw
    share: float  #: above 0 and below 1

    @classmethod
    def of(cls, typed: str) -> StopRule:
        """The rule that was typed as `WHAT>SHARE%`.

        Raises:
            ValueError: it has another form, names no known flaw, or the share is 0.
        """
        found = _RULE.fullmatch(typed)
        names = [flaw.value for flaw in Flaw]
        if found is None or found[1] not in names or float(found[2]) <= 0:
            raise ValueError(
                f"{typed!r} is no rule: write WHAT>SHARE% with a share above 0 and "
                f"below 100, as unparsed>50%, or off; WHAT is one of {', '.join(names)}"
            )
        return cls(flaw=Flaw(found[1]), share=float(found[2]) / 100)

    def __str__(self) -> str:
        """As it is typed."""
        return f"{self.flaw}>{100 * self.share:g}%"


def rules_of(typed: Iterable[str]) -> tuple[StopRule, ...]:
    """The rules in words that were typed, by commas or one by one; `off`: none.

    Raises:
        ValueError: one is no rule, or `off` is not alone.
    """
    words = [word.strip() for text in typed for word in text.split(",")]
    if OFF in words:
        if len(words) > 1:
            raise ValueError("'off' cannot be given together with a rule")
        return ()
    return tuple(StopRule.of(word) for word in words)


def flaws_of(reply: AnyReply, parsed: object) -> frozenset[Flaw]:
    """What is wrong with a reply, given what the parser made of it."""
    found = set()
    if isinstance(reply, Reply):
        if reply.is_truncated:
            found.add(Flaw.TRUNCATED)
        if not reply.text.strip():
            found.add(Flaw.EMPTY)
        if reply.finish_reason == "refusal":
            found.add(Flaw.REFUSED)
        if reply.finish_reason == "content_filter":
            found.add(Flaw.FILTERED)
    if isinstance(parsed, ParseFailure):
        found.add(Flaw.UNPARSED)
    return frozenset(found)


class Evidence:
    """Evidence that a share is above a limit: E of the module's docstring, in logs."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        grid = [limit + (1 - limit) * (k + 0.5) / GRID for k in range(GRID)]
        self._gains = [math.log(q / limit) for q in grid]
        self._losses = [math.log((1 - q) / (1 - limit)) for q in grid]

    def log(self, hits: int, others: int) -> float:
        """The logarithm of E after so many outcomes of the kind, and so many others."""
        if hits <= self._limit * (hits + others):
            return 0.0  # no higher than that, and healthy runs pay nothing for looks
        terms = [
            hits * gain + others * loss
            for gain, loss in zip(self._gains, self._losses, strict=True)
        ]
        top = max(terms)
        return top + math.log(sum(math.exp(term - top) for term in terms) / GRID)


class Futility:
    """Judges the outcomes of each model by the rules for it."""

    def __init__(
        self, rules: Iterable[StopRule] = (), models: Collection[str] = ()
    ) -> None:
        """Judge the outcomes of *models* by *rules*; nothing is wrong with others."""
        self._rules = [(rule, Evidence(rule.share)) for rule in rules]
        self._flaws: dict[str, Counter[Flaw]] = {model: Counter() for model in models}
        self._outcomes: Counter[str] = Counter()

    @property
    def models(self) -> tuple[str, ...]:
        """Those that are judged, and were not stopped."""
        return tuple(self._flaws)

    @property
    def rules(self) -> tuple[StopRule, ...]:
        """What they are judged by."""
        return tuple(rule for rule, _ in self._rules)

    def judge(self, model: str, flaws: frozenset[Flaw]) -> str | None:
        """Count an outcome; why the model is to be stopped, where it is, once."""
        seen = self._flaws.get(model)
        if seen is None or not self._rules:
            return None
        seen.update(flaws)
        seen[Flaw.UNUSABLE] += not flaws.isdisjoint(_WASTE)
        self._outcomes[model] += 1
        n = self._outcomes[model]
        if n < LEAST:
            return None
        for rule, evidence in self._rules:
            hits = seen[rule.flaw]
            if evidence.log(hits, n - hits) >= -math.log(ALPHA):
                del self._flaws[model]
                return self._why(model, rule, seen, n)
        return None

    @staticmethod
    def _why(model: str, rule: StopRule, seen: Counter[Flaw], n: int) -> str:
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
