"""Scores a run against labels that say whether its replies are correct.

Such labels are no truth that the job reads from a file. Where a scoring uses them, its
settings have one more, `reply_labels`, which names the file of gold values. It is an
input like any other: recorded with its hash, kept in the log, and bundled. The scoring
itself is the same for every job, and an entry point (group `siftlog.gold`), as labels
and statistics are above the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

from pydantic import BaseModel, Field, create_model

from runner.installed import entry_points
from runner.job import Answers, Dataset, InputFile, Job
from runner.labelling import Labelling
from runner.scorecard import Scorecard

GROUP: Final = "siftlog.gold"
SETTING: Final = "reply_labels"


def settings_model(job: Job, values: Mapping[str, Any]) -> type[BaseModel]:
    """Return the model that validates *values*, with labels of replies or without."""
    return _with_labels(job.Settings) if SETTING in values else job.Settings


@cache
def _with_labels(model: type[BaseModel]) -> type[BaseModel]:
    labels: Any = (
        Path | None,
        Field(None, description="file that says which replies are correct"),
    )
    longer: type[BaseModel] = create_model(
        model.__name__, __base__=model, **{SETTING: labels}
    )
    return longer


def labels_of(settings: BaseModel) -> Path | None:
    """Return the labels of replies that a scoring uses; None: it uses none."""
    return getattr(settings, SETTING, None)


def scoring_inputs(job: Job, settings: BaseModel) -> tuple[InputFile, ...]:
    """Return the files that a scoring reads."""
    labels = labels_of(settings)
    more = () if labels is None else (InputFile(setting=SETTING, path=labels),)
    return (*job.inputs(settings), *more)


def scored(
    job: Job, dataset: Dataset, answers: Answers, settings: BaseModel
) -> Scorecard:
    """Score answers against labels of replies if there are any, else by the job."""
    if (labels := labels_of(settings)) is None:
        return job.score(dataset, answers)
    score = _declared("score")
    return cast("Scorecard", score(job, answers, settings, labels))


def reply_labelling(job: Job, dataset: Dataset, answers: Answers) -> Labelling:
    """Return the labelling of a run whose labels say which replies are correct."""
    labelling = _declared("labelling")
    return cast("Labelling", labelling(job, dataset, answers))


def _declared(name: str) -> Any:  # noqa: ANN401 - a class and a function
    (point,) = entry_points(group=GROUP, name=name)
    return point.load()
