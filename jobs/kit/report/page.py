"""Writes a scoring as one HTML file: no script, no network, nothing outside of it.

Page one answers what was asked, by whom, when, for how much, and with which result;
then come findings and the items to look at. All else is folded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from jobs.kit.headline_chart import NAME as HEADLINE
from jobs.kit.headline_chart import headline_figure, narrow_figure, narrow_name
from jobs.kit.report import details, headline
from jobs.kit.report.details import Operations
from jobs.kit.report.html import Child, element, html_page
from jobs.kit.report.items import notable_items
from runner.score.render import OPERATIONS, REPORT, ReportSource
from runner.scorecard import FailedFigure, Figure, Finding


def notices(reported: ReportSource, operations: Operations) -> Iterator[str]:
    """Yield what a reader must know before the first number."""
    card = reported.scorecard
    # folders of earlier versions do not say it
    if operations.get("partial"):
        yield "Partial: the run was unfinished when it was scored."
    if reported.changed_settings:
        names = ", ".join(reported.changed_settings)
        yield f"Scored with other input files than those of the run's start: {names}."
    if card.missing:
        yield (
            f"{card.missing:,} tasks that the settings need are missing "
            "from the run and are not counted."
        )
    if card.stale:
        yield (f"{card.stale:,} stored answers are not used under these settings.")
    errors = sum(finding.severity == "error" for finding in card.findings)
    if errors:
        yield f"{errors:,} findings are errors: see Findings."


FIGURES = "figures"


def write(folder: Path, reported: ReportSource) -> tuple[Finding, ...]:
    """Write `report.html`, and `figures/` where there are some, into *folder*.

    Returns:
        A finding for each figure that could not be drawn.
    """
    card = reported.scorecard
    forest = headline_figure(card, headline.main_paths(card))
    all_figures = (*([] if forest is None else [forest]), *card.figures)
    failed = [figure for figure in all_figures if isinstance(figure, FailedFigure)]
    drawn_figures = [figure for figure in all_figures if isinstance(figure, Figure)]
    if drawn_figures:
        # its matplotlib takes half a second to import
        from jobs.kit.report import figures  # noqa: PLC0415

        # the page embeds SVG, also where its files are not asked for
        formats = dict.fromkeys(("svg", *reported.figure_formats))
        undrawn = figures.write_figures(drawn_figures, folder / FIGURES, [*formats])
        if isinstance(forest, Figure):
            figures.write_figures([narrow_figure(forest)], folder / FIGURES, ["svg"])
        lost = {figure.name for figure in undrawn}
        drawn_figures = [figure for figure in drawn_figures if figure.name not in lost]
        failed += undrawn
    new_findings = tuple(map(_failed_figure, failed))
    text = page(folder, _with(reported, new_findings), drawn_figures)
    (folder / REPORT).write_text(text, encoding="utf-8", newline="")
    # the page has it; a paper has the other one
    (folder / FIGURES / f"{narrow_name(HEADLINE)}.svg").unlink(missing_ok=True)
    if "svg" not in reported.figure_formats:
        for figure in drawn_figures:
            (folder / FIGURES / f"{figure.name}.svg").unlink()
    return new_findings


def _failed_figure(failed: FailedFigure) -> Finding:
    return Finding(
        code="figure_failed",
        severity="warn",
        where=failed.name,
        message=f"The figure could not be drawn ({failed.fault}); all numbers are "
        "written.",
    )


def _with(reported: ReportSource, new_findings: tuple[Finding, ...]) -> ReportSource:
    card = reported.scorecard
    return replace(
        reported, scorecard=replace(card, findings=(*card.findings, *new_findings))
    )


def page(folder: Path, reported: ReportSource, drawn_figures: Sequence[Figure]) -> str:
    """The text of the page; *folder* holds all other files of the scoring."""
    operations = json.loads((folder / OPERATIONS).read_text(encoding="utf-8"))
    first = [figure for figure in drawn_figures if figure.name == HEADLINE]
    others = [figure for figure in drawn_figures if figure.name != HEADLINE]
    parts = {
        "Results": chain(
            headline.results(reported),
            details.figures(first, folder / FIGURES, reported.figure_formats),
        ),
        "Findings": details.findings(reported),
        "Items to look at": notable_items(reported),
        "Figures": details.other_figures(
            others, folder / FIGURES, reported.figure_formats
        ),
        "Tables": details.tables(reported, folder),
        "Metrics": details.metrics(reported),
        "Run": details.run(operations),
        "Settings": details.settings(reported),
    }
    header: Child = (
        headline.description(reported),
        headline.facts(reported, operations),
        (element("p", text, class_="notice") for text in notices(reported, operations)),
    )
    title = f"{reported.job}: {reported.run_id}"
    return html_page(title, header, parts, _footer(reported))


def _footer(reported: ReportSource) -> Child:
    return element(
        "p",
        "Numbers are shown to three decimals; ",
        element("code", "scorecard.json"),
        " and the tables have all digits. n/a is undefined, such "
        "as 0/0 or a mean over nothing; it is not 0. One item in "
        "detail: ",
        element("code", f"siftlog explain {reported.run_id} ITEM"),
        element(
            "span",
            ". Tables and metrics that are folded are not printed; open them in a "
            "browser first.",
            class_="on-paper",
        ),
    )
