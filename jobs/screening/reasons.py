"""Written reasons for exclusion as codes: a heuristic, by words, first rule wins.

Long reasons that tell a whole study fall too often into `study_design`. Where codes
matter, a mapping file or a `reason_code` beside the reason settles them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from jobs.noticed import Noticed
from jobs.rows.files import read_csv
from jobs.screening.corpus import Exclusion
from jobs.screening.judgement import REASON_CODES

OTHER = "other"
RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (code, re.compile(pattern))
    for code, pattern in (
        ("duplicate", "duplicat"),
        (
            "ongoing",
            (
                r"ongoing|protocol only|not yet (?:published|complete)|terminated"
                r"|withdrawn|abandoned"
            ),
        ),
        (
            "study_design",
            (
                r"study design|\brcts?\b|randomi[sz]ed|\bnrct|\bcba\b|cohort"
                r"|review article|editorial|case (?:series|report)|commentary"
                r"|cross.?over|not a trial|study type"
            ),
        ),
        ("population", "population|participants?|patients?|diagnos"),
        ("comparator", "comparator|comparison|control group"),
        ("intervention", "intervention|exposure|dose|treatment|surgical|technique"),
        ("outcome", r"outcome|follow.?up|endpoint|data (?:could not|not)"),
    )
)
"""Code and pattern, in order; searched for in the reason as `_normal` leaves it."""


def code_of(reason: str, own: Mapping[str, str] | None = None) -> str:
    """The code of a written reason; `OTHER` where no rule fits.

    Args:
        reason: as written.
        own: codes by reason that go before the rules, as `read_reason_map` gives them.
    """
    normal = _normal(reason)
    if own and normal in own:
        return own[normal]
    return next((code for code, pattern in RULES if pattern.search(normal)), OTHER)


def coded(
    exclusions: Iterable[Exclusion], own: Mapping[str, str]
) -> tuple[Exclusion, ...]:
    """Exclusions with a code where a reason is written; one that is given stays."""
    return tuple(
        replace(each, reason_code=code_of(each.reason, own))
        if each.reason and not each.reason_code
        else each
        for each in exclusions
    )


def read_reason_map(path: Path, noticed: Noticed) -> dict[str, str]:
    """Codes by reason from a table `reason`, `reason_code`.

    Raises:
        DatasetError: the table is off, a code is unknown, or a reason has two.
    """
    found: dict[str, str] = {}
    for row in read_csv(path, ("reason", "reason_code"), noticed=noticed, unit="row"):
        code = row.one_of("reason_code", REASON_CODES)
        if found.setdefault(_normal(row.text("reason")), code) != code:
            raise row.error("the reason has another code further up (remove one)")
    return found


def _normal(reason: str) -> str:
    """Lower case, plain hyphens, single blanks."""
    return " ".join(reason.lower().replace("\N{HYPHEN}", "-").split())
