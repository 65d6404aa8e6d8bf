"""One pass over a run's answers: a sheet of what each agent made of each review."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from jobs.review_benchmark import reading
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.gathering import imported, own
from jobs.review_benchmark.gathering.compared import STAGES, Truths
from jobs.review_benchmark.gathering.course import Course, course
from jobs.review_benchmark.gathering.stock import stocks
from jobs.review_benchmark.inputs.results import AgentResult
from jobs.review_benchmark.rebuilt import Sheet
from jobs.review_benchmark.review import Review
from runner.job import Answers
from runner.scorecard import Finding

_Made = TypeVar("_Made")


def sheet_of(dataset: Dataset, answers: Answers) -> Sheet:
    """Everything that the answers say, by the present rules."""
    return _imported(dataset, answers) if answers.imported else _own(dataset, answers)


def _own(dataset: Dataset, answers: Answers) -> Sheet:
    courses: dict[tuple[str, str], list[Course]] = {}
    missing = stale = 0
    truths = Truths(dataset=dataset, replicates=answers.replicates)
    for family in answers.families():
        if family[0].task.stage in STAGES:
            truths.add(family)
            continue
        found = course(dataset, family)
        if found is None:
            stale += sum(answer.reply is not None for answer in family)
            continue
        missing += found.missing
        stale += found.stale
        if not found.is_open:
            courses.setdefault((found.model, found.review), []).append(found)
    searched = {review for _, review in courses}
    stock = stocks(dataset, [own for own in dataset.reviews if own.id in searched])
    return Sheet(
        reviews=dataset.reviews,
        models=answers.models,
        rebuilt=tuple(
            own.rebuilt(
                dataset,
                review,
                model,
                each,
                stock[review.id],
                replicates=answers.replicates,
            )
            for model, review, each in _in_order(dataset, answers, courses)
        ),
        replicates=answers.replicates,
        imported=False,
        vectors=truths.vectors,
        missing=truths.missing + missing,
        stale=truths.stale + stale,
    )


def _imported(dataset: Dataset, answers: Answers) -> Sheet:
    results: dict[tuple[str, str], dict[int, AgentResult]] = {}
    findings: list[Finding] = []
    stale = 0
    for family in answers.families():
        for answer in family:
            task = answer.task
            if answer.chat is None or dataset.find(task.key) is None:
                stale += 1
                continue
            result = reading.read_result(dataset, task, answer.chat)
            if isinstance(result, AgentResult):
                by_replicate = results.setdefault((task.model, task.key), {})
                by_replicate[task.replicate] = result
                findings += result.findings
            else:
                findings.append(
                    Finding(
                        code=result.reason,
                        severity="error",
                        where=f"{task.key} of {task.model}",
                        message=f"The result cannot be read: {result.detail}",
                    )
                )
    return Sheet(
        reviews=dataset.reviews,
        models=answers.models,
        rebuilt=tuple(
            imported.rebuilt(
                dataset, review, model, each, replicates=answers.replicates
            )
            for model, review, each in _in_order(dataset, answers, results)
        ),
        replicates=answers.replicates,
        imported=True,
        findings=tuple(findings),
        stale=stale,
    )


def _in_order(
    dataset: Dataset, answers: Answers, made: Mapping[tuple[str, str], _Made]
) -> Iterator[tuple[str, Review, _Made]]:
    """What there is by model and review, as a sheet has it."""
    for model in answers.models:
        for review in dataset.reviews:
            if (model, review.id) in made:
                yield model, review, made[model, review.id]
