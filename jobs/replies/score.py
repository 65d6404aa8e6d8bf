"""Scores replies: by their targets, and by the scores that other tools gave them.

The mean of each score of another tool is a metric `score.NAME`, over items; replicates
of an item are averaged. Models are compared by it as by the accuracy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from jobs.kit import question_results
from jobs.kit.charts import bootstrap_note
from jobs.kit.measurements import with_intervals
from jobs.kit.measures import Measures, RateMeasure, measured
from jobs.kit.metrics import Ratio, Resamples
from jobs.kit.score import ItemFrame, ItemMetric, comparable
from jobs.kit.summary import summary_text
from jobs.kit.text_format import with_ends
from jobs.replies.data import ReplyData
from jobs.replies.job import job
from runner.job import Answers
from runner.scorecard import Comparable, Metric, Scorecard
from store.document import TableBlock, Words

ROOT: Final = "score."
"""Begins the paths of other tools' scores."""


@dataclass(slots=True)
class ItemScores:
    """The scores that another tool gave the replies of one model, by one scorer."""

    keys: Sequence[str]  #: of all items
    values: dict[str, list[float]] = field(default_factory=dict)
    """By item, of its replicates."""

    def means(self) -> dict[str, float]:
        """The mean of each item."""
        return {key: sum(of) / len(of) for key, of in self.values.items()}

    def ratio(self) -> Ratio:
        """The mean over items that have a score."""
        means = self.means()
        return Ratio(
            [means.get(key, 0.0) for key in self.keys],
            [float(key in means) for key in self.keys],
        )

    def frame(self) -> ItemFrame:
        """The items that have a score."""
        keys = list(self.values)
        return ItemFrame.of(keys, keys, cluster="row")


def collected(
    dataset: ReplyData, answers: Answers
) -> Mapping[str, Mapping[str, ItemScores]]:
    """Return the scores of all replies, by model and scorer."""
    keys = list(dataset.rows)
    scores: dict[str, dict[str, ItemScores]] = {model: {} for model in answers.models}
    for family in answers.families():
        for answer in family:
            task = answer.task
            if task.context is None or task.key not in dataset.rows:
                continue
            recorded: Mapping[str, float] = json.loads(task.context).get("scores", {})
            for name, value in recorded.items():
                of_scorer = scores[task.model].setdefault(name, ItemScores(keys))
                of_scorer.values.setdefault(task.key, []).append(value)
    return scores


def measures_of(names: Sequence[str]) -> Mapping[str, RateMeasure[ItemScores]]:
    """Return the measure of each scorer."""
    return {
        f"{ROOT}{name}": RateMeasure(
            f"Score {name}",
            f"Mean of {name}, as the other tool gave it",
            "higher",
            of=ItemScores.ratio,
            definition="recorded score@1(mean over items; replicates of an item are "
            "averaged)",
        )
        for name in names
    }


def score(dataset: ReplyData, answers: Answers) -> Scorecard:
    """The scorecard of a run."""
    card = question_results.score(job, dataset, answers)
    scores = collected(dataset, answers)
    names = list(
        dict.fromkeys(name for of_model in scores.values() for name in of_model)
    )
    if not names:
        return card
    settings = dataset.settings
    draws = Resamples(
        list(dataset.rows),
        settings.boot_b,
        settings.boot_seed,
        level=settings.level,
        cluster="row",
    )
    note = bootstrap_note(
        settings.level, "row", f"{len(dataset.rows):,}", settings.boot_b
    )
    measures = measures_of(names)
    words = Measures(
        measures=measures, headlines=() if card.headline else (f"{ROOT}{names[0]}",)
    )
    added = {
        model: words.describe(
            with_intervals(
                (
                    measurement
                    for name, of_scorer in of_model.items()
                    for measurement in measured(
                        {f"{ROOT}{name}": measures[f"{ROOT}{name}"]}, of_scorer
                    )
                ),
                draws,
                note,
            )
        )
        for model, of_model in scores.items()
    }
    return replace(
        card,
        models={name: (*listed, *added[name]) for name, listed in card.models.items()},
        comparable={
            name: {
                **card.comparable.get(name, {}),
                **_compared(scores[name], added[name]),
            }
            for name in card.models
        },
        headline=card.headline or f"{ROOT}{names[0]}",
        summary="\n\n".join(filter(None, (card.summary.rstrip(), _summary(added)))),
    )


def _compared(
    scores: Mapping[str, ItemScores], metrics: Sequence[Metric]
) -> Comparable:
    known = {metric.path: metric for metric in metrics}
    return {
        path: maker
        for name, of_scorer in scores.items()
        for path, maker in comparable(
            [
                ItemMetric(
                    f"{ROOT}{name}",
                    ItemScores.frame,
                    lambda source: list(source.means().values()),
                )
            ],
            of_scorer,
            known,
        ).items()
    }


def _summary(added: Mapping[str, Sequence[Metric]]) -> str:
    """Return the table of the other tool's scores."""
    rows = [
        (
            model,
            metric.path.removeprefix(ROOT),
            with_ends(metric, ".3f"),
            f"{metric.n:,}",
        )
        for model, metrics in added.items()
        for metric in metrics
    ]
    columns = [
        Words("model", 30),
        Words("recorded score", 20),
        Words("mean"),
        Words("n"),
    ]
    return summary_text([TableBlock(columns, rows)])
