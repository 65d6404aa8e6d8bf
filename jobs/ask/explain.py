"""Explains items: the answers of each model, their quotes, and the gold values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from jobs.ask.answers import results
from jobs.ask.inputs import AskDataset
from jobs.ask.merge import place_of
from jobs.ask.page import in_context, place_text
from jobs.kit.explain import (
    ItemAnswer,
    closest,
    pages_text,
    passage_of,
    select,
    summary_fact,
)
from jobs.kit.fields.gold import gold_text
from jobs.kit.fields.measures import Judge
from jobs.kit.fields.parsing import ParsedReply
from jobs.kit.fields.results import FieldResult, ModelResult, replicate_result
from jobs.kit.fields.tables import JudgedRow
from jobs.kit.replies import AnswerSubset
from jobs.kit.text_format import plural
from runner.job import Answer, Answers, QuotedPassage
from store.document import Block, Fact, Heading, Quote

WIDTH = 12


def explain(
    dataset: AskDataset, answers: Answers | None, items: tuple[str, ...]
) -> str:
    """Return a page for each item."""
    chosen = select(
        items or tuple(dataset.items)[:1],
        lambda item: [item] if item in dataset.items else [],
        kinds="item",
        otherwise="name an item by its id.",
        near=lambda item: closest(item, dataset.items),
    )
    rows: dict[str, tuple[ModelResult, ...]] = {}
    if answers is not None:
        wanted = AnswerSubset.matching(
            answers, lambda task: place_of(task).item in chosen
        )
        rows = {result.item: result.rows for result in results(dataset, wanted)}
    gold = dataset.gold
    judge = Judge(gold=gold, fields=dataset.recipe.every_field) if gold else None
    return pages_text(_page(dataset, key, rows.get(key, ()), judge) for key in chosen)


def _page(
    dataset: AskDataset, key: str, rows: tuple[ModelResult, ...], judge: Judge | None
) -> Iterator[Block]:
    item = dataset.items[key]
    yield Heading(key, level=1)
    gold = judge.gold.rows.get(key, {}) if judge else {}
    truth = plural(len(gold), "gold value") if gold else None
    yield summary_fact(truth, [_overview(row, judge) for row in rows])
    yield Fact("file", item.where)
    yield Fact("title", item.fields.get("title", ""))
    for name, spec in dataset.recipe.every_field.items():
        yield Heading(name)
        yield Fact("question", spec.ask, 2, WIDTH)
        if name in gold:
            yield Fact("gold", gold_text(gold[name]), 2, WIDTH)
        for row in rows:
            yield from _answer(dataset, name, row, judge)


def _overview(row: ModelResult, judge: Judge | None) -> ItemAnswer:
    """Return the number of fields that a model answered, and of correct ones."""
    outcomes = [r for r in row.fields.values() if r.state not in {"not asked", "open"}]
    answered = sum(result.state == "answered" for result in outcomes)
    text = f"{answered} of {plural(len(outcomes), 'field')} answered"
    scores = JudgedRow.of(row, judge).scores.values()
    if scores:
        text += f", {sum(score.is_right for score in scores)} of {len(scores)} right"
    return ItemAnswer(model=row.model, text=text)


def _answer(
    dataset: AskDataset, name: str, row: ModelResult, judge: Judge | None
) -> Iterator[Block]:
    result = row.fields[name]
    spec = dataset.recipe.every_field[name]
    yield f"  {row.model}"
    yield Fact("answer", _words(result, spec.unit), 4, WIDTH)
    score = judge.score(row.item, name, result) if judge else None
    if score is not None:
        words = "right" if score.is_right else "wrong"
        if spec.is_list:
            words += (
                f": {score.hits} of {score.expected} found, {score.predicted} named"
            )
        yield Fact("judged", words, 4, WIDTH)
    if result.check:
        reasons = dict.fromkeys(
            check.reason for r in row.replicates for check in r.checks.get(name, ())
        )
        words = ": ".join(filter(None, (result.check.replace("_", " "), *reasons)))
        yield Fact("check", words, 4, WIDTH)
    if result.agreement is not None:
        replicates = (replicate_result(name, spec, r) for r in row.replicates)
        words = "; ".join(_words(one, spec.unit) for one in replicates)
        yield Fact("replicates", words, 4, WIDTH)
    for quote in result.answer.quotes:
        context = in_context(dataset, row.item, quote)
        yield Fact("quote", f"{quote.level.value} {context.place}".strip(), 4, WIDTH)
        yield Quote(
            " ".join(f"{context.before}[[{context.quote}]]{context.after}".split())
            if context.is_located
            else quote.text
        )


def _words(result: FieldResult, unit: str | None) -> str:
    text = result.text_with(unit)
    if text is not None:
        return text
    detail = result.answer.detail
    reasons = (result.state, result.failure, repr(detail) if detail else "")
    return ": ".join(filter(None, reasons))


MOST_QUESTIONS: Final = 8
"""Questions on the first page of a report."""


def describe(dataset: AskDataset, /) -> Iterator[str]:
    """Yield the instructions and the questions, for the report."""
    recipe = dataset.recipe
    if recipe.instructions.strip():
        yield recipe.instructions.strip()
    fields = list(recipe.every_field.items())
    yield f"Asked of {plural(len(dataset.items), 'paper')}:"
    yield from (f"{name}: {field.ask}" for name, field in fields[:MOST_QUESTIONS])
    more = len(fields) - MOST_QUESTIONS
    if more > 0:
        yield f"and {more:,} more"


def quotes(dataset: AskDataset, answer: Answer, /) -> Iterator[QuotedPassage]:
    """Yield the quotes of a parsed reply, each with the field that it supports."""
    if not isinstance(answer.parsed, ParsedReply):
        return
    text = dataset.items[place_of(answer.task).item].document.text
    for name, field in answer.parsed.fields.items():
        for quote in field.quotes:
            start, end = quote.start, quote.end
            yield passage_of(
                text,
                quote.text,
                None if start is None or end is None else (start, end),
                label=name,
                match=quote.level.value,
                place=place_text(quote),
            )
