"""Labels whether replies are correct, and scores a run by such labels.

The same for every job that declares no labelling. An item is the key of a first-stage
task, and each reply to it is a field, named by stage, model and replicate. A label is
about a reply, so the reply is visible and no label is blind.

As a gold value is about one reply, nothing but labelled replies counts: accuracy is the
share of them that people call correct. Replicates of an item are averaged, and
intervals are drawn over items.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import BaseModel

from jobs.kit.charts import Chart, ChartFigures, Plot, bootstrap_note, share_chart
from jobs.kit.measurements import with_intervals
from jobs.kit.measures import Measures, RateMeasure, measured
from jobs.kit.metrics import Ratio, Resamples
from jobs.kit.score import (
    ItemFrame,
    ItemMetric,
    Judged,
    ModelScores,
    TaskVerdicts,
    comparable,
    with_models,
)
from jobs.kit.summary import summary_text
from jobs.kit.tables import TableOf, text
from jobs.kit.text_format import plural, with_ends
from runner.errors import DatasetError
from runner.job import Answer, Answers, Dataset, Job, Task
from runner.labelling import (
    LabelChoice,
    LabelField,
    LabelItem,
    Labelling,
    ModelLabel,
)
from runner.messages import ChatRequest
from runner.reply_labels import SETTING
from runner.scorecard import Metric, Scorecard
from store.document import TableBlock, Words

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


EXCERPT: Final = 200
"""Characters of a reply that a verdict shows."""

DOCUMENT: Final = "item"
"""Unit of resampling."""


@dataclass(slots=True)
class LabelledReplies:
    """The labelled replies of one model: whether each is correct, by item."""

    correct: dict[str, list[bool]] = field(default_factory=dict)

    def means(self) -> list[float]:
        """The share of correct replies of each item."""
        return [sum(of) / len(of) for of in self.correct.values()]

    def frame(self) -> ItemFrame:
        """The items with a labelled reply."""
        return ItemFrame.of(list(self.correct), cluster=DOCUMENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByItem:
    """The labelled replies of a model among the items of all models."""

    replies: LabelledReplies
    items: Sequence[str]

    def right(self) -> Ratio:
        """Share of correct replies by item, and 1; 0 and 0 without a label."""
        correct = self.replies.correct
        of_items = [correct.get(item, []) for item in self.items]
        return Ratio(
            [sum(of) / len(of) if of else 0.0 for of in of_items],
            [float(bool(of)) for of in of_items],
        )


ACCURACY: Mapping[str, RateMeasure[ByItem]] = {
    "labelled.accuracy": RateMeasure(
        "Correct replies",
        "Share of labelled replies that people call correct",
        "higher",
        of=ByItem.right,
        definition="labelled accuracy@1(correct / labelled replies; replicates of an "
        "item are averaged)",
    )
}
((HEADLINE, _),) = ACCURACY.items()

MEASURES: Final = Measures(measures=ACCURACY, headlines=(HEADLINE,))


class _LabelledReply(NamedTuple):
    model: str
    stage: str
    item: str
    label: str


LABELS: Final = TableOf[_LabelledReply](
    name="labelled_replies",
    columns=(
        text("model", lambda row: row.model),
        text("stage", lambda row: row.stage),
        text("item", lambda row: row.item),
        text("label", lambda row: row.label),
    ),
    caption="What people say of each labelled reply.",
)


CHARTS: tuple[Chart[None, Metric], ...] = (
    share_chart(
        name="labelled_accuracy",
        title="Correct replies",
        row="correct replies",
        axis="share of labelled replies",
        caption="Share of labelled replies that people call correct; n is the number "
        "of their items. Intervals: {intervals}.",
    ),
)


def score(job: Job, answers: Answers, settings: BaseModel, labels: Path) -> Scorecard:
    """The scorecard of a run.

    Args:
        job: of the run.
        answers: of the run.
        settings: of the scoring; those of the bootstrap count where the job has them.
        labels: a file that `ReplyLabelling` wrote.

    Raises:
        DatasetError: the file cannot be read.
    """
    gold = _gold(labels)
    verdicts = TaskVerdicts(answers, partial(judge, gold))
    by_model = {model: LabelledReplies() for model in answers.models}
    rows = []
    for verdict in verdicts:
        of_items = by_model[verdict.model].correct
        of_items.setdefault(verdict.key, []).append(bool(verdict.correct))
        rows.append(
            _LabelledReply(verdict.model, verdict.stage, verdict.key, verdict.expected)
        )
    items = [*dict.fromkeys(item for _, _, item, _ in rows)]
    level: float = getattr(settings, "level", 0.95)
    b: int = getattr(settings, "boot_b", 2000)
    seed: int = getattr(settings, "boot_seed", 20260118)
    draws = Resamples(items, b, seed, level=level, cluster=DOCUMENT)
    listed = {
        name: MEASURES.describe(
            with_intervals(
                measured(ACCURACY, ByItem(replies=replies, items=items)), draws
            )
        )
        for name, replies in by_model.items()
    }
    note = bootstrap_note(level, DOCUMENT, f"{len(items):,}", b)
    card = Scorecard(
        models={},
        summary=_summary(job, len(rows), len(items), listed),
        headline=HEADLINE,
        worth_explaining=_worst(by_model),
        tables=(LABELS.table(rows),),
        figures=ChartFigures(
            CHARTS,
            lambda: Plot.of(None, {name: of[0] for name, of in listed.items()}, note),
        ),
        details=verdicts,
        settings={"level": level, "boot_b": b, "boot_seed": seed},
    )
    compared = ItemMetric(HEADLINE, LabelledReplies.frame, LabelledReplies.means)
    models = {
        name: ModelScores(
            metrics=listed[name],
            comparable=comparable(
                [compared], replies, {one.path: one for one in listed[name]}
            ),
            units={DOCUMENT: len(replies.correct)},
        )
        for name, replies in by_model.items()
    }
    return with_models(card, models, MEASURES)


def judge(gold: Mapping[tuple[str, str], str], answer: Answer) -> Judged | None:
    """The verdict on a reply; None where nobody labelled it."""
    task = answer.task
    name = field_name(task.stage, task.model, task.replicate)
    label = gold.get((task.key, name))
    if answer.chat is None or label is None:
        return None
    return Judged(
        value=answer.chat.text[:EXCERPT],
        expected=label,
        correct=label == CORRECT,
        rule="label",
    )


def _gold(path: Path) -> Mapping[tuple[str, str], str]:
    """Return people's label of each reply, by item and field."""
    try:
        with path.open(newline="") as file:
            rows = [*csv.DictReader(file)]
        return {(row["item"], row["field"]): row["value"] for row in rows}
    except (OSError, KeyError, csv.Error) as error:
        raise DatasetError(
            f"{path} cannot be read as labels of replies ({error}): score the run "
            "again with --gold labels."
        ) from error


def _worst(by_model: Mapping[str, LabelledReplies]) -> str:
    """The item of which the first model has the fewest correct replies."""
    for replies in by_model.values():
        shares = dict(zip(replies.correct, replies.means(), strict=True))
        if shares:
            return min(shares, key=shares.__getitem__)
    return ""


def _summary(
    job: Job, replies: int, items: int, listed: Mapping[str, Sequence[Metric]]
) -> str:
    head = (
        f"{job.name}  {plural(replies, 'labelled reply', 'labelled replies')} to "
        f"{plural(items, 'item')}; people say which are correct"
    )
    columns = [Words("model", 30), Words("correct"), Words("items")]
    rows = [
        (name, with_ends(of[0], ".3f"), f"{of[0].n:,}") for name, of in listed.items()
    ]
    return summary_text([head, TableBlock(columns, rows)])
