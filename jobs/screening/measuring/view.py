"""A model's decisions as the settings read them: what is decided, and in which order.

Unclear, unparsed and failed are outside unless a setting says otherwise. Records rank
by p_include; one without it by its decision, and one of which nothing could be read in
the middle. Who ended at an earlier stage ranks below all who went on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jobs.metrics.columns import Bools, Floats, Ints
from jobs.screening.decisions import (
    EXCLUDE,
    FAILED,
    INCLUDE,
    OUTCOMES,
    UNCLEAR,
    UNPARSED,
    Decisions,
    Records,
)
from jobs.screening.settings import Outside, Settings

UNDECIDED = -1

IMPUTED: Mapping[int, float] = {INCLUDE: 1.0, EXCLUDE: 0.0}
"""What stands for a missing p_include; 0.5 where it is neither."""

SAID: Ints = np.full(len(OUTCOMES), UNDECIDED, dtype=np.int64)
"""By outcome: 1 include, 0 exclude, -1 neither."""
SAID[[INCLUDE, EXCLUDE]] = 1, 0
SAID.flags.writeable = False

_READ_AS: Mapping[Outside, int] = {"outside": UNDECIDED, "include": 1, "exclude": 0}


@dataclass(frozen=True)
class View:
    """One column of decisions under the settings."""

    records: Records
    decisions: Decisions
    settings: Settings
    text_rank: Ints
    """(N,) place of each record's paper id among all, ascending as text."""

    @cached_property
    def outcome(self) -> Ints:
        """Outcomes, made from p_include where a threshold is set."""
        own, tau = self.decisions, self.settings.threshold
        if tau is None:
            return own.outcome
        found = own.outcome.copy()
        has_p = ~np.isnan(own.p)
        found[has_p] = np.where(own.p[has_p] >= tau, INCLUDE, EXCLUDE)
        return found

    @cached_property
    def call(self) -> Ints:
        """1 include, 0 exclude, -1 undecided."""
        read_as = _READ_AS[self.settings.unclear]
        by_outcome = SAID.copy()
        by_outcome[[UNCLEAR, UNPARSED, FAILED]] = read_as
        found: Ints = by_outcome[self.outcome]
        return found

    @cached_property
    def imputed(self) -> Bools:
        """Records that rank without a p_include of their own."""
        return np.isnan(self.decisions.p)

    @cached_property
    def score(self) -> Floats:
        """What records rank by within a stage."""
        stand_in = np.full(len(OUTCOMES), 0.5)
        for outcome, p in IMPUTED.items():
            stand_in[outcome] = p
        own = self.decisions
        return np.where(self.imputed, stand_in[own.outcome], own.p)

    @cached_property
    def height(self) -> Floats:
        """What records rank by over all stages: ties of it are ties."""
        # scores lie between 0 and 1, so that stages never meet
        return 2.0 * self.decisions.ended + self.score

    @cached_property
    def order(self) -> Ints:
        """Rows by review, in screening order: the one sort of a scoring."""
        found: Ints = np.lexsort((self.text_rank, -self.height, self.records.review))
        return found


def text_rank(records: Records) -> Ints:
    """Each record's place by its paper id as text; within a review no two are alike."""
    n = len(records)
    found: Ints = np.empty(n, dtype=np.int64)
    found[sorted(range(n), key=records.papers.__getitem__)] = np.arange(n)
    return found
