"""Labels whether replies are correct, for jobs that declare nothing else.

An item is the key of a first-stage task, and each reply to it is a field, named by
stage, model and replicate. A label is about a reply, so the reply is visible and no
label is blind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from runner.job import Answers, Dataset, Job, Task
from runner.labelling import (
    LabelChoice,
    LabelField,
    LabelItem,
    Labelling,
    ModelLabel,
)
from runner.messages import ChatRequest
from runner.reply_labels import SETTING

CORRECT: Final = "correct"

CHOICES: Final = (
    LabelChoice(value=CORRECT, key="c"),
    LabelChoice(value="incorrect", key="i"),
    LabelChoice(value="unclear", key="u", is_gold=False),
)


def field_name(stage: str, model: str, replicate: int) -> str:
    """The name of the field of a reply."""
    return f"{stage} {model} {replicate}"


class ReplyLabelling(Labelling):
    """The labelling of a job without one."""

    gold_setting = SETTING
    needs_reply = True

    def __init__(
        self, job: Job, dataset: Dataset, models: tuple[str, ...], replicates: int
    ) -> None:
        """Label the first-stage replies of a run.

        Args:
            job: its job.
            dataset: its data.
            models: that are its subjects.
            replicates: planned of each item.
        """
        self._job = job
        roles = {stage.name: stage for stage in job.stages}
        self._stages: dict[str, list[str]] = {}  #: by item
        for spec in job.plan(dataset):
            if spec.skip is None and roles[spec.stage].role == "subject":
                self._stages.setdefault(spec.key, []).append(spec.stage)
        planned = dict.fromkeys(
            stage for stages in self._stages.values() for stage in stages
        )
        self._fields = {
            field_name(stage, model, replicate): stage
            for stage in planned
            for model in models
            for replicate in range(1, 2 if roles[stage].once else replicates + 1)
        }

    def fields(self, dataset: Dataset) -> tuple[LabelField, ...]:
        """A field for each stage, model and replicate."""
        del dataset
        return tuple(
            LabelField(name=name, question="Is the reply correct?", choices=CHOICES)
            for name in self._fields
        )

    def applies(self, dataset: Dataset, key: str, field: LabelField) -> bool:
        """Whether the item is planned in the stage of the field."""
        del dataset
        return self._fields[field.name] in self._stages[key]

    def items(self, dataset: Dataset) -> Iterator[str]:
        """The keys of the first-stage tasks that are sent."""
        del dataset
        return iter(self._stages)

    def item(self, dataset: Dataset, key: str) -> LabelItem:
        """The prompts of an item."""
        prompts = []
        for stage in self._stages[key]:
            task = Task(number=0, stage=stage, key=key, model="", replicate=1)
            request = self._job.request(dataset, task)
            if isinstance(request, ChatRequest):
                prompts += [message.text for message in request.messages]
        return LabelItem(key=key, title="", text="\n\n".join(prompts))

    def replies(self, dataset: Dataset, answers: Answers) -> Iterator[ModelLabel]:
        """The text of each first-stage reply."""
        del dataset
        for answer in (family[0] for family in answers.families()):
            task = answer.task
            name = field_name(task.stage, task.model, task.replicate)
            if answer.chat is not None and name in self._fields:
                yield ModelLabel(
                    item=task.key,
                    field=name,
                    model=task.model,
                    replicate=task.replicate,
                    value=answer.chat.text,
                    task=task.number,
                )

    def gold_rows(
        self, dataset: Dataset, gold: Mapping[str, Mapping[str, str]]
    ) -> Iterator[Mapping[str, str]]:
        """A row per labelled reply."""
        del dataset
        for item, values in sorted(gold.items()):
            for name, value in sorted(values.items()):
                yield {"item": item, "field": name, "value": value}
