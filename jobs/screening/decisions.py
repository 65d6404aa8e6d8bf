"""What is scored: the records, and what each model decided about each of them.

Both ways in, a run of our own and decisions made elsewhere, end in a `Sheet`; scoring
sees nothing else. Columns are arrays with one entry a record, in set order, so that a
million decisions stay small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jobs.metrics.columns import Floats, Ints
from jobs.screening.validation_set import Kind
from runner.scorecard import Finding

INCLUDE, EXCLUDE, UNCLEAR, UNPARSED, FAILED, SKIPPED, MISSING = range(7)
"""Outcomes of a record; only the first two are decisions."""

READABLE = (INCLUDE, EXCLUDE, UNCLEAR)
"""What a reply can say; the others are none."""

OUTCOMES = (
    "include",
    "exclude",
    "unclear",
    "unparsed",
    "failed",
    "skipped",
    "missing",
)
"""Their names; `missing`: nothing was asked, or nothing has come yet."""


NOTED = "; "
"""Between words about a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What was screened, and the truth; the same for every model."""

    reviews: tuple[str, ...]  #: distinct, ascending as text
    papers: tuple[str, ...]  #: (N,)
    review: Ints  #: (N,) place in reviews
    label: Ints  #: (N,) 1: included
    kinds: tuple[Kind, ...]  #: those that occur, in the order of `KINDS`
    kind: Ints  #: (N,) place in kinds
    reason_code: Sequence[str] = ()  #: (N,) coded reason of true exclusions, or ""

    def __len__(self) -> int:
        return len(self.papers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What one model, one of its replicates or an ensemble said of each record."""

    model: str
    replicate: int | None = None  #: None: all replicates of the model, joined
    outcome: Ints  #: (N,) as the last stage with a readable reply has it
    p: Floats  #: (N,) p_include of that stage; NaN: none
    stage: Ints  #: (N,) place in stages, of the stage that decided; -1: none
    ended: Ints
    """(N,) stages that were passed: who ended early ranks below all others."""
    latest: Ints
    """(N,) outcome of the last stage that was due; where that came to nothing, the
    record is alive, and the stage before it decides."""
    stages: tuple[str, ...] = ("abstract",)
    reason_code: Sequence[str] = ()  #: (N,)
    reason: Sequence[str] = ()  #: (N,)
    noticed: Sequence[str] = ()
    """(N,) words about the replies of each record, joined by `NOTED`; of joined
    replicates there are none."""
    replies: int = 0  #: over all records and stages, readable or not
    skip: Mapping[str, int] = field(default_factory=dict)  #: records by reason
    counts: Mapping[str, int] = field(default_factory=dict)
    """What was noticed in replies: `bad_confidence`, `inconsistent`, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """All that is scored."""

    records: Records
    decisions: tuple[Decisions, ...]  #: joined ones, by model; then ensembles
    replicates: tuple[Decisions, ...] = ()  #: single ones, by model and number
    models: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    missing: int = 0  #: tasks that the present plan asks for and the run has not
    stale: int = 0  #: stored answers that the present plan no longer asks for
