"""Formats the summary for the terminal: a few items with their quotes, or counts."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from jobs.ask.inputs import AskDataset
from jobs.ask.page import place_text
from jobs.kit.fields.gold import gold_text
from jobs.kit.fields.measures import Judge
from jobs.kit.fields.results import FieldResult, ItemResult, ModelResult
from jobs.kit.fields.tables import FieldOutcomes
from jobs.kit.summary import finding_lines, summary_text
from jobs.kit.text_format import plural, with_ends
from runner.scorecard import Finding, Metric
from store.document import Block, Column, Heading, Numbers, PageText, TableBlock, Words
from store.printable import one_line

MOST_ITEMS = 5
"""Maximum number of items of a run for which the summary lists every answer."""

VALUE_CHARS, QUOTE_CHARS, QUOTE_LINES = 22, 38, 4
"""Widths of the columns, which fit 80 columns, and lines of a quote."""

FILES: Final = "answers.csv is the table; answers.html shows each value in its context."
"""Where a person finds the answers, in the folder of the scoring."""


def run_text(
    dataset: AskDataset,
    items: Sequence[ItemResult],
    counts: Sequence[FieldOutcomes],
    metrics: Mapping[str, Sequence[Metric]],
    *,
    judge: Judge | None,
    disagreeing: Counter[str],
    findings: Sequence[Finding],
) -> PageText:
    """Return the summary of a run.

    Args:
        dataset: inputs of the run.
        items: its first items, one more than are listed.
        counts: counts by model and field.
        metrics: metrics by model.
        judge: has the gold values, if they are known.
        disagreeing: number of items whose models differ, by field.
        findings: findings about inputs and answers.
    """
    blocks: list[Block] = [*answer_blocks(dataset, items, counts, judge=judge)]
    if disagreeing:
        listed = ", ".join(f"{name} ({k:,})" for name, k in disagreeing.most_common())
        blocks.append(f"Models differ: {listed}. See disagreements.csv.")
    blocks += _accuracy(metrics)
    blocks += finding_lines(findings)
    blocks.append(FILES)
    return summary_text(blocks)


def answers_text(
    dataset: AskDataset,
    items: Sequence[ItemResult],
    counts: Sequence[FieldOutcomes],
    *,
    judge: Judge | None,
) -> PageText:
    """Return the text at the end of a run: the answers, or their counts."""
    page = answer_blocks(dataset, items, counts, judge=judge)
    return summary_text([*page, FILES])


def answer_blocks(
    dataset: AskDataset,
    items: Sequence[ItemResult],
    counts: Sequence[FieldOutcomes],
    *,
    judge: Judge | None,
) -> Iterator[Block]:
    """Yield every answer of a few items, then counts by model and field."""
    if len(items) <= MOST_ITEMS:
        for item in items:
            yield from _item(dataset, item, judge)
            yield ""
    models = len({row.model for row in counts})
    yield (
        f"{plural(len(dataset.items), 'item')}, "
        f"{plural(len(dataset.recipe.every_field), 'field')}, "
        f"{plural(models, 'model')}"
    )
    yield _counts(counts)


def _item(
    dataset: AskDataset, item: ItemResult, judge: Judge | None
) -> Iterator[Block]:
    """Yield the answers about one item, each next to its quote."""
    yield Heading(item.item, level=1)
    for row in item.rows:
        if len(item.rows) > 1:
            yield f"  {one_line(row.model)}"
        rows: list[tuple[str, str, str]] = []
        for name, result in row.fields.items():
            unit = dataset.recipe.every_field[name].unit
            rows += _lines(name, _value(result, unit, _gold(judge, row, name)), result)
        yield TableBlock(
            [Words("", 14), Words("", VALUE_CHARS), Words("", QUOTE_CHARS)], rows
        )


def _gold(judge: Judge | None, row: ModelResult, name: str) -> str:
    """Return the gold value of a wrong answer; "" for all other answers."""
    score = judge.score(row.item, name, row.fields[name]) if judge else None
    if judge is None or score is None or score.is_right:
        return ""
    return gold_text(judge.gold.rows[row.item][name])


def _value(result: FieldResult, unit: str | None, gold: str) -> str:
    """Return a value, or the reason for none, and the gold value if it is wrong."""
    value = result.text_with(unit) or result.state
    value += f": {result.failure}" if result.failure else ""
    return f"{value} [gold: {gold}]" if gold else value


def _lines(
    name: str, value: str, result: FieldResult
) -> Iterator[tuple[str, str, str]]:
    """Yield a field's name, value and quote in wrapped lines."""
    values = textwrap.wrap(value, VALUE_CHARS) or [""]
    quotes = textwrap.wrap(_quote(result), QUOTE_CHARS)
    if len(quotes) > QUOTE_LINES:
        last = f"{quotes[QUOTE_LINES - 1][: QUOTE_CHARS - 2]} …"
        quotes = [*quotes[: QUOTE_LINES - 1], last]
    values = values[: max(len(quotes), QUOTE_LINES)]
    for at in range(max(len(values), len(quotes))):
        yield (
            name if at == 0 else "",
            values[at] if at < len(values) else "",
            quotes[at] if at < len(quotes) else "",
        )


def _quote(result: FieldResult) -> str:
    """Return a quote with its position, or a note that it is not in the text."""
    if result.quote is None:
        return ""
    place = place_text(result.place) if result.place else "not in the text"
    return f'"{result.quote}"' + (f" ({place})" if place else "")


def _counts(counts: Sequence[FieldOutcomes]) -> TableBlock:
    has_checks = any(row.tally.checks for row in counts)
    columns: list[Column] = [
        Words("model", 20, keeps_end=True),
        Words("field", 18),
        Numbers("answered"),
        Numbers("null"),
        Numbers("unread"),
        Numbers("grounded", 3),
        *([Numbers("supported")] if has_checks else []),
    ]
    rows = []
    before = ""
    for row in counts:
        tally = row.tally
        rows.append(
            [
                "" if row.model == before else row.model,
                row.field,
                tally.answered,
                tally.states["not reported"],
                tally.unread,
                tally.grounded / tally.quoted if tally.quoted else None,
                *([tally.checks["supported"] if tally.checks else None] * has_checks),
            ]
        )
        before = row.model
    return TableBlock(columns, rows)


def _accuracy(metrics: Mapping[str, Sequence[Metric]]) -> Iterator[Block]:
    """Yield the metrics that need gold values."""
    judged = {
        model: {
            metric.path: metric
            for metric in listed
            if metric.path.rpartition(".")[2] in {"accuracy", "f1"}
        }
        for model, listed in metrics.items()
    }
    paths = list(dict.fromkeys(path for listed in judged.values() for path in listed))
    if not paths:
        return
    columns = [
        Words("metric", 30),
        *(Words(model, 22) for model in metrics),
        Words("n"),
    ]
    rows = [
        (
            path,
            *(
                with_ends(listed[path]) if path in listed else None
                for listed in judged.values()
            ),
            f"{max(listed[path].n for listed in judged.values() if path in listed):,}",
        )
        for path in paths
    ]
    yield ""
    yield TableBlock(columns, rows, is_wide=True)
