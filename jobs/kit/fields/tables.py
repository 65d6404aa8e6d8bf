"""Declares the tables of typed fields: answers, disagreements, counts, confusion.

The columns of `answers` follow from the declared fields alone, so that all runs with
the same fields have the same ones.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from jobs.kit.fields.gold import gold_text
from jobs.kit.fields.measures import FieldTally, Judge
from jobs.kit.fields.results import (
    FieldResult,
    ItemResult,
    ModelResult,
    answer_key,
)
from jobs.kit.fields.spec import FieldSpec
from jobs.kit.tables import Columns, TableOf, column, count, flag, number, text
from jobs.kit.value_scores import ValueScore
from runner.scorecard import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRow:
    """A row of the table of answers with its gold values."""

    row: ModelResult
    scores: Mapping[str, ValueScore]  #: by field, of those with a gold value
    gold: Mapping[str, Any]

    @classmethod
    def of(cls, row: ModelResult, judge: Judge | None) -> JudgedRow:
        """Return a row with the scores of its fields."""
        scores = {
            name: score
            for name, result in row.fields.items()
            if judge and (score := judge.score(row.item, name, result)) is not None
        }
        gold = judge.gold.rows.get(row.item, {}) if judge else {}
        return cls(row=row, scores=scores, gold=gold)


def answer_table(
    fields: Mapping[str, FieldSpec],
    *,
    checked: Collection[str] = (),
    replicates: int = 1,
    has_reasoning: bool = False,
    judge: Judge | None = None,
) -> AnswerTable:
    """Return the table of answers, without its rows.

    Args:
        fields: by name.
        checked: fields whose values a check verifies.
        replicates: of the run.
        has_reasoning: whether replies begin with a reasoning.
        judge: has the gold values, if they are known.
    """
    columns: list[Columns[JudgedRow]] = [
        text("id", lambda row: row.row.item),
        text("model", lambda row: row.row.model),
    ]
    for name, spec in fields.items():
        columns += _field_columns(
            name,
            spec,
            is_checked=name in checked,
            is_repeated=replicates > 1,
            has_gold=judge is not None and name in judge.gold.fields,
        )
    if has_reasoning:
        columns.append(text("reasoning", lambda row: row.row.replicates[0].reasoning))
    columns += [
        number("cost_usd", lambda row: row.row.cost_usd),
        text("error", lambda row: row.row.error, "why requests failed"),
    ]
    return TableOf(
        name="answers",
        columns=tuple(columns),
        caption="One row per item and model. answers.html shows each value in context.",
    )


AnswerTable = TableOf[JudgedRow]

FORMATS: Final[tuple[Literal["jsonl", "parquet", "xlsx"], ...]] = ("parquet", "xlsx")
"""Formats of the table of answers besides CSV; JSON lines are nested, and written by
`answer_line`."""


def _field_columns(
    name: str, spec: FieldSpec, *, is_checked: bool, is_repeated: bool, has_gold: bool
) -> Iterator[Columns[JudgedRow]]:
    """Yield the columns of a field."""

    def result(row: JudgedRow) -> FieldResult:
        return row.row.fields[name]

    yield column(name, partial(_value_cell, name, spec), spec.ask)
    if spec.unit:
        yield text(f"{name}_unit", lambda row: spec.unit if result(row).text else None)
    if spec.quote:
        yield text(f"{name}_quote", lambda row: result(row).quote)
        yield count(f"{name}_page", lambda row: _place(result(row))[0])
        yield text(f"{name}_section", lambda row: _place(result(row))[1])
        yield flag(f"{name}_grounded", lambda row: result(row).answer.is_grounded)
    yield text(f"{name}_unparsed", lambda row: result(row).failure or None)
    if is_checked:
        yield text(f"{name}_check", lambda row: result(row).check or None)
    if is_repeated:
        yield number(f"{name}_agreement", lambda row: result(row).agreement)
    if has_gold:
        yield text(
            f"{name}_gold",
            lambda row: gold_text(row.gold[name]) if name in row.gold else None,
        )
        yield flag(
            f"{name}_right",
            lambda row: row.scores[name].is_right if name in row.scores else None,
        )


def _value_cell(name: str, spec: FieldSpec, row: JudgedRow) -> Cell:
    """Return a value as a cell: numbers and booleans keep their type."""
    result = row.row.fields[name]
    is_typed = spec.type in {"integer", "number", "boolean"}
    value: Cell = result.answer.value if is_typed else result.text
    return value if result.state == "answered" else None


def _place(result: FieldResult) -> tuple[int | None, str | None]:
    quote = result.place
    return (quote.page, quote.section or None) if quote else (None, None)


def answer_line(row: JudgedRow) -> str:
    """Return a row as a line of JSON, with lists and objects as they are."""
    fields = {}
    for name, result in row.row.fields.items():
        entry: dict[str, Any] = {"state": result.state, "value": result.answer.value}
        if result.failure:
            entry |= {"unparsed": result.failure, "detail": result.answer.detail}
        if result.answer.quotes:
            entry["grounded"] = result.answer.is_grounded
            entry["quotes"] = [
                {
                    "text": quote.text,
                    "level": quote.level.value,
                    "page": quote.page,
                    "section": quote.section or None,
                }
                for quote in result.answer.quotes
            ]
        if result.check:
            entry["check"] = result.check
        if result.agreement is not None:
            entry["agreement"] = result.agreement
        if name in row.gold:
            entry["gold"] = row.gold[name]
            entry["right"] = row.scores[name].is_right if name in row.scores else None
        fields[name] = entry
    whole: dict[str, Any] = {
        "id": row.row.item,
        "model": row.row.model,
        "fields": fields,
    }
    whole |= {"cost_usd": row.row.cost_usd, "error": row.row.error}
    return json.dumps(whole, ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """One of several answers to a field that differ."""

    item: str
    field: str
    between: str  #: "models", or "replicates"
    model: str
    replicate: int | None
    value: str | None
    quote: str | None
    page: int | None


DISAGREEMENTS = TableOf[Disagreement](
    name="disagreements",
    columns=(
        text("id", lambda row: row.item),
        text("field", lambda row: row.field),
        text("between", lambda row: row.between, "models or replicates"),
        text("model", lambda row: row.model),
        count("replicate", lambda row: row.replicate, "blank: all, merged"),
        text("value", lambda row: row.value, "blank: not reported"),
        text("quote", lambda row: row.quote),
        count("page", lambda row: row.page),
    ),
    caption="Fields whose readable answers differ between models, or between the "
    "replicates of a model.",
)


def disagreements(item: ItemResult) -> Iterator[Disagreement]:
    """Yield the answers to an item's fields that differ, field by field."""
    for name in item.rows[0].fields if item.rows else ():
        results = {row.model: row.fields[name] for row in item.rows}
        read = {
            model: result
            for model, result in results.items()
            if result.state in {"answered", "not reported"}
        }
        if len({answer_key(result.answer) for result in read.values()}) > 1:
            for model, result in read.items():
                yield _disagreement(item.item, name, "models", model, None, result)
        for row in item.rows:
            yield from _of_replicates(row, name)


def _of_replicates(row: ModelResult, name: str) -> Iterator[Disagreement]:
    answers = {
        replicate.replicate: replicate.fields[name]
        for replicate in row.replicates
        if name in replicate.fields and not replicate.fields[name].is_unparsed
    }
    if len(set(map(answer_key, answers.values()))) < 2:  # noqa: PLR2004 - all agree
        return
    for number_, answer in answers.items():
        state: Literal["answered", "not reported"] = (
            "answered" if answer.is_answered else "not reported"
        )
        result = FieldResult(state=state, answer=answer)
        yield _disagreement(row.item, name, "replicates", row.model, number_, result)


def _disagreement(  # noqa: PLR0917 - one per column
    item: str,
    name: str,
    between: str,
    model: str,
    replicate: int | None,
    result: FieldResult,
) -> Disagreement:
    return Disagreement(
        item=item,
        field=name,
        between=between,
        model=model,
        replicate=replicate,
        value=result.text,
        quote=result.quote,
        page=_place(result)[0],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOutcomes:
    """The counts of one model and field."""

    model: str
    field: str
    tally: FieldTally

    @property
    def right(self) -> int | None:
        """Return the number of right answers; None: no answer is judged."""
        judged = self.tally.judged
        return sum(score.is_right for _, score in judged) if judged else None


FIELDS = TableOf[FieldOutcomes](
    name="fields",
    columns=(
        text("model", lambda row: row.model),
        text("field", lambda row: row.field),
        count("asked", lambda row: row.tally.outcomes, "items with an outcome"),
        count("answered", lambda row: row.tally.answered),
        count("not_reported", lambda row: row.tally.states["not reported"]),
        count("unparsed", lambda row: row.tally.unread, "unread and failed"),
        count("quoted", lambda row: row.tally.quoted),
        count("grounded", lambda row: row.tally.grounded),
        count("ungrounded", lambda row: row.tally.quoted - row.tally.grounded),
        count("supported", lambda row: row.tally.checks["supported"]),
        count("not_supported", lambda row: row.tally.checks["not_supported"]),
        count("judged", lambda row: len(row.tally.judged), "with a gold value"),
        count("right", lambda row: row.right),
    ),
    caption="Answers per model and field.",
    is_headline=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confused:
    """Number of times a gold value got one answer."""

    model: str
    field: str
    gold: str
    answer: str
    n: int


CONFUSION = TableOf[Confused](
    name="confusion",
    columns=(
        text("model", lambda row: row.model),
        text("field", lambda row: row.field),
        text("gold", lambda row: row.gold),
        text("answer", lambda row: row.answer),
        count("n", lambda row: row.n, "items"),
    ),
    caption="Answers by gold value, of booleans and fields with options.",
)
