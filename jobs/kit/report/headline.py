"""Page one of a report: what was asked, by whom, when, for how much, and the result.

The result is a table of models by headline metrics. A model is marked as best where
the comparisons of the run say so (`jobs.kit.comparison`), and nowhere else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from jobs.kit.comparison.in_run import MetricVerdicts, run_verdicts
from jobs.kit.report.html import Child, Element, element, facts_list, html_table
from jobs.kit.text_format import metric_count, metric_interval, metric_target
from runner.cli.console import duration
from runner.score.render import ReportSource
from runner.score.render import headlines as headline_paths
from runner.scorecard import Direction, Metric, Scorecard
from runner.table_rendering import format_number
from store.document import Numbers, Words
from store.read.course import Course
from store.read.usage import dollars

NAMED_MODELS: Final = 8
"""Models that the header names."""

NAMED_WINNERS: Final = 3
"""Models that a sentence names which are better than some others."""

BETTER_WORDS: Final[Mapping[Direction, str]] = {
    "higher": "higher is better",
    "lower": "lower is better",
    "neither": "",
}


def description(reported: ReportSource) -> Iterator[Element]:
    """Yield a paragraph for each question of the run."""
    for text in reported.description:
        yield element("p", text, class_="asked")


def facts(reported: ReportSource, operations: Mapping[str, Any]) -> Element:
    """By whom, when, and for how much."""
    models = [*reported.scorecard.models]
    named = ", ".join(models[:NAMED_MODELS]) or "none"
    more = len(models) - NAMED_MODELS
    return facts_list(
        {
            "models": f"{named} and {more} more" if more > 0 else named,
            **_times(reported.course, is_imported=reported.is_imported),
            "cost": _cost(operations, is_imported=reported.is_imported),
            "tasks": _tasks(operations),
        }
    )


def _times(course: Course | None, *, is_imported: bool) -> Mapping[str, str]:
    if course is None:
        return {}
    start = datetime.fromtimestamp(course.started_us / 1e6, UTC)
    when = f"{start.day} {start:%B %Y, %H:%M} UTC"
    if is_imported:
        return {"imported": when}
    return {"started": when, "duration": duration(course.worked_s)}


def _cost(operations: Mapping[str, Any], *, is_imported: bool) -> str:
    if is_imported:
        return "not known: the answers were imported"
    cost, open_usd = operations["cost_usd"], operations.get("possible_usd")
    text = "not known: a price is missing" if cost is None else dollars(cost)
    return f"{text}; {dollars(open_usd)} may still be billed" if open_usd else text


def _tasks(operations: Mapping[str, Any]) -> str:
    tasks = operations["tasks"]
    counts = [f"{tasks['completed']:,} completed"]
    counts += [
        f"{tasks[state]:,} {state}"
        for state in ("failed", "skipped", "open")
        if tasks[state]
    ]
    return ", ".join(counts)


MOST_HEADLINES = 7
"""Metrics of page one."""


def main_paths(card: Scorecard) -> list[str]:
    """The metrics of page one: the headline, then those with a better and a worse.

    A job without headline metrics has its first metrics there.
    """
    paths = headline_paths(card)
    if not paths:
        every = (m.path for metrics in card.models.values() for m in metrics)
        paths = [*dict.fromkeys(every)]
    directions = {
        metric.path: metric.direction
        for metrics in card.models.values()
        for metric in metrics
    }
    known = [path for path in paths if path in directions]
    by_use = sorted(
        known, key=lambda p: (p != card.headline, directions[p] == "neither")
    )
    return by_use[:MOST_HEADLINES]


def results(reported: ReportSource) -> Iterator[Element]:
    """Models by headline metrics, and what comparisons say about them."""
    card = reported.scorecard
    paths = main_paths(card)
    if not paths:
        yield element("p", "There is no metric.")
        return
    table = metrics_by_path(card)
    compared: Mapping[str, MetricVerdicts] = {}
    if len(table) > 1:
        compared = run_verdicts(card.comparable, paths, reported.settings)
    columns = [metric_by_model(table, path) for path in paths]
    best = [
        _best(compared.get(path), of) for path, of in zip(paths, columns, strict=True)
    ]
    table_element = html_table(
        _caption(card),
        [Words("model"), *(Numbers(_first(of).label) for of in columns)],
        [
            [
                model,
                *(
                    _cell(of.get(model), is_best=model == name)
                    for of, name in zip(columns, best, strict=True)
                ),
            ]
            for model in table
        ],
        ["", *map(_key, columns)],
        is_stacked=True,
    )
    yield element("div", table_element, class_="results")
    yield from _comparison(compared, dict(zip(paths, columns, strict=True)))


def metrics_by_path(card: Scorecard) -> dict[str, dict[str, Metric]]:
    """The metrics of each model by path."""
    return {
        model: {metric.path: metric for metric in metrics}
        for model, metrics in card.models.items()
    }


def metric_by_model(
    table: Mapping[str, Mapping[str, Metric]], path: str
) -> dict[str, Metric]:
    """One metric of the models that have it."""
    return {model: of[path] for model, of in table.items() if path in of}


def _first(of: Mapping[str, Metric]) -> Metric:
    return next(iter(of.values()))


def _key(of: Mapping[str, Metric]) -> Child:
    better = BETTER_WORDS[_first(of).direction]
    return element("span", better, class_="key") if better else ""


def _caption(card: Scorecard) -> str:
    level = card.settings.get("level")
    size = f"{100 * level:.4g}% interval" if isinstance(level, float) else "interval"
    return f"Below each value: its {size}; n is the number of items."


def _cell(metric: Metric | None, *, is_best: bool) -> Child:
    if metric is None:
        return "-"
    value: Child = format_number(metric.value)
    if is_best:
        value = (element("strong", value), " ", element("span", "best", class_="best"))
    texts = (
        metric_interval(metric),
        f"n = {metric_count(metric)}",
        f"target {metric_target(metric)}" if metric.target else "",
    )
    lines = (element("span", text, class_="ends") for text in texts if text)
    return value, lines


def _best(verdicts: MetricVerdicts | None, of: Mapping[str, Metric]) -> str | None:
    if verdicts is None:
        return None
    return verdicts.best([m for m, metric in of.items() if metric.value is not None])


def _comparison(
    compared: Mapping[str, MetricVerdicts], columns: Mapping[str, Mapping[str, Metric]]
) -> Iterator[Element]:
    """A line for each thing that comparisons say, with the metrics it is about."""
    if not compared:
        return
    by_sentence: dict[str, list[str]] = {}
    for path, verdicts in compared.items():
        sentence = _sentence(verdicts, columns[path])
        by_sentence.setdefault(sentence, []).append(_first(columns[path]).label)
    missing = [_first(of).label for path, of in columns.items() if path not in compared]
    if missing:
        by_sentence["not compared here"] = missing
    yield element(
        "ul",
        (
            element("li", element("strong", "; ".join(names)), f": {sentence}.")
            for sentence, names in by_sentence.items()
        ),
        class_="comparison",
    )
    first = next(iter(compared.values()))
    note = first.rule.sentence(first.cluster)
    yield element("p", f"{note[:1].upper()}{note[1:]}.", class_="note")


def _sentence(verdicts: MetricVerdicts, of: Mapping[str, Metric]) -> str:
    others = len(of) - 1
    best = _best(verdicts, of)
    if best is not None and others == 1:
        (other,) = (model for model in of if model != best)
        return f"{best} is better than {other}"
    if best is not None:
        return f"{best} is better than each of the {others} others"
    if verdicts.has_too_few:
        return f"no best model, too few {verdicts.cluster}s to compare"
    wins = Counter(winner for winner, _ in verdicts.decided)
    if not wins:
        return "no best model, no clear difference"
    texts = [
        f"{model} is better than {n} of {others}" for model, n in wins.most_common()
    ]
    more = len(texts) - NAMED_WINNERS
    if more > 0:
        texts[NAMED_WINNERS:] = [f"{more} more than some"]
    return f"no best model; {', '.join(texts)}"
