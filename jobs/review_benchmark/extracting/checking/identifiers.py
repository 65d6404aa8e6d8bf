"""Whether an identifier is well formed and stands in a text, character by character."""

from __future__ import annotations

import re
from typing import Final

from jobs.review_benchmark.matching.normal import Normal, pmid_of

_DOI: Final = re.compile(r"10\.\d{4,9}/\S{1,250}")
_PMID: Final = re.compile(r"[1-9]\d{0,7}")
_BREAK: Final = r"(?:[ \t]*\n[ \t]*)?"
"""A line may end anywhere in an identifier; blanks within a line part words."""

FIRST_YEAR: Final = 1800


def doi_in(doi: str, text: str) -> bool:
    """Whether a DOI is one, and stands in *text* from its first to its last character.

    A resolver or `doi:` before it counts as nothing, nor do upper and lower case.
    """
    plain = Normal().doi(doi)
    return bool(_DOI.fullmatch(plain)) and _stands(plain, text, r"(?![\w/-])")


def pmid_in(pmid: str, text: str) -> bool:
    """Whether a PMID is one, and stands in *text* as a number by itself."""
    plain = pmid_of(pmid)
    return bool(_PMID.fullmatch(plain)) and _stands(plain, text, r"(?!\d)")


def year_in(year: str, text: str, latest: int | None) -> int | None:
    """A year that stands in *text*, from 1800 to the review's own; None: it is not."""
    if not re.fullmatch(r"[12]\d{3}", year):
        return None
    number = int(year)
    is_late = latest is not None and number > latest
    if number < FIRST_YEAR or is_late or not _stands(year, text, r"(?!\d)"):
        return None
    return number


def _stands(plain: str, text: str, after: str) -> bool:
    letters = _BREAK.join(map(re.escape, plain))
    return bool(re.search(rf"(?<![\w.]){letters}{after}", text, re.IGNORECASE))
