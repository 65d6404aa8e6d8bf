"""The tables of a scoring, as far as a page shows them; their files hold the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jobs.report.grid import FIRST_ROWS, Sheet
from jobs.report.markup import Child, Element, element
from runner.score.render import ReportSource
from runner.scorecard import Table

HEADLINE_ROWS = 60
"""Of a table that a report begins with, so many are shown."""


def first(reported: ReportSource, folder: Path) -> Iterator[Element]:
    """The tables that a reader looks for first."""
    for table in reported.scorecard.tables:
        if table.is_headline:
            sheet = Sheet.of(folder / f"{table.name}.csv", most=HEADLINE_ROWS)
            yield sheet.grid(_caption(table, sheet), table.titles)


def others(reported: ReportSource, folder: Path) -> Iterator[Element]:
    """The short tables in full, the beginning of the long ones behind a click."""
    for table in reported.scorecard.tables:
        if table.is_headline:
            continue
        sheet = Sheet.of(folder / f"{table.name}.csv")
        caption = _caption(table, sheet)
        left = sheet.total - len(sheet.rows)
        if not sheet.total:
            yield element("h3", table.name)
            yield element("p", table.caption, " It has no rows.")
        elif table.rows:
            yield element("h3", table.name)
            yield sheet.grid(caption, table.titles)
        else:
            size = f"first {FIRST_ROWS} of {sheet.total:,}" if left else sheet.total
            yield element(
                "details",
                element("summary", f"{table.name} ({size} rows)"),
                sheet.grid(caption, table.titles),
            )


def _caption(table: Table, sheet: Sheet) -> Child:
    left = sheet.total - len(sheet.rows)
    where = f"All {sheet.total:,} rows" if left else "The same rows"
    file = element("code", f"{table.name}.csv")
    return (table.caption, f" {where} are in ", file, ", with all digits.")
