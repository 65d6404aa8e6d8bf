"""The sections of a report behind page one, most of them folded.

Each is empty where there is nothing to say.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from jobs.kit.headline_chart import narrow_name
from jobs.kit.report.headline import BETTER_WORDS, metric_by_model, metrics_by_path
from jobs.kit.report.html import (
    FIRST_ROWS,
    Child,
    CsvPreview,
    Element,
    element,
    facts_list,
    folded,
    html_table,
    scrolling,
    whole_text,
    with_key,
)
from jobs.kit.text_format import (
    UNDEFINED,
    metric_count,
    metric_interval,
    metric_spread,
    metric_target,
    plural,
)
from runner.score.render import BETTER, ReportSource
from runner.scorecard import LIMITS, Figure, Finding, Metric, Table
from runner.table_rendering import format_number
from store.document import Numbers, Words
from store.read.usage import dollars

MOST_METRICS = 300
"""Metrics of one model in the report; scorecard.json has all."""

FEW_METRICS = 20
"""Up to this number, metrics of a model are not folded: a small job has no others."""

SEVERITIES = ("error", "warn", "info")


Operations: TypeAlias = Mapping[str, Any]
"""Content of `operations.json`: the run's progress and its cost."""


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
    by_path = metrics_by_path(reported.scorecard)
    rows_by_path = {path: [*metric_by_model(by_path, path).items()] for path in paths}
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


def _headline(
    rows: Sequence[tuple[str, Metric]], columns: Sequence[_HeadlineColumn]
) -> Iterator[Element]:
    """The rows of one metric between its name with meaning and its definition."""
    _, first = rows[0]
    width = str(1 + len(columns))
    yield element(
        "tr",
        element(
            "th",
            first.label,
            element(
                "span",
                element("code", first.path),
                f" {better}" if (better := BETTER_WORDS[first.direction]) else "",
                class_="key",
            ),
            element("span", first.meaning, class_="meaning"),
            scope="rowgroup",
            colspan=width,
        ),
    )
    for model, metric in rows:
        yield element(
            "tr",
            element("th", model, scope="row"),
            (
                element("td", text(metric), class_=_class(name, metric, is_number))
                for name, is_number, text in columns
            ),
        )
    # they may differ, as in an interval of fewer replicates
    by_definition: dict[str, list[str]] = {}
    for model, metric in rows:
        by_definition.setdefault(metric.definition, []).append(model)
    notes = [
        element(
            "span",
            definition if len(by_definition) == 1 else f"{', '.join(models)}: ",
            definition if len(by_definition) > 1 else "",
            class_="definition",
        )
        for definition, models in by_definition.items()
        if definition
    ]
    if notes:
        yield element("tr", element("td", notes, colspan=width, class_="definitions"))


def _class(name: str, metric: Metric, is_number: bool) -> str | None:
    if name == "target":
        return metric.verdict
    return "n" if is_number else None


def figures(
    drawn_figures: Iterable[Figure], folder: Path, formats: Sequence[str]
) -> Iterator[Element]:
    """Every figure inside the page: its title, the picture, what it shows in words."""
    for figure in drawn_figures:
        image = element(
            "img",
            src=_embedded(folder / f"{figure.name}.svg"),
            alt=f"{figure.title}. {figure.caption}",
        )
        yield element(
            "figure",
            element("h3", figure.title),
            scrolling(element("picture", _narrow(figure, folder), image), figure.title),
            element(
                "figcaption",
                whole_text(figure.caption),
                " Files: ",
                element(
                    "code", ", ".join(f"figures/{figure.name}.{f}" for f in formats)
                ),
            ),
        )


def _narrow(figure: Figure, folder: Path) -> Child:
    """The same figure for a narrow screen, if it was drawn."""
    path = folder / f"{narrow_name(figure.name)}.svg"
    if not path.exists():
        return ()
    return element(
        "source", media="screen and (max-width: 40rem)", srcset=_embedded(path)
    )


def _embedded(picture: Path) -> Element:
    """The address of a picture that is part of the page."""
    source = base64.b64encode(picture.read_bytes()).decode()
    return Element(f"data:image/svg+xml;base64,{source}")


def other_figures(
    drawn_figures: Sequence[Figure], folder: Path, formats: Sequence[str]
) -> Iterator[Element]:
    """The figures that are not on page one, behind a click."""
    if drawn_figures:
        titles = ", ".join(figure.title for figure in drawn_figures)
        yield folded(
            f"{plural(len(drawn_figures), 'figure')}: {titles}",
            figures(drawn_figures, folder, formats),
            class_="printed",
        )


def limits(reported: ReportSource) -> Iterator[Element]:
    """Yield a paragraph for each limit of the numbers."""
    for finding in reported.scorecard.findings:
        if finding.where == LIMITS:
            yield element("p", finding.message)


def findings(reported: ReportSource) -> Iterator[Element]:
    """The gravest first, otherwise in the order in which they were made."""
    sorted_findings = sorted(
        (finding for finding in reported.scorecard.findings if finding.where != LIMITS),
        key=lambda finding: SEVERITIES.index(finding.severity),
    )
    if sorted_findings:
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
            is_stacked=True,
        )
    else:
        yield element("p", "No findings.")
    if any(finding.where == LIMITS for finding in reported.scorecard.findings):
        yield folded("What the numbers do not show", limits(reported), class_="printed")
    parts = reported.scorecard.not_available
    if parts:
        yield folded(
            f"Not available ({len(parts)})",
            element("ul", (element("li", part) for part in parts)),
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
    """Yield the run's progress, its failures, and its cost."""
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
        ("cost", dollars(operations["cost_usd"])),
    ]
    yield html_table(
        "The run's course, when it was scored. Answers and scores do not depend on it.",
        [Words("what"), Numbers("amount")],
        rows,
    )


def run(operations: Operations) -> Iterator[Element]:
    """The course of the run and its costs, behind a click."""
    summary = "Tasks, attempts, tokens and cost"
    yield folded(summary, coverage(operations), costs(operations))


def settings(reported: ReportSource) -> Iterator[Element]:
    """Yield the settings, the input files, and the identity of the scoring."""
    yield folded(
        "Settings, input files and identity of the scoring",
        _identity(reported),
        _settings(reported),
    )


def _identity(reported: ReportSource) -> Element:
    return facts_list(
        {
            "job": f"{reported.job}, version {reported.job_version}",
            "run": reported.run_id,
            "answers": "made elsewhere, imported"
            if reported.is_imported
            else "made by siftlog",
            "scoring": f"scorecard.json, SHA-256 {reported.digest[:16]}…",
        }
    )


def _settings(reported: ReportSource) -> Iterator[Element]:
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
    """The headline metrics with their meaning, then all metrics, one table a model."""
    blocks = tuple(headlines(reported))
    if blocks:
        yield folded("Headline metrics: meaning and definition", blocks)
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
            is_open=len(model_metrics) <= FEW_METRICS,
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
"""Rows shown of a table that a report begins with."""


def tables(reported: ReportSource, folder: Path) -> Iterator[Element]:
    """All tables behind a click, those first that a job shows first."""
    for table in sorted(
        reported.scorecard.tables, key=lambda table: not table.is_headline
    ):
        most = HEADLINE_ROWS if table.is_headline else FIRST_ROWS
        preview = CsvPreview.of(folder / f"{table.name}.csv", most=most)
        left = preview.total - len(preview.rows)
        if not preview.total:
            inside: Child = element("p", table.caption, " It has no rows.")
        else:
            inside = preview.grid(_caption(table, preview), table.titles)
        first = f"first {len(preview.rows)} of " if left else ""
        yield folded(f"{table.name} ({first}{plural(preview.total, 'row')})", inside)


def _caption(table: Table, preview: CsvPreview) -> Child:
    left = preview.total - len(preview.rows)
    extent = f"All {preview.total:,} rows" if left else "The same rows"
    file = element("code", f"{table.name}.csv")
    return (table.caption, f" {extent} are in ", file, ", with all digits.")
