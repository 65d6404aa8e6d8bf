"""Two invented agents and two reviews: a study is lost at every step of the first."""

from __future__ import annotations

import json
from pathlib import Path

from jobs.review_benchmark.data import Review, TruthPaper
from jobs.review_benchmark.database.papers import ImportedRecord
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.score import score
from runner.job import Answer, Task
from runner.messages import Reply
from runner.scorecard import Scorecard
from tests.jobs.review_benchmark.agents import (
    Agent,
    Asked,
    Given,
    database_of,
    dataset_of,
)

PAPERS = (
    ImportedRecord(source_id="1", pmid="90000001", title="Walking at dusk", year=2001),
    ImportedRecord(source_id="2", pmid="90000002", title="Walking by day", year=2001),
    ImportedRecord(
        source_id="3", pmid="90000003", title="Walking | <b>uphill</b>", year=2001
    ),
    ImportedRecord(
        source_id="4", pmid="90000004", title="Walking before dates", year=1950
    ),
    ImportedRecord(source_id="5", pmid="90000005", title="Running for rest", year=2001),
    ImportedRecord(
        source_id="6", title="Walking to work by the old canal every day", year=2001
    ),
    ImportedRecord(source_id="7", title="Singing in choirs", year=2001),
)
SLEEP = Review(
    id="CD7",
    title="Walking for sleep",
    question="Does walking help sleep?",
    studies=(
        TruthPaper(pmid="90000001", title="Walking at dusk", ref_id="Ahn 2008"),
        TruthPaper(pmid="90000002", title="Walking by day", ref_id="Boe 2009"),
        TruthPaper(pmid="90000003", title="Walking | <b>uphill</b>"),
        TruthPaper(pmid="90000004", title="Walking before dates"),
        TruthPaper(pmid="90000005", title="Running for rest"),
        TruthPaper(title="Walking to work by a new canal on every day"),
        TruthPaper(pmid="90000009", title="Swimming " + "far and wide " * 6),
    ),
    date_range=(1990, 2010),
)
CALM = Review(
    id="CD 8/../*",
    title="Walking for calm",
    question="Does walking calm?",
    studies=(TruthPaper(pmid="90000001", title="Walking at dusk"),),
)
LOST_AT = (
    None,
    "below_threshold",
    "unscored",
    "date_filtered",
    "not_retrieved",
    "near_miss_match",
    "not_in_database",
)
"""Of each study of `SLEEP`, by the first agent."""

FIRST, SECOND = "a/one", "b/=two\x1b[2J|"


def world(
    folder: Path, *models: str, **settings: object
) -> tuple[ReviewDataset, Given]:
    """The data and what the agents answered; both of them where none is named."""
    dataset = dataset_of(
        (CALM, SLEEP), database_of(folder / "papers.db", PAPERS), boot_b=0, **settings
    )
    queries = [{"label": "walk", "all_of": [["walking"]], "none_of": []}]
    asked = {SLEEP.id: queries, CALM.id: queries}
    agents = [
        Agent(model=FIRST, queries=asked, score=_first),
        Agent(model=SECOND, queries=asked, score=lambda *_: 5.0),
    ]
    kept = [agent for agent in agents if agent.model in (models or (FIRST, SECOND))]
    return dataset, Asked(dataset=dataset, agents=kept).answers()


def scored(folder: Path, *models: str, **settings: object) -> Scorecard:
    """The scorecard of the agents."""
    dataset, answers = world(folder, *models, **settings)
    return score(dataset, answers)


def imported() -> tuple[ReviewDataset, Given]:
    """A result that was made elsewhere."""
    rows = [
        {"document_id": 11, "pmid": "90000001", "title": "Walking at dusk"},
        {"document_id": 12, "pmid": "90000002", "title": "Walking by day"},
    ]
    result = {
        "cochrane_id": SLEEP.id,
        "included_papers": rows[:1],
        "excluded_papers": [rows[1] | {"relevance_score": 4, "rationale": "Too old."}],
    }
    task = Task(number=1, stage="result", key=SLEEP.id, model="x", replicate=1)
    answer = Answer(task=task, reply=Reply(text=json.dumps(result)))
    given = Given(models=("x",), each=((answer,),), imported=True)
    return dataset_of((SLEEP,), None, boot_b=0), given


def _first(review: str, paper: int, replicate: int) -> float | str | None:
    """Low for one paper, a failed call for another."""
    del review, replicate
    return {2: 1.5, 3: "server_error"}.get(paper, 4.0)
