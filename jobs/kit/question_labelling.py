"""Declares what people label in a job of rows: the right value of each row."""

from __future__ import annotations

import json
import string
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AliasChoices, TypeAdapter, ValidationError

from runner.job import Answers
from runner.labelling import (
    COMMAND_KEYS,
    LabelChoice,
    LabelField,
    LabelItem,
    Labelling,
    ModelLabel,
)
from runner.messages import ParseFailure

if TYPE_CHECKING:
    from jobs.kit.inputs.rows import RowModel
    from jobs.kit.questions import QuestionJob, Questions

_UNDECIDED: Final = LabelChoice(value="undecided", key="u", is_gold=False)
_KEYS: Final = tuple(
    key
    for key in string.digits[1:] + string.ascii_lowercase
    if key not in COMMAND_KEYS | {_UNDECIDED.key}
)


class RowLabelling(Labelling):
    """A value per row: one of the job's `choices`, or any text without them."""

    gold_setting = "rows"
    gold_suffix = ".jsonl"

    def __init__(self, job: QuestionJob) -> None:
        """Label the rows of a job."""
        self._job = job

    def fields(self, dataset: Questions) -> tuple[LabelField, ...]:
        """The value that the job asks for."""
        del dataset
        choices = zip(self._job.choices, _KEYS, strict=False)
        return (
            LabelField(
                name="",
                question=self._job.question,
                choices=(
                    *(LabelChoice(value=value, key=key) for value, key in choices),
                    _UNDECIDED,
                ),
                is_open=not 0 < len(self._job.choices) <= len(_KEYS),
                fault=self._fault,
            ),
        )

    def _fault(self, text: str) -> str:
        """What the row model expects instead of a truth that it would refuse."""
        truth = self._job.Row.model_fields[self._job.truth]
        form: Any = Annotated[truth.annotation, truth]
        try:
            TypeAdapter(form).validate_python(text)
        except ValidationError as error:
            # as cells word it: "is 'y' (a whole number is expected)"
            _, _, inside = error.errors()[0]["msg"].rpartition("(")
            return inside.removesuffix(")").removesuffix(" is expected")
        return ""

    def items(self, dataset: Questions) -> Iterator[str]:
        """The rows in file order."""
        return iter(dataset.rows)

    def item(self, dataset: Questions, key: str) -> LabelItem:
        """Return the texts of a row that models see."""
        row = dataset.rows[key]
        texts = [(name, str(getattr(row, name))) for name in self._job.show]
        if len(texts) == 1:
            return LabelItem(key=key, title="", text=texts[0][1])
        text = "\n\n".join(f"{name}: {text}" for name, text in texts)
        return LabelItem(key=key, title="", text=text)

    def replies(self, dataset: Questions, answers: Answers) -> Iterator[ModelLabel]:
        """The value of each reply."""
        stage = self._job.stages[0].name
        for answer in (family[0] for family in answers.families()):
            task = answer.task
            if answer.chat is None or task.stage != stage:
                continue
            value = self._job.parse(dataset, task, answer.chat)
            yield ModelLabel(
                item=task.key,
                field="",
                model=task.model,
                replicate=task.replicate,
                value=None if isinstance(value, ParseFailure) else str(value),
                task=task.number,
            )

    def gold_changes(self, dataset: Questions) -> Mapping[str, object]:
        """The file has the rows that the limit left."""
        del dataset
        return {"limit": 0}

    def gold_files(
        self, dataset: Questions, gold: Mapping[str, Mapping[str, str]]
    ) -> Mapping[str, str]:
        """All rows, with the labels as their truth; a row without one has none."""
        if not gold:
            return {}
        lines = []
        for key, row in dataset.rows.items():
            cells = _cells(row)
            column = _column(type(row), self._job.truth)
            cells.pop(column, None)
            if key in gold:
                cells[column] = gold[key][""]
            lines.append(json.dumps(cells, ensure_ascii=False))
        return {self.gold_setting: "".join(f"{line}\n" for line in lines)}


def _cells(row: RowModel) -> dict[str, Any]:
    """The cells from which a row is read again."""
    return {
        _column(type(row), name): value
        for name, value in row.model_dump(mode="json").items()
        if name not in {"source", "line"} and value is not None
    }


def _column(model: type[RowModel], name: str) -> str:
    """The column that a field is read from, the first of several."""
    alias = model.model_fields[name].validation_alias
    if isinstance(alias, AliasChoices):
        alias = alias.choices[0]
    return alias if isinstance(alias, str) else name
