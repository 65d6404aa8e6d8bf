"""A small review and a small paper database, for tests of what is asked and found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobs.kit.inputs.rows import InputFindings
from jobs.review_benchmark.data import PICO, QuestionParts, Review, TruthPaper
from jobs.review_benchmark.database.papers import ImportedRecord
from jobs.review_benchmark.database.reader import PaperDatabase, writer
from jobs.review_benchmark.database.writer import PaperWriter
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.parsing import STAGES
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from jobs.review_benchmark.truth_files import read_truth
from runner.job import Answer, Task, TaskSpec
from runner.messages import Reply

REVIEW = Review(
    id="CD7",
    title="Walking for sleep",
    question="Does walking help sleep?",
    studies=(TruthPaper(pmid="4711", title="Walking at dusk", ref_id="Ahn 2008"),),
    pico=QuestionParts(
        population="tired adults", intervention="walking", outcome="sleep"
    ),
    inclusion=("randomised trials",),
    exclusion=("surveys",),
    conclusion="Walking may help.",
)
ENTRIES = (
    ImportedRecord(
        source_id="1", title="Walking at dusk", abstract="A trial.", year=2001
    ),
    ImportedRecord(
        source_id="2", title="Walking by day", abstract="Tired adults.", year=1990
    ),
    ImportedRecord(
        source_id="3", title="Walking at any hour", abstract="Walking, walking."
    ),
    ImportedRecord(
        source_id="4", title="Singing", abstract="A survey of choirs.", year=2001
    ),
)


@contextmanager
def data(
    papers: Path, *, reviews: Sequence[Review] = (REVIEW,), **settings: Any
) -> Iterator[ReviewDataset]:
    """Reviews, and a database whose ids count from 1."""
    with closing(PaperDatabase(papers)) as database:
        yield ReviewDataset(
            settings=ReviewBenchmarkSettings(**settings),
            reviews=tuple(reviews),
            database=database,
        )


def stocked(path: Path, *entries: ImportedRecord) -> Path:
    """A database with papers; those of `ENTRIES`, where none are named."""
    with closing(writer(path)) as connection:
        writing = PaperWriter(connection)
        writing.add("papers.csv", entries or ENTRIES, skip_bad=False)
        writing.sign()
    return path


def write_truth(folder: Path, review: Review = REVIEW) -> None:
    """The file of a published review."""
    folder.mkdir(exist_ok=True)
    pico = review.pico or QuestionParts()
    value = {
        "cochrane_id": review.id,
        "title": review.title,
        "research_question": review.question,
        "pico": {name: getattr(pico, name) for name in PICO},
        "included_studies": [{"title": each.title} for each in review.studies],
        "authors_conclusion": review.conclusion,
    }
    (folder / f"cochrane_{review.id}.json").write_text(json.dumps(value))


def write_reviews(folder: Path, papers: int) -> tuple[Path, Path]:
    """A database and a folder of three reviews that find all of its papers."""
    folder.mkdir()
    entries = [
        ImportedRecord(
            source_id=str(n), title=f"Walking {n}", abstract=f"Adults slept {n} h."
        )
        for n in range(papers)
    ]
    for number in range(3):
        write_truth(folder / "truth", replace(REVIEW, id=f"CD{number}"))
    return stocked(folder / "papers.db", *entries), folder / "truth"


def answer(
    dataset: ReviewDataset, spec: TaskSpec, said: str | None, number: int = 1
) -> Answer:
    """A task with what was said, read as its run reads it; None: the call failed."""
    asked = task(spec, number)
    if spec.skip is not None:
        return Answer(task=asked, skip=spec.skip)
    if said is None:
        return Answer(task=asked, error="server_error")
    reply = Reply(text=said)
    (parse,) = (stage.parse for stage in STAGES if stage.name == spec.stage)
    return Answer(task=asked, reply=reply, parsed=parse(dataset, asked, reply))


def task(spec: TaskSpec, number: int = 1) -> Task:
    """A task of the plan."""
    return Task(
        number=number,
        stage=spec.stage,
        key=spec.key,
        model="m/x",
        replicate=1,
        context=spec.context,
    )


def read_review(path: Path) -> Review:
    """The review in a truth file."""
    (review,) = read_truth(path, InputFindings())
    return review
