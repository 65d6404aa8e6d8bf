"""Formats the answers of a run as a page: each value with its quote in context."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from jobs.ask.inputs import AskDataset
from jobs.kit.fields.gold import gold_text
from jobs.kit.fields.measures import Judge
from jobs.kit.fields.parsing import AnswerQuote
from jobs.kit.fields.results import FieldResult
from jobs.kit.fields.tables import JudgedRow
from jobs.kit.report import answer_page
from jobs.kit.report.answer_page import PageValue, QuoteInContext

PAGE = "answers.html"

FLAGS = {
    "not-reported": "not reported",
    "unread": "could not be read",
    "ungrounded": "quote not in the text",
    "unsupported": "not supported by its quote",
    "differs": "models or replicates differ",
}

WRONG = {"wrong": "differs from the gold value"}


def page_start(dataset: AskDataset, models: Sequence[str], judge: Judge | None) -> str:
    """Return the beginning of the page."""
    fields = dataset.recipe.every_field
    return answer_page.page_start(
        "Answers",
        {"papers": f"{len(dataset.items):,}", "models": ", ".join(models)}
        | {name: spec.ask for name, spec in fields.items()},
        fields=fields,
        models=models,
        flags={**FLAGS, **(WRONG if judge else {})},
        file="answers.csv",
    )


def page_row(dataset: AskDataset, row: JudgedRow, differing: Collection[str]) -> str:
    """Return the answers of one model about one item.

    Args:
        dataset: inputs of the run.
        row: the answers.
        differing: fields that differ between models or replicates.
    """
    item, fields = dataset.items[row.row.item], dataset.recipe.every_field
    return answer_page.page_row(
        item.key,
        item.fields.get("title") or item.where,
        row.row.model,
        [
            PageValue(
                field=name,
                value=result.text_with(fields[name].unit),
                state=result.failure or result.state,
                flags=[*_flags(name, row, differing)],
                quotes=[in_context(dataset, item.key, q) for q in result.answer.quotes],
                notes=[*_notes(name, row)],
            )
            for name, result in row.row.fields.items()
            if result.state != "not asked"
        ],
    )


def in_context(dataset: AskDataset, key: str, quote: AnswerQuote) -> QuoteInContext:
    """Return a quote with the surrounding text."""
    if quote.start is None or quote.end is None:
        return QuoteInContext(quote=quote.text, is_located=False)
    text = dataset.items[key].document.text
    return QuoteInContext.of(text, quote.start, quote.end, place_text(quote))


def place_text(quote: AnswerQuote) -> str:
    """Return page and innermost section of a quote."""
    page = f"page {quote.page}" if quote.page else ""
    return ", ".join(filter(None, (page, quote.section.rpartition(" > ")[2])))


def _flags(name: str, row: JudgedRow, differing: Collection[str]) -> Iterator[str]:
    result: FieldResult = row.row.fields[name]
    if result.state == "not reported":
        yield "not-reported"
    if result.failure:
        yield "unread"
    if result.answer.is_grounded is False:
        yield "ungrounded"
    if result.check == "not_supported":
        yield "unsupported"
    if name in differing:
        yield "differs"
    if name in row.scores and not row.scores[name].is_right:
        yield "wrong"


def _notes(name: str, row: JudgedRow) -> Iterator[str]:
    result = row.row.fields[name]
    if result.failure and result.answer.detail:
        yield f"reply: {result.answer.detail}"
    if result.check:
        yield f"check: {result.check.replace('_', ' ')}"
    if result.agreement is not None:
        yield f"replicates: {result.agreement:.0%} agree"
    if name in row.gold:
        yield f"gold: {gold_text(row.gold[name])}"
