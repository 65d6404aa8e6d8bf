"""What reviews have looked at and not included: the list of known exclusions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jobs.inputs.files import read_csv
from jobs.inputs.rows import InputFindings, InputRow
from jobs.screening.corpus import Citations, Exclusion, Status, Text
from jobs.screening.inputs.ids import read_id
from jobs.screening.inputs.texts import COLUMNS, text_in
from jobs.screening.judgement import REASON_CODES

STATUSES: Mapping[str, Status] = {
    "": "excluded",
    "excluded": "excluded",
    "awaiting": "awaiting",
    "awaiting assessment": "awaiting",
    "ongoing": "ongoing",
}
_NEEDED = ("review_pmid", "pmid")
_OPTIONAL = ("status", "reason", "reason_code", "study_id", *COLUMNS)
EXCLUSION = (*_NEEDED, *_OPTIONAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusions:
    """A list of exclusions, and the texts that came with it."""

    found: tuple[Exclusion, ...]  #: one a review and paper, ascending
    texts: Mapping[str, Text]  #: by paper


def read_exclusions(
    path: Path,
    citations: Citations,
    noticed: InputFindings,
    renamed: Mapping[str, str],
) -> Exclusions:
    """The exclusions of a table `review_pmid`, `pmid`, `status`, `reason`, ...

    Args:
        path: the table.
        citations: what reviews cite: it stays included.
        noticed: learns of papers both included and excluded, and of repetitions.
        renamed: columns of the file by the names used here.

    Raises:
        DatasetError: the table is off; names file and row.
    """
    found: dict[tuple[str, str], Exclusion] = {}
    texts: dict[str, Text] = {}
    rows = read_csv(
        path,
        _NEEDED,
        _OPTIONAL,
        noticed=noticed,
        renamed=renamed,
        unit="row",
    )
    for row in rows:
        each = _exclusion(row)
        key = each.review, each.paper
        text = text_in(row)
        if text.has_abstract and each.paper not in texts:
            texts[each.paper] = text
        if citations.has(*key):
            noticed.add(
                "included_and_excluded",
                "warn",
                path.name,
                "A review both includes and excludes a paper; it stays included.",
                example=f"{each.review} {each.paper}",
            )
        if key in found:
            noticed.add(
                "repeated_exclusions",
                "info",
                path.name,
                "Rows repeat a review and a paper; the first one counts.",
                example=f"row {row.line}",
            )
        found.setdefault(key, each)
    return Exclusions(found=tuple(found[key] for key in sorted(found)), texts=texts)


def _exclusion(row: InputRow) -> Exclusion:
    written = row.optional_text("status").strip()
    status = STATUSES.get(written.lower())
    if status is None:
        known = ", ".join(filter(None, STATUSES))
        raise row.error(f"status is {written!r} (one of {known} is expected)")
    code = row.optional_text("reason_code").strip()
    if code and code not in REASON_CODES:
        raise row.error(
            f"reason_code is {code!r} (one of {', '.join(REASON_CODES)} is expected)"
        )
    return Exclusion(
        review=read_id(row, "review_pmid"),
        paper=read_id(row, "pmid"),
        status=status,
        reason=row.optional_text("reason").strip(),
        reason_code=code,
        study=row.optional_text("study_id").strip(),
    )
