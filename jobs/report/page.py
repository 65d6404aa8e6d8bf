"""A scoring as one HTML file: no script, no network, nothing outside of it.

Neither clock nor path is in it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from jobs.report import sections, tables
from jobs.report.costs import costs
from jobs.report.document import document, facts_list
from jobs.report.markup import Element, element
from runner.score.render import OPERATIONS, REPORT, ReportSource
from runner.scorecard import FailedFigure, Figure, Finding

FIGURES = "figures"


def write(folder: Path, reported: ReportSource) -> tuple[Finding, ...]:
    """Write `report.html`, and `figures/` where there are some, into *folder*.

    Returns:
        A finding for each figure that could not be drawn.
    """
    made = tuple(reported.scorecard.figures)
    failed = [each for each in made if isinstance(each, FailedFigure)]
    drawn = [each for each in made if isinstance(each, Figure)]
    if drawn:
        # about its cache of fonts it would speak to the terminal, from its import on
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
        # which takes half a second
        from jobs.report import figures  # noqa: PLC0415

        undrawn = figures.write(drawn, folder / FIGURES)
        lost = {each.name for each in undrawn}
        drawn = [each for each in drawn if each.name not in lost]
        failed += undrawn
    found = tuple(map(_finding, failed))
    text = page(folder, _with(reported, found), drawn)
    (folder / REPORT).write_text(text, encoding="utf-8", newline="")
    return found


def _finding(failed: FailedFigure) -> Finding:
    return Finding(
        code="figure_failed",
        severity="warn",
        where=failed.name,
        message=f"The figure could not be drawn ({failed.fault}); all numbers are "
        "written.",
    )


def _with(reported: ReportSource, found: tuple[Finding, ...]) -> ReportSource:
    card = reported.scorecard
    return replace(reported, scorecard=replace(card, findings=(*card.findings, *found)))


def page(folder: Path, reported: ReportSource, drawn: Sequence[Figure]) -> str:
    """The text of the page; *folder* holds all other files of the scoring."""
    course = json.loads((folder / OPERATIONS).read_text(encoding="utf-8"))
    parts = {
        "Results": chain(
            sections.overview(reported),
            tables.first(reported, folder),
            sections.headlines(reported),
            sections.not_available(reported),
        ),
        "Limits": sections.limits(reported),
        "Figures": sections.figures(drawn, folder / FIGURES),
        "Findings": sections.findings(reported),
        "Tables": tables.others(reported, folder),
        "Coverage": chain(sections.coverage(course), costs(course)),
        "All metrics and definitions": sections.metrics(reported),
        "Settings": sections.settings(reported),
    }
    filled = {title: inside for title, each in parts.items() if (inside := tuple(each))}
    title = f"{reported.job}: report of run {reported.run_id}"
    header = (
        _facts(reported),
        (
            element("p", text, class_="notice")
            for text in sections.notices(reported, course)
        ),
    )
    return document(title, header, filled, _footer(reported))


def _facts(reported: ReportSource) -> Element:
    card = reported.scorecard
    facts = {
        "job": f"{reported.job}, version {reported.job_version}",
        "run": reported.run_id,
        "models": ", ".join(card.models) or "none",
        "answers": "made elsewhere, imported"
        if reported.is_imported
        else "made by siftlog",
        "scoring": f"scorecard.json, SHA-256 {reported.digest[:16]}…",
    }
    return facts_list(facts)


def _footer(reported: ReportSource) -> Element:
    return element(
        "footer",
        element(
            "p",
            "Numbers are shown to three decimals; ",
            element("code", "scorecard.json"),
            " and the tables hold all digits. n/a is undefined, such as 0/0 or a mean "
            "over nothing; it is not 0. One item looked at closely: ",
            element("code", f"siftlog explain {reported.run_id} ITEM"),
        ),
    )
