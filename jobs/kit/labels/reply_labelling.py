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

    def __init__(self, job: Job, dataset: Dataset, answers: Answers) -> None:
        """Label the first-stage replies of a run.

        Args:
            job: its job.
            dataset: its data.
            answers: of the run. Imported ones are its plan: files of other tools may
                have stages that this job does not ask in.
        """
        self._job = job
        stages = {stage.name: stage for stage in job.stages}
        self._stages: dict[str, dict[str, None]] = {}  #: by item
        planned = [*_planned(job, dataset)]
        self._prompted = {name for name, _ in planned}
        for name, key in _imported(answers) if answers.imported else planned:
            self._stages.setdefault(key, {})[name] = None
        stage_names = dict.fromkeys(name for of in self._stages.values() for name in of)
        once = {name for name in stage_names if name in stages and stages[name].once}
        self._fields = {
            field_name(name, model, replicate): name
            for name in stage_names
            for model in answers.models
            for replicate in range(1, 2 if name in once else answers.replicates + 1)
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
        """The prompts of an item; of imported answers those that the job would send."""
        prompts = []
        for stage in (name for name in self._stages[key] if name in self._prompted):
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


def _planned(job: Job, dataset: Dataset) -> Iterator[tuple[str, str]]:
    """Yield stage and key of the first-stage tasks of models under test."""
    subjects = {stage.name for stage in job.stages if stage.role == "subject"}
    for spec in job.plan(dataset):
        if spec.skip is None and spec.stage in subjects:
            yield spec.stage, spec.key


def _imported(answers: Answers) -> Iterator[tuple[str, str]]:
    """Yield stage and key of the first-stage answers."""
    for family in answers.families():
        yield family[0].task.stage, family[0].task.key
