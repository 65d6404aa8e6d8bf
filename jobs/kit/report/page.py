"""Writes a scoring as one HTML file: no script, no network, nothing outside of it.

Section by section; each is empty where there is nothing to say.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from jobs.kit.report.html import (
    FIRST_ROWS,
    Child,
    CsvPreview,
    Element,
    element,
    facts_list,
    folded,
    html_page,
    html_table,
    scrolling,
    with_key,
)
from jobs.kit.text_format import (
    UNDEFINED,
    metric_count,
    metric_interval,
    metric_spread,
    metric_target,
)
from runner.score.render import BETTER, OPERATIONS, REPORT, ReportSource
from runner.score.render import headlines as headline_paths
from runner.scorecard import (
    LIMITS,
    Direction,
    FailedFigure,
    Figure,
    Finding,
    Metric,
    Table,
)
from runner.table_rendering import format_number
from store.document import Numbers, Words

MOST_METRICS = 300
"""Of one model in the report; scorecard.json holds all."""

SEVERITIES = ("error", "warn", "info")


Operations: TypeAlias = Mapping[str, Any]
"""What `operations.json` says: how far the run had come, and what it had cost."""


def notices(reported: ReportSource, operations: Operations) -> Iterator[str]:
    """What a reader must know before the first number."""
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


def overview(reported: ReportSource) -> Iterator[Element]:
    """Models by headline metrics on one page, each with its name and its key."""
    card = reported.scorecard
    paths = headline_paths(card)
    by_path = _metrics_by_path(card.models)
    all_rows = [(path, _by_model(by_path, path)) for path in paths]
    rows = [(path, by_model) for path, by_model in all_rows if by_model]
    if not rows:
        return
    yield html_table(
        "Headline metrics by model, with intervals; n is the number of items.",
        [
            Words("metric"),
            Words("better"),
            *(Numbers(model) for model in by_path),
            Numbers("n"),
        ],
        [_overview_row(by_model, tuple(by_path)) for _, by_model in rows],
    )


def _metrics_by_path(
    models: Mapping[str, Sequence[Metric]],
) -> dict[str, dict[str, Metric]]:
    return {model: {m.path: m for m in metrics} for model, metrics in models.items()}


def _by_model(
    by_path: Mapping[str, Mapping[str, Metric]], path: str
) -> dict[str, Metric]:
    return {
        model: metrics[path] for model, metrics in by_path.items() if path in metrics
    }


def _overview_row(by_model: Mapping[str, Metric], models: Sequence[str]) -> list[Child]:
    first = next(iter(by_model.values()))
    counts = dict.fromkeys(f"{metric.n:,}" for metric in by_model.values())
    return [
        with_key(first.name, first.path),
        BETTER[first.direction],
        *(_estimate(by_model.get(model)) for model in models),
        # as many as there are models, where each is of other items
        " / ".join(counts),
    ]


def _estimate(metric: Metric | None) -> Child:
    if metric is None:
        return "-"
    ends = element("span", metric_interval(metric), class_="ends")
    return format_number(metric.value), ends if metric_interval(metric) else ""


def headlines(reported: ReportSource) -> Iterator[Element]:
    """The headline metrics: one block each, one row a model."""
    models = reported.scorecard.models
    paths = dict.fromkeys(
        metric.path
        for model_metrics in models.values()
        for metric in model_metrics
        if metric.is_headline
    )
    if not paths:
        return
    by_path = _metrics_by_path(models)
    rows_by_path = {path: [*_by_model(by_path, path).items()] for path in paths}
    every = [metric for rows in rows_by_path.values() for _, metric in rows]
    columns = [column for column in _HEADLINE if any(map(column[2], every))]
    header_cells = [
        element("th", "model", scope="col"),
        *(
            element("th", name, scope="col", class_="n" if is_number else None)
            for name, is_number, _ in columns
        ),
    ]
    yield scrolling(
        element(
            "table",
            element("caption", "The headline metrics and their meaning."),
            element("thead", element("tr", header_cells)),
            (
                element("tbody", _headline(rows, columns))
                for rows in rows_by_path.values()
            ),
            class_="headline",
        ),
        "headline metrics",
    )


def not_available(reported: ReportSource) -> Iterator[Element]:
    """What a reader would look for in vain, and why it is not there."""
    parts = reported.scorecard.not_available
    if parts:
        yield element("h3", "Not available")
        yield element("ul", (element("li", part) for part in parts))


_HeadlineColumn: TypeAlias = tuple[str, bool, Callable[[Metric], str]]

_HEADLINE: tuple[_HeadlineColumn, ...] = (
    ("value", True, lambda m: format_number(m.value)),
    ("mean ± std", True, metric_spread),
    ("interval", True, metric_interval),
    ("n", True, metric_count),
    ("subset", False, lambda m: m.subset),
    ("target", False, metric_target),
    ("note", False, lambda m: m.note or ""),
)
"""Columns of the headlines: name, whether of numbers, and what a metric has there."""


_BETTER: Mapping[Direction, str] = {
    "higher": "higher is better",
    "lower": "lower is better",
    "neither": "",
}


def _headline(
    rows: Sequence[tuple[str, Metric]], columns: Sequence[_HeadlineColumn]
) -> Iterator[Element]:
    """The rows of one metric below its name, meaning and definition."""
    _, first = rows[0]
    yield element(
        "tr",
        element(
            "th",
            first.label,
            element(
                "span",
                element("code", first.path),
                f" {better}" if (better := _BETTER[first.direction]) else "",
                class_="key",
            ),
            element("span", first.meaning, class_="meaning"),
            element("span", first.definition, class_="definition"),
            scope="rowgroup",
            colspan=str(1 + len(columns)),
        ),
    )
    for model, metric in rows:
        # such as an interval of fewer replicates
        changed = metric.definition if metric.definition != first.definition else ""
        definition = element("span", changed, class_="definition") if changed else ""
        yield element(
            "tr",
            element("th", model, definition, scope="row"),
            (
                element("td", text(metric), class_=_class(name, metric, is_number))
                for name, is_number, text in columns
            ),
        )


def _class(name: str, metric: Metric, is_number: bool) -> str | None:
    if name == "target":
        return metric.verdict
    return "n" if is_number else None


def figures(
    drawn_figures: Iterable[Figure], folder: Path, formats: Sequence[str]
) -> Iterator[Element]:
    """Every figure inside the page, with what it shows in words."""
    for figure in drawn_figures:
        picture = (folder / f"{figure.name}.svg").read_bytes()
        source = base64.b64encode(picture).decode()
        yield element(
            "figure",
            element(
                "img",
                src=Element(f"data:image/svg+xml;base64,{source}"),
                alt=f"{figure.title}. {figure.caption}",
            ),
            element(
                "figcaption",
                element("strong", figure.title),
                figure.caption,
                " Files: ",
                element(
                    "code", ", ".join(f"figures/{figure.name}.{f}" for f in formats)
                ),
            ),
        )


def limits(reported: ReportSource) -> Iterator[Element]:
    """What the numbers do not show, a paragraph each."""
    for finding in reported.scorecard.findings:
        if finding.where == LIMITS:
            yield element("p", finding.message)


def findings(reported: ReportSource) -> Iterator[Element]:
    """The gravest first, otherwise in the order in which they were made."""
    sorted_findings = sorted(
        (finding for finding in reported.scorecard.findings if finding.where != LIMITS),
        key=lambda finding: SEVERITIES.index(finding.severity),
    )
    if not sorted_findings:
        yield element("p", "None.")
        return
    yield html_table(
        "What a reader of the numbers should know, the gravest first.",
        [
            Words("severity"),
            Words("where"),
            Words("what"),
            Numbers("n"),
            Words("example"),
        ],
        [_finding(finding) for finding in sorted_findings],
    )


def _finding(finding: Finding) -> list[Child]:
    return [
        element("span", finding.severity, class_=finding.severity),
        finding.where,
        (finding.message, " ", element("code", finding.code)),
        f"{finding.n:,}",
        finding.example,
    ]


def coverage(operations: Operations) -> Iterator[Element]:
    """How far the run had come, what failed, and what it cost."""
    rows: list[tuple[str, str]] = [
        (f"{kind}: {name}", format_number(n))
        for kind in ("tasks", "attempts")
        for name, n in operations[kind].items()
    ]
    rows += [
        (f"errors: {name}", format_number(n))
        for name, n in operations["errors"].items()
    ]
    rows += [
        ("tokens in", format_number(operations["tokens_in"])),
        ("tokens in, cached", format_number(operations["tokens_cached"])),
        ("tokens out", format_number(operations["tokens_out"])),
        ("cost in US dollars", _dollars(operations["cost_usd"])),
    ]
    yield html_table(
        "The run's course, when it was scored. Answers and scores do not depend on it.",
        [Words("what"), Numbers("amount")],
        rows,
    )


def _dollars(amount: float | None) -> str:
    return "?" if amount is None else f"{amount:.4f}"


def settings(reported: ReportSource) -> Iterator[Element]:
    """What was set, and which files were read."""
    values = reported.scorecard.settings
    if "profile" in values:
        yield element("p", "Profile ", element("code", str(values["profile"])), ".")
    if reported.changes:
        yield html_table(
            "Settings that are not the default.",
            [Words("setting"), Words("value"), Words("default")],
            [
                (name, _plain(value), _plain(default))
                for name, (value, default) in reported.changes.items()
            ],
        )
    else:
        yield element("p", "All settings that affect the scores have their default.")
    if reported.inputs:
        yield html_table(
            "The input files, by the beginning of their SHA-256.",
            [Words("setting"), Words("hash")],
            [(i.setting, element("code", i.sha256[:16])) for i in reported.inputs],
        )


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def metrics(reported: ReportSource) -> Iterator[Element]:
    """Everything that was measured, one table a model."""
    for model, model_metrics in reported.scorecard.models.items():
        first_metrics = model_metrics[:MOST_METRICS]
        size = (
            f"first {len(first_metrics)} of {len(model_metrics):,}"
            if model_metrics[MOST_METRICS:]
            else len(model_metrics)
        )
        yield folded(
            f"{model} ({size} metrics)",
            html_table(
                ("All are in ", element("code", "scorecard.json"), "."),
                [
                    Words("metric"),
                    Words("better"),
                    Numbers("value"),
                    Numbers("interval"),
                    Numbers("n"),
                    Words("subset"),
                    Words("definition"),
                ],
                [
                    (
                        with_key(m.name, m.path),
                        BETTER[m.direction],
                        format_number(m.value),
                        metric_interval(m),
                        metric_count(m),
                        m.subset,
                        (m.definition, f" ({m.note})" if m.note else ""),
                    )
                    for m in first_metrics
                ],
            ),
        )


def costs(operations: Mapping[str, Any]) -> Iterator[Element]:
    """A row a model and unit; none where nothing was asked for here.

    Args:
        operations: content of `operations.json`; earlier versions wrote none.
    """
    rows = [
        (
            model,
            unit,
            format_number(per["n"]),
            _tokens(per["tokens_in"]),
            _tokens(per["tokens_out"]),
            format_number(per["cost_usd"]),
        )
        for model, taken in operations.get("models", {}).items()
        for unit, per in taken["per"].items()
    ]
    if rows:
        yield html_table(
            "Cost and time of each model over all stages, replicates "
            "and failed calls. n/a: none, or a price is unknown.",
            [
                Words("model"),
                Words("for each"),
                Numbers("how many"),
                Numbers("tokens in"),
                Numbers("tokens out"),
                Numbers("US dollars"),
            ],
            rows,
        )


def _tokens(amount: float | None) -> str:
    return UNDEFINED if amount is None else f"{amount:,.1f}"


HEADLINE_ROWS = 60
"""Of a table that a report begins with, so many are shown."""


def first_tables(reported: ReportSource, folder: Path) -> Iterator[Element]:
    """The tables that a reader looks for first."""
    for table in reported.scorecard.tables:
        if table.is_headline:
            preview = CsvPreview.of(folder / f"{table.name}.csv", most=HEADLINE_ROWS)
            yield preview.grid(_caption(table, preview), table.titles)


def other_tables(reported: ReportSource, folder: Path) -> Iterator[Element]:
    """The short tables in full, the beginning of the long ones behind a click."""
    for table in reported.scorecard.tables:
        if table.is_headline:
            continue
        preview = CsvPreview.of(folder / f"{table.name}.csv")
        caption = _caption(table, preview)
        left = preview.total - len(preview.rows)
        if not preview.total:
            yield element("h3", table.name)
            yield element("p", table.caption, " It has no rows.")
        elif table.rows:
            yield element("h3", table.name)
            yield preview.grid(caption, table.titles)
        else:
            size = f"first {FIRST_ROWS} of {preview.total:,}" if left else preview.total
            grid = preview.grid(caption, table.titles)
            yield folded(f"{table.name} ({size} rows)", grid)


def _caption(table: Table, preview: CsvPreview) -> Child:
    left = preview.total - len(preview.rows)
    extent = f"All {preview.total:,} rows" if left else "The same rows"
    file = element("code", f"{table.name}.csv")
    return (table.caption, f" {extent} are in ", file, ", with all digits.")


FIGURES = "figures"


def write(folder: Path, reported: ReportSource) -> tuple[Finding, ...]:
    """Write `report.html`, and `figures/` where there are some, into *folder*.

    Returns:
        A finding for each figure that could not be drawn.
    """
    all_figures = tuple(reported.scorecard.figures)
    failed = [figure for figure in all_figures if isinstance(figure, FailedFigure)]
    drawn_figures = [figure for figure in all_figures if isinstance(figure, Figure)]
    if drawn_figures:
        # its matplotlib takes half a second to import
        from jobs.kit.report import figures  # noqa: PLC0415

        # the page embeds SVG, also where its files are not asked for
        formats = dict.fromkeys(("svg", *reported.figure_formats))
        undrawn = figures.write_figures(drawn_figures, folder / FIGURES, [*formats])
        lost = {figure.name for figure in undrawn}
        drawn_figures = [figure for figure in drawn_figures if figure.name not in lost]
        failed += undrawn
    new_findings = tuple(map(_failed_figure, failed))
    text = page(folder, _with(reported, new_findings), drawn_figures)
    (folder / REPORT).write_text(text, encoding="utf-8", newline="")
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
    parts = {
        "Results": chain(
            overview(reported),
            first_tables(reported, folder),
            headlines(reported),
            not_available(reported),
        ),
        "Limits": limits(reported),
        "Figures": figures(drawn_figures, folder / FIGURES, reported.figure_formats),
        "Findings": findings(reported),
        "Tables": other_tables(reported, folder),
        "Coverage": chain(coverage(operations), costs(operations)),
        "All metrics and definitions": metrics(reported),
        "Settings": settings(reported),
    }
    title = f"{reported.job}: report of run {reported.run_id}"
    header = (
        _facts(reported),
        (element("p", text, class_="notice") for text in notices(reported, operations)),
    )
    return html_page(title, header, parts, _footer(reported))


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
        "p",
        "Numbers are shown to three decimals; ",
        element("code", "scorecard.json"),
        " and the tables have all digits. n/a is undefined, such "
        "as 0/0 or a mean over nothing; it is not 0. One item in "
        "detail: ",
        element("code", f"siftlog explain {reported.run_id} ITEM"),
    )
