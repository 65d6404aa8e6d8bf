"""Small data for tests of what is asked: one review and its papers, without files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jobs.screening.data import (
    ArticleText,
    Criteria,
    RecordKind,
    ScreeningRecord,
    SetReview,
    ValidationSet,
)
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.parsing import STAGES
from jobs.screening.settings import ScreeningSettings
from runner.job import Answer, Task, TaskSpec
from runner.messages import Reply

CRITERIA = Criteria(
    question="Does walking help sleep?",
    pico={"population": "adults with insomnia", "intervention": "walking"},
    inclusion=("randomised trials",),
    exclusion=("surveys",),
)
PAPERS = {
    "1": ArticleText(
        title="Walking for insomnia", abstract="A trial in adults.", year=2001
    ),
    "2": ArticleText(title="Singing", abstract="A survey of choirs.", year=2002),
}
KINDS: dict[str, RecordKind] = {"1": "included", "2": "near-miss"}


def data(
    *,
    criteria: Criteria | None = CRITERIA,
    text: ArticleText | None = None,
    papers: dict[str, ArticleText] | None = None,
    fulltexts: dict[str, Path] | None = None,
    **settings: Any,
) -> ScreeningDataset:
    """The review R7 and its records."""
    texts = PAPERS if papers is None else papers
    review = text or ArticleText(title="Walking for sleep")
    return ScreeningDataset(
        settings=ScreeningSettings(**settings),
        validation_set=ValidationSet(
            reviews=(SetReview(id="R7", text=review, criteria=criteria),),
            records=tuple(
                ScreeningRecord(
                    review="R7", paper=paper, kind=KINDS.get(paper, "random")
                )
                for paper in texts
            ),
            papers=texts,
        ),
        fulltexts=fulltexts or {},
    )


def task(stage: str, key: str = "R7:1", context: str | None = None) -> Task:
    """A task of the plan."""
    return Task(
        number=1, stage=stage, key=key, model="m/x", replicate=1, context=context
    )


def answer(dataset: ScreeningDataset, spec: TaskSpec, said: str | None) -> Answer:
    """A task with what was said, read as its run reads it; None: the call failed."""
    asked = task(spec.stage, spec.key, spec.context)
    if said is None:
        return Answer(task=asked, error="server_error")
    reply = Reply(text=said)
    (parse,) = (stage.parse for stage in STAGES if stage.name == spec.stage)
    return Answer(task=asked, reply=reply, parsed=parse(dataset, asked, reply))
