"""Scores replies: by their targets, and by the scores that other tools gave them.

The mean of each score of another tool is a metric `score.NAME`, over items; replicates
of an item are averaged. Models are compared by it as by the accuracy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np

from jobs.kit import question_results
from jobs.kit.evaluation import SourceMeasures
from jobs.kit.measurements import MeasuredValue, pooled
from jobs.kit.measures import ValueMeasure
from jobs.kit.metrics import Ratio
from jobs.kit.metrics.columns import Floats
from jobs.kit.question_results import QuestionFrame
from jobs.kit.score import ItemFrame, ItemMetric, comparable
from jobs.kit.summary import summary_text
from jobs.kit.text_format import with_ends
from jobs.replies.data import ReplyData
from jobs.replies.job import job
from runner.evaluation import KEYS_STAY
from runner.job import Answers
from runner.scorecard import Comparable, Metric, Scorecard
from store.document import TableBlock, Words

ROOT: Final = "score."
"""Begins the paths of other tools' scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolScores:
    """The scores that other tools gave the replies of one model."""

    by_name: Mapping[str, Floats] = field(metadata=KEYS_STAY)
    """The score of every prompt, by scorer; NaN: it has none."""

    def means(self) -> Mapping[str, MeasuredValue]:
        """The mean of each scorer, over the prompts that have a score."""
        return {
            name: pooled(Ratio(np.nan_to_num(of), (~np.isnan(of)).astype(np.float64)))
            for name, of in self.by_name.items()
        }


def collected(dataset: ReplyData, answers: Answers) -> Mapping[str, ToolScores]:
    """Return the scores of all replies, by model; those of replicates are averaged."""
    scores: dict[str, dict[str, dict[str, list[float]]]] = {
        model: {} for model in answers.models
    }
    for family in answers.families():
        for answer in family:
            task = answer.task
            if task.context is None or task.key not in dataset.rows:
                continue
            recorded: Mapping[str, float] = json.loads(task.context).get("scores", {})
            for name, value in recorded.items():
                of_scorer = scores[task.model].setdefault(name, {})
                of_scorer.setdefault(task.key, []).append(value)
    return {
        model: ToolScores(
            by_name={
                name: np.array(
                    [
                        sum(of_scorer[key]) / len(of_scorer[key])
                        if key in of_scorer
                        else np.nan
                        for key in dataset.rows
                    ]
                )
                for name, of_scorer in of_model.items()
            }
        )
        for model, of_model in scores.items()
    }


FURTHER: Final = SourceMeasures(
    source=ToolScores,
    measures={
        f"{ROOT}{{name*}}": ValueMeasure(
            "Score {name}",
            "Mean of {name}, as the other tool gave it",
            "higher",
            of=ToolScores.means,
            definition="recorded score@1(mean over items; replicates of an item are "
            "averaged)",
        )
    },
    collect=collected,
)


def score(dataset: ReplyData, answers: Answers) -> Scorecard:
    """The scorecard of a run."""
    card = question_results.score(job, dataset, answers)
    frame: QuestionFrame[ToolScores] | None = card.frame and card.frame()
    added = {
        model: [metric for metric in metrics if metric.path.startswith(ROOT)]
        for model, metrics in card.models.items()
    }
    if frame is None or not any(added.values()):
        return card
    keys = list(dataset.rows)
    return replace(
        card,
        comparable={
            name: {
                **card.comparable.get(name, {}),
                **_compared(keys, scores, added[name]),
            }
            for name, scores in frame.further.models.items()
        },
        summary="\n\n".join(filter(None, (card.summary.rstrip(), _summary(added)))),
    )


def _compared(
    keys: Sequence[str], scores: ToolScores, metrics: Sequence[Metric]
) -> Comparable:
    known = {metric.path: metric for metric in metrics}
    return {
        path: maker
        for name, of_scorer in scores.by_name.items()
        for path, maker in comparable(
            [ItemMetric(f"{ROOT}{name}", partial(_scored, keys), _defined)],
            of_scorer,
            known,
        ).items()
    }


def _scored(keys: Sequence[str], scores: Floats) -> ItemFrame:
    """The prompts that have a score."""
    scored = [keys[at] for at in np.flatnonzero(~np.isnan(scores)).tolist()]
    return ItemFrame.of(scored, scored, cluster="row")


def _defined(scores: Floats) -> Floats:
    defined: Floats = scores[~np.isnan(scores)]
    return defined


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
