"""Declares the labels of ask: the value of each field of an item."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from jobs.ask.answers import results
from jobs.ask.inputs import AskDataset
from jobs.ask.merge import item_of_key
from jobs.ask.page import place_text
from jobs.kit.explain import passage_of
from jobs.kit.fields.gold import expected_instead
from jobs.kit.fields.results import FieldResult, replicate_result, value_text
from jobs.kit.fields.spec import FieldSpec
from runner.job import Answers, QuotedPassage
from runner.labelling import (
    COMMAND_KEYS,
    LabelChoice,
    LabelField,
    LabelItem,
    Labelling,
    ModelLabel,
)

NOT_REPORTED: Final = "not reported"
"""Value of a field that the text does not report, as in gold files."""

_EVERY: Final = (
    LabelChoice(value=NOT_REPORTED, key="n"),
    LabelChoice(value="undecided", key="u", is_gold=False),
)

KEYS: Final = tuple(
    key
    for key in string.digits[1:] + string.ascii_lowercase
    if key not in COMMAND_KEYS | {choice.key for choice in _EVERY}
)
"""Keys of options, in order."""


def choices(spec: FieldSpec) -> tuple[LabelChoice, ...]:
    """Return the values that a field may have, with keys; open fields have two."""
    named: tuple[LabelChoice, ...] = ()
    match spec.type:
        case "boolean":
            named = (
                LabelChoice(value="true", key="t"),
                LabelChoice(value="false", key="f"),
            )
        case "one-of":
            named = tuple(
                LabelChoice(value=option, key=key)
                for option, key in zip(spec.options, KEYS, strict=False)
            )
        case _:
            pass
    values = {choice.value for choice in named}
    return (*named, *(choice for choice in _EVERY if choice.value not in values))


def label_field(name: str, spec: FieldSpec) -> LabelField:
    """Return the field of a recipe as people label it."""
    return LabelField(
        name=name,
        question=spec.ask,
        choices=choices(spec),
        is_open=spec.type not in {"boolean", "one-of"} or len(spec.options) > len(KEYS),
        fault=partial(expected_instead, spec=spec),
    )


class AskLabelling(Labelling):
    """Declares a value per field of the recipe."""

    gold_setting = "gold"

    def fields(self, dataset: AskDataset) -> tuple[LabelField, ...]:
        """Return the fields of the recipe, including follow-ups."""
        fields = dataset.recipe.every_field
        return tuple(label_field(name, spec) for name, spec in fields.items())

    def items(self, dataset: AskDataset) -> Iterator[str]:
        """Yield the papers in their order, without those that have no text."""
        return (key for key in dataset.items if not dataset.is_blank(key))

    def item(self, dataset: AskDataset, key: str) -> LabelItem:
        """Return the text of a paper."""
        item = dataset.items[key]
        return LabelItem(
            key=key, title=item.fields.get("title", ""), text=item.document.text
        )

    def items_of_task(self, dataset: AskDataset, key: str) -> tuple[str, ...]:
        """Return the paper of a chunk, follow-up or check."""
        del dataset
        return (item_of_key(key),)

    def replies(self, dataset: AskDataset, answers: Answers) -> Iterator[ModelLabel]:
        """Yield the value of each field in each replicate, with its quotes."""
        fields = dataset.recipe.every_field
        for row in (row for result in results(dataset, answers) for row in result.rows):
            for replicate in row.replicates:
                for name, spec in fields.items():
                    of_field = replicate_result(name, spec, replicate)
                    value = _value(of_field)
                    if value is None:
                        continue
                    yield ModelLabel(
                        item=row.item,
                        field=name,
                        model=row.model,
                        replicate=replicate.replicate,
                        value=value,
                        quotes=tuple(_quotes(dataset, row.item, name, of_field)),
                        task=replicate.tasks[0] if replicate.tasks else None,
                    )

    def gold_rows(
        self, dataset: AskDataset, gold: Mapping[str, Mapping[str, str]]
    ) -> Iterator[Mapping[str, str]]:
        """Yield a row per item with its fields; a blank one is not judged."""
        columns = {
            name: spec.gold or name for name, spec in dataset.recipe.every_field.items()
        }
        for key, values in gold.items():
            yield {
                "id": key,
                **{column: values.get(name, "") for name, column in columns.items()},
            }


def _value(result: FieldResult) -> str | None:
    """Return the value as in a gold file, or None."""
    match result.state:
        case "answered":
            return value_text(result.answer.value)
        case "not reported":
            return NOT_REPORTED
        case _:
            return None


def _quotes(
    dataset: AskDataset, item: str, field: str, result: FieldResult
) -> Iterator[QuotedPassage]:
    text = dataset.items[item].document.text
    for quote in result.answer.quotes:
        start, end = quote.start, quote.end
        yield passage_of(
            text,
            quote.text,
            None if start is None or end is None else (start, end),
            label=field,
            match=quote.level.value,
            place=place_text(quote),
        )


labelling = AskLabelling()
