"""Which checks were made, so that a page says what was looked for and not found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from jobs.evidence_retrieval.consistency import OF_ROWS
from jobs.evidence_retrieval.queries import Sheet
from runner.scorecard import Finding, Table


def checks_table(sheet: Sheet, contradictions: Iterable[Finding]) -> Table:
    """A row a check: how often it found something, or why it was not made.

    Args:
        sheet: with its leakage checks.
        contradictions: all findings of the consistency checks.
    """
    found = Counter(finding.code for finding in contradictions)
    return Table(
        name="checks",
        columns=("kind", "check", "findings", "not_checked"),
        rows=(
            *(
                (
                    "leakage",
                    own.name,
                    None if own.not_checked else len(own.findings),
                    own.not_checked,
                )
                for own in sheet.leak_checks
            ),
            *(("consistency", code, found.pop(code, 0), "") for code in OF_ROWS),
            ("consistency", "figures and tables of this scoring", found.total(), ""),
        ),
        caption="Every check of leakage and consistency; one of consistency finds "
        "nothing where the columns it is about are not there.",
    )
