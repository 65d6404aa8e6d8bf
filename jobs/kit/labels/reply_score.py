"""Scores a run by labels that say which replies are correct.

The same for every job. A gold value is about one reply, so nothing but labelled replies
counts: accuracy is the share of them that people call correct. Replicates of an item
are averaged, and intervals are drawn over items.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import BaseModel

from jobs.kit.charts import Chart, ChartFigures, Plot, bootstrap_note, share_chart
from jobs.kit.labels.reply_labelling import CORRECT, field_name
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
from runner.job import Answer, Answers, Job
from runner.scorecard import Metric, Scorecard
from store.document import TableBlock, Words

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
