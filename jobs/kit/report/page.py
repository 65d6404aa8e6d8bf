"""Writes a scoring as one HTML file: no script, no network, nothing outside of it.

Page one answers what was asked, by whom, when, for how much, and with which result;
then come findings and the items to look at. All else is folded.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Final

from jobs.kit.headline_chart import NAME as HEADLINE
from jobs.kit.headline_chart import headline_figure, narrow_figure, narrow_name
from jobs.kit.report import details, headline
from jobs.kit.report.details import Operations
from jobs.kit.report.html import (
    Child,
    Element,
    element,
    excerpt,
    folded,
    html_page,
    html_table,
)
from runner.job import QuotedPassage
from runner.score.notable import NotableItem, NotableReply
from runner.score.render import OPERATIONS, REPORT, ReportSource
from runner.scorecard import FailedFigure, Figure, Finding
from store.document import Numbers, Words, answer_words
from store.printable import clip


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


VALUE_CHARS: Final = 80
"""Characters of an answer in the line of an item."""

_WORTH: Final = {True: "right", False: "wrong", None: "not judged"}


def notable_items(reported: ReportSource) -> Iterator[Element]:
    """The most telling items, each behind a click; counts and unparsed replies."""
    notable = reported.notable
    if notable.counts:
        yield html_table(
            "All items by the first reason to look at them. The most telling ones are "
            "listed below.",
            [Words("reason"), Numbers("items")],
            [(name, f"{n:,}") for name, n in notable.counts],
        )
    if notable.unparsed:
        yield html_table(
            "Unparsed replies: completed, but nothing could be read from them.",
            [Words("model"), Words("reason"), Numbers("replies")],
            [(row.model, row.reason, f"{row.replies:,}") for row in notable.unparsed],
            is_stacked=True,
        )
    for number, item in enumerate(notable.items, 1):
        yield _item(number, item, reported)


def _item(number: int, item: NotableItem, reported: ReportSource) -> Element:
    part = f", {item.part}" if item.part else ""
    summary = (
        element("span", f"{number}. {item.key}{part}", class_="name"),
        element("span", item.title, class_="title") if item.title else "",
        element("span", "; ".join(item.reasons), class_="why"),
        element("span", _answers(item), class_="why"),
    )
    prompt: Child = ()
    if item.prompt:
        title = "End of the prompt" if item.is_sent else "End of the job's prompt"
        prompt = (element("h4", title), excerpt(item.prompt))
    omitted = (
        element("p", f"{item.omitted:,} more replies are not listed.")
        if item.omitted
        else ""
    )
    return folded(
        summary,
        prompt,
        element("h4", "Replies"),
        (_reply(reply) for reply in item.replies),
        omitted,
        element("p", "In full: ", element("code", _command(item, reported))),
        is_open=number == 1,
        class_="item",
    )


def _answers(item: NotableItem) -> str:
    """The expected answer beside those of the models."""
    values = (_without(r.verdict.value, item.part) for r in item.replies)
    counts = Counter(clip(value or "unparsed", VALUE_CHARS) for value in values)
    answers = (f"{v} ({n} times)" if n > 1 else v for v, n in counts.items())
    expected = clip(_without(item.expected, item.part), VALUE_CHARS) or "not known"
    return f"expected: {expected}; answers: {' | '.join(answers)}"


def _without(value: str, part: str) -> str:
    """A value for people without the name of its part, which the item's line has."""
    return answer_words(value.removeprefix(f"{part}: "))


def _command(item: NotableItem, reported: ReportSource) -> str:
    if reported.has_explain:
        return f"siftlog explain {reported.run_id} {shlex.quote(item.key)}"
    return f"siftlog show {reported.run_id} {shlex.quote(item.key)}"


def _reply(reply: NotableReply) -> Iterator[Element]:
    verdict = reply.verdict
    worth = "unparsed" if verdict.is_unparsed else _WORTH[verdict.correct]
    rule = f", rule {verdict.rule}" if verdict.rule else ""
    p = verdict.confidence
    marks = [
        "" if p is None else f"confidence {p:.2f}",
        "quote not in the text" if verdict.is_grounded is False else "",
    ]
    replicate = f", replicate {reply.replicate}" if reply.replicate > 1 else ""
    yield element(
        "p",
        f"{verdict.model}{replicate}: ",
        element("strong", _without(verdict.value, verdict.part) or "no value"),
        f", {', '.join([worth, *filter(None, marks)])} (task {verdict.task:,}{rule})",
    )
    if reply.text:
        yield excerpt(reply.text)
    for quote in reply.quotes:
        yield _quote(quote)


def _quote(quote: QuotedPassage) -> Element:
    label = ", ".join(filter(None, (quote.label, quote.place)))
    if quote.passage is None:
        text: Child = (quote.quote, " (not in the text)")
    else:
        text = (quote.before, element("mark", quote.passage), quote.after)
    title = f"Quote for {label}: " if label else "Quote: "
    return element("p", title, text, class_="quote")
