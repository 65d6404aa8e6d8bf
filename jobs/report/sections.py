"""What a report says, section by section; each is empty where there is nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from jobs.report.grid import Column, grid, scrolling
from jobs.report.markup import Child, Element, element
from jobs.report.wording import counted, interval, number, spread, target
from runner.score.render import BETTER, ReportSource
from runner.score.render import headlines as headline_paths
from runner.scorecard import LIMITS, Direction, Figure, Finding, Metric

MOST_METRICS = 300
"""Of one model in the report; scorecard.json holds all."""

SEVERITIES = ("error", "warn", "info")


Course: TypeAlias = Mapping[str, Any]
"""What `operations.json` says: how far the run had come, and what it had cost."""


def notices(reported: ReportSource, course: Course) -> Iterator[str]:
    """What a reader must know before the first number."""
    card = reported.scorecard
    # folders of earlier versions do not say it
    if course.get("partial"):
        yield "Partial: the run was unfinished when it was scored."
    if reported.changed_inputs:
        names = ", ".join(reported.changed_inputs)
        yield f"Scored with other input files than those of the run's start: {names}."
    if card.missing:
        yield (
            f"{card.missing:,} tasks that the settings ask for are not in the run and "
            "are not counted."
        )
    if card.stale:
        yield (
            f"{card.stale:,} stored answers are not asked for under these settings and "
            "are not used."
        )
    errors = sum(finding.severity == "error" for finding in card.findings)
    if errors:
        yield f"{errors:,} findings are errors: see Findings."


def overview(reported: ReportSource) -> Iterator[Element]:
    """Models by headline metrics on one page, each with its name and its key."""
    card = reported.scorecard
    paths = headline_paths(card)
    by_path = {model: {m.path: m for m in own} for model, own in card.models.items()}
    known = [
        (path, {model: own[path] for model, own in by_path.items() if path in own})
        for path in paths
    ]
    rows = [(path, found) for path, found in known if found]
    if not rows:
        return
    yield grid(
        "Headline metrics by model, with intervals; n is the number of items.",
        [
            Column(name="metric"),
            Column(name="better"),
            *(Column(name=model, numeric=True) for model in by_path),
            Column(name="n", numeric=True),
        ],
        [_overview_row(found, tuple(by_path)) for _, found in rows],
    )


def _overview_row(found: Mapping[str, Metric], models: Sequence[str]) -> list[Child]:
    first = next(iter(found.values()))
    counts = dict.fromkeys(f"{metric.n:,}" for metric in found.values())
    return [
        _named(first),
        BETTER[first.direction],
        *(_estimate(found.get(model)) for model in models),
        # as many as there are models, where each is of other items
        " / ".join(counts),
    ]


def _named(metric: Metric) -> Child:
    """A metric's name with its key below."""
    key = element("code", metric.path)
    return (metric.name, element("span", key, class_="key")) if metric.name else key


def _estimate(metric: Metric | None) -> Child:
    if metric is None:
        return "-"
    ends = element("span", interval(metric), class_="ends")
    return number(metric.value), ends if interval(metric) else ""


def headlines(reported: ReportSource) -> Iterator[Element]:
    """The headline metrics: one block each, one row a model."""
    models = reported.scorecard.models
    paths = dict.fromkeys(
        metric.path for own in models.values() for metric in own if metric.is_headline
    )
    if not paths:
        return
    by_path = {model: {m.path: m for m in own} for model, own in models.items()}
    found = {
        path: [(model, own[path]) for model, own in by_path.items() if path in own]
        for path in paths
    }
    every = [metric for rows in found.values() for _, metric in rows]
    shown = [column for column in _HEADLINE if any(map(column[2], every))]
    heads = [
        element("th", "model", scope="col"),
        *(
            element("th", name, scope="col", class_="n" if is_number else None)
            for name, is_number, _ in shown
        ),
    ]
    yield scrolling(
        element(
            "table",
            element("caption", "The headline metrics, with what each one tells."),
            element("thead", element("tr", heads)),
            (element("tbody", _headline(rows, shown)) for rows in found.values()),
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


_Shown: TypeAlias = tuple[str, bool, Callable[[Metric], str]]

_HEADLINE: tuple[_Shown, ...] = (
    ("value", True, lambda m: number(m.value)),
    ("mean ± std", True, spread),
    ("interval", True, interval),
    ("n", True, counted),
    ("subset", False, lambda m: m.subset),
    ("target", False, target),
    ("note", False, lambda m: m.note or ""),
)
"""Columns of the headlines: name, whether of numbers, and what a metric has there."""


_BETTER: Mapping[Direction, str] = {
    "higher": "higher is better",
    "lower": "lower is better",
    "neither": "",
}


def _headline(
    rows: Sequence[tuple[str, Metric]], shown: Sequence[_Shown]
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
            colspan=str(1 + len(shown)),
        ),
    )
    for model, metric in rows:
        # such as an interval of fewer replicates
        is_own = metric.definition != first.definition
        own = element("span", metric.definition, class_="definition") if is_own else ""
        yield element(
            "tr",
            element("th", model, own, scope="row"),
            (
                element("td", text(metric), class_=_class(name, metric, is_number))
                for name, is_number, text in shown
            ),
        )


def _class(name: str, metric: Metric, is_number: bool) -> str | None:
    if name == "target":
        return metric.verdict
    return "n" if is_number else None


def figures(drawn: Iterable[Figure], folder: Path) -> Iterator[Element]:
    """Every figure inside the page, with what it shows in words."""
    for figure in drawn:
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
                element("code", f"figures/{figure.name}.svg"),
                ", ",
                element("code", f"figures/{figure.name}.png"),
            ),
        )


def limits(reported: ReportSource) -> Iterator[Element]:
    """What the numbers do not show, a paragraph each."""
    for finding in reported.scorecard.findings:
        if finding.where == LIMITS:
            yield element("p", finding.message)


def findings(reported: ReportSource) -> Iterator[Element]:
    """The gravest first, otherwise in the order in which they were made."""
    found = sorted(
        (own for own in reported.scorecard.findings if own.where != LIMITS),
        key=lambda own: SEVERITIES.index(own.severity),
    )
    if not found:
        yield element("p", "None.")
        return
    yield grid(
        "What a reader of the numbers should know, the gravest first.",
        [
            Column(name="severity"),
            Column(name="where"),
            Column(name="what"),
            Column(name="n", numeric=True),
            Column(name="example"),
        ],
        [_finding(finding) for finding in found],
    )


def _finding(finding: Finding) -> list[Child]:
    return [
        element("span", finding.severity, class_=finding.severity),
        finding.where,
        (finding.message, " ", element("code", finding.code)),
        f"{finding.n:,}",
        finding.example,
    ]


def coverage(course: Course) -> Iterator[Element]:
    """How far the run had come, what failed, and what it cost."""
    rows: list[tuple[str, str]] = [
        (f"{kind}: {name}", number(n))
        for kind in ("tasks", "attempts")
        for name, n in course[kind].items()
    ]
    rows += [(f"errors: {name}", number(n)) for name, n in course["errors"].items()]
    rows += [
        ("tokens in", number(course["tokens_in"])),
        ("tokens in, cached", number(course["tokens_cached"])),
        ("tokens out", number(course["tokens_out"])),
        ("cost in US dollars", _dollars(course["cost_usd"])),
    ]
    yield grid(
        "The run's course, when it was scored. Answers and scores do not depend on it.",
        [Column(name="what"), Column(name="amount", numeric=True)],
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
        yield grid(
            "Settings that are not the default.",
            [Column(name="setting"), Column(name="value"), Column(name="default")],
            [
                (name, _plain(value), _plain(default))
                for name, (value, default) in reported.changes.items()
            ],
        )
    else:
        yield element("p", "Every setting that bears on the scores is the default.")
    if reported.inputs:
        yield grid(
            "The input files, by the beginning of their SHA-256.",
            [Column(name="setting"), Column(name="hash")],
            [(i.setting, element("code", i.sha256[:16])) for i in reported.inputs],
        )


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def metrics(reported: ReportSource) -> Iterator[Element]:
    """Everything that was measured, one table a model."""
    for model, own in reported.scorecard.models.items():
        shown = own[:MOST_METRICS]
        size = f"first {len(shown)} of {len(own):,}" if own[MOST_METRICS:] else len(own)
        yield element(
            "details",
            element("summary", f"{model} ({size} metrics)"),
            grid(
                ("All are in ", element("code", "scorecard.json"), "."),
                [
                    Column(name="metric"),
                    Column(name="better"),
                    Column(name="value", numeric=True),
                    Column(name="interval", numeric=True),
                    Column(name="n", numeric=True),
                    Column(name="subset"),
                    Column(name="definition"),
                ],
                [
                    (
                        _named(m),
                        BETTER[m.direction],
                        number(m.value),
                        interval(m),
                        counted(m),
                        m.subset,
                        (m.definition, f" ({m.note})" if m.note else ""),
                    )
                    for m in shown
                ],
            ),
        )
