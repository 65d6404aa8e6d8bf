"""Defines what a check of a recorded run found: steps, first differences, causes."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from store.code_fingerprint import CodeFingerprint


class CheckedStep(enum.StrEnum):
    """A step whose results are in the log, in the order of a run."""

    PLAN = "plan"  #: the tasks
    REQUESTS = "requests"
    PARSE = "parse"  #: what is read from a reply, or why it cannot be read
    SCORES = "scores"  #: verdicts
    SCORECARD = "scorecard"  #: bytes of scorecard.json


CLASSES: Final = ("job", "kit", "metrics", "engine")
"""Classes of source files, as in `CodeFingerprint`."""

DEPENDENCY: Final = "dependency"
UNKNOWN: Final = "unknown"
"""The log does not have the fingerprint of the code that wrote it."""
LOG: Final = "log"
"""The log is damaged: what differs may be what was recorded."""
UNEXPLAINED: Final = "unexplained"
"""The code is the same: it is not deterministic, or its data are not in its inputs."""


class Codes(NamedTuple):
    """The code that recorded something, or that of today."""

    fingerprint: CodeFingerprint | None  #: None: the event is older
    sha256: str  #: over the job's files and those that it shares

    @property
    def dependencies(self) -> dict[str, str]:
        """Versions of packages; none where they were not recorded."""
        return {} if self.fingerprint is None else self.fingerprint.dependencies


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedResult:
    """One recorded result that is another one today."""

    seq: int  #: of the event that holds the recorded result
    where: str  #: the task's key, or the scoring
    recorded: str
    now: str


@dataclass(slots=True)
class StepTally:
    """Results of one step that were compared."""

    compared: int = 0
    differs: int = 0
    first: ChangedResult | None = None  #: the one of the first event
    causes: tuple[str, ...] = ()  #: classes of code that changed
    changes: tuple[str, ...] = ()  #: dependencies that changed, with both versions
    unchecked: str = ""  #: why results were not compared; empty: all were

    def add(self, seq: int, where: str, recorded: str, now: str) -> None:
        """Count a difference."""
        self.differs += 1
        if self.first is None or seq < self.first.seq:
            self.first = ChangedResult(seq=seq, where=where, recorded=recorded, now=now)

    def explain(self, before: Codes, now: Codes, step: CheckedStep) -> None:
        """Set the causes, if anything differs."""
        if not self.differs:
            return
        self.causes = changed_classes(before, now, step)
        old, new = before.dependencies, now.dependencies
        if old and DEPENDENCY in self.causes:
            self.changes = tuple(
                f"{name} {old.get(name, 'absent')} → {new.get(name, 'absent')}"
                for name in sorted({*old, *new})
                if old.get(name) != new.get(name)
            )

    def merge(self, other: StepTally) -> None:
        """Add what another part of the check found."""
        self.compared += other.compared
        self.differs += other.differs
        self.unchecked = self.unchecked or other.unchecked
        self.causes = tuple(dict.fromkeys((*self.causes, *other.causes)))
        self.changes = tuple(dict.fromkeys((*self.changes, *other.changes)))
        if other.first and (self.first is None or other.first.seq < self.first.seq):
            self.first = other.first


Tallies = dict[CheckedStep, StepTally]


def empty_tallies() -> Tallies:
    """Return a tally for each step."""
    return {step: StepTally() for step in CheckedStep}


@dataclass(slots=True, kw_only=True)
class RunReport:
    """What was found in a run."""

    run: str
    job: str = ""
    steps: Tallies = field(default_factory=empty_tallies)
    problem: str = ""  #: why nothing was checked, a sentence

    @property
    def differs(self) -> bool:
        """Whether any result is another one today."""
        return any(tally.differs for tally in self.steps.values())

    @property
    def first(self) -> ChangedResult | None:
        """The difference of the first event."""
        changes = [tally.first for tally in self.steps.values() if tally.first]
        return min(changes, key=lambda change: change.seq, default=None)

    @property
    def causes(self) -> tuple[str, ...]:
        """The causes of all differences, each once."""
        causes = (cause for tally in self.steps.values() for cause in tally.causes)
        return tuple(dict.fromkeys(causes))

    def blame(self, cause: str) -> None:
        """Give all differences one cause."""
        for tally in self.steps.values():
            if tally.differs:
                tally.causes, tally.changes = (cause,), ()

    def merge(self, other: RunReport) -> None:
        """Add what another part of the check found."""
        self.job = self.job or other.job
        self.problem = self.problem or other.problem
        for step, tally in other.steps.items():
            self.steps[step].merge(tally)


_SCORED: Final = frozenset({CheckedStep.SCORES, CheckedStep.SCORECARD})


def changed_classes(before: Codes, now: Codes, step: CheckedStep) -> tuple[str, ...]:
    """Return which classes of code may have changed a step's results.

    Metrics neither plan nor parse: they are no cause there if anything else changed.
    """
    old, new = before.fingerprint, now.fingerprint
    if old is None or new is None:
        is_same_job = before.sha256 == now.sha256
        return ("engine", DEPENDENCY) if is_same_job else (UNKNOWN,)
    changed = [name for name in CLASSES if getattr(old, name) != getattr(new, name)]
    if old.dependencies != new.dependencies:
        changed.append(DEPENDENCY)
    if step not in _SCORED and changed != ["metrics"]:
        changed = [name for name in changed if name != "metrics"]
    return tuple(changed) or (UNEXPLAINED,)
