"""One pass over a run's answers: a sheet of what each agent made of each review."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobs.review_benchmark import reading
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.gathering.compared import STAGES, Truths
from jobs.review_benchmark.gathering.course import Course, course
from jobs.review_benchmark.gathering.joined import candidates
from jobs.review_benchmark.inputs.results import AgentResult
from jobs.review_benchmark.matching.listed import Listed
from jobs.review_benchmark.matching.lookup import Lookup, Stocked, looked_up
from jobs.review_benchmark.matching.match import matched, wanted
from jobs.review_benchmark.matching.rules import RULES
from jobs.review_benchmark.rebuilt import Candidate, Concluded, Rebuilt, Sheet
from jobs.review_benchmark.review import Review
from runner.job import Answers
from runner.task import Answer


def sheet_of(dataset: Dataset, answers: Answers) -> Sheet:
    """Everything that the answers say, by the present rules."""
    if answers.imported:
        return _imported(dataset, answers)
    courses: dict[tuple[str, str], list[Course]] = {}
    stale = 0
    truths = Truths(dataset=dataset, replicates=answers.replicates)
    for family in answers.families():
        if family[0].task.stage in STAGES:
            truths.add(family)
            continue
        own = course(dataset, family)
        if own is None:
            stale += sum(answer.reply is not None for answer in family)
        else:
            courses.setdefault((own.model, own.review), []).append(own)
    lookups = {review.id: _lookups(dataset, review) for review in dataset.reviews}
    every = [own for each in courses.values() for own in each]
    return Sheet(
        reviews=dataset.reviews,
        models=answers.models,
        rebuilt=tuple(
            _rebuilt(dataset, review, model, courses[model, review.id], lookups)
            for model in answers.models
            for review in dataset.reviews
            if (model, review.id) in courses
        ),
        imported=False,
        vectors=truths.vectors,
        missing=truths.missing + sum(own.missing for own in every),
        stale=truths.stale + stale + sum(own.stale for own in every),
    )


def _lookups(dataset: Dataset, review: Review) -> Sequence[Lookup]:
    """Where the studies of a review stand in the database, whoever searches it."""
    if dataset.database is None:
        return [Lookup() for _ in review.studies]
    rules = dataset.rules
    return looked_up(
        [wanted(paper, rules.normal) for paper in review.studies],
        dataset.database,
        cutoff=rules.title_cutoff,
        autojunk=rules.autojunk,
    )


def _rebuilt(
    dataset: Dataset,
    review: Review,
    model: str,
    courses: Sequence[Course],
    lookups: Mapping[str, Sequence[Lookup]],
) -> Rebuilt:
    """What a model made of a review, matched with the whole database."""
    found = candidates(courses, dataset.settings)
    first = [own for own in found if own.included]
    rest = [own for own in found if not own.included]
    order = {int(own.document): place for place, own in enumerate((*first, *rest))}
    rule = RULES[dataset.settings.matching]
    normal = dataset.rules.normal
    pools = [Stocked(order=order, lookup=lookup) for lookup in lookups[review.id]]
    hits = tuple(
        rule(wanted(paper, normal), pool)
        for paper, pool in zip(review.studies, pools, strict=True)
    )
    documents = {place: str(number) for number, place in order.items()}
    beyond = {hit.place for hit in hits if hit is not None} - documents.keys()
    documents |= {place: str(place - len(order)) for place in beyond}
    return Rebuilt(
        review=review.id,
        model=model,
        hits=hits,
        documents=documents,
        included=tuple(own.document for own in first),
        candidates=found,
        searches=tuple(own.searched for own in courses if own.searched is not None),
        conclusions=tuple(own.concluded for own in courses),
        skip="" if found else next((own.failure for own in courses), ""),
    )


def _imported(dataset: Dataset, answers: Answers) -> Sheet:
    """Results of agents, matched with their own records."""
    rebuilt = []
    stale = 0
    for answer in _results(answers):
        review = dataset.find(answer.task.key)
        if review is None:
            stale += 1
            continue
        assert answer.chat is not None  # noqa: S101 - an imported file is a reply
        result = reading.read_result(dataset, answer.task, answer.chat)
        if isinstance(result, AgentResult):
            rebuilt.append(_as_given(dataset, review, answer.task.model, result))
    order = {model: place for place, model in enumerate(answers.models)}
    return Sheet(
        reviews=dataset.reviews,
        models=answers.models,
        rebuilt=tuple(sorted(rebuilt, key=lambda own: (order[own.model], own.review))),
        imported=True,
        stale=stale,
    )


def _results(answers: Answers) -> Iterator[Answer]:
    for family in answers.families():
        yield from (answer for answer in family if answer.task.stage == "result")


def _as_given(
    dataset: Dataset, review: Review, model: str, result: AgentResult
) -> Rebuilt:
    rules = dataset.rules
    pool = Listed.of(
        result.records,
        rules.normal,
        cutoff=rules.title_cutoff,
        autojunk=rules.autojunk,
    )
    hits = matched(review.studies, pool, rules)
    included = tuple(own.document for own in result.records if own.included)
    kept = frozenset(included)
    return Rebuilt(
        review=review.id,
        model=model,
        hits=hits,
        documents={place: own.document for place, own in enumerate(result.records)},
        included=included,
        candidates=tuple(
            Candidate(
                document=own.document,
                rank=rank,
                included=own.document in kept,
                outcome="scored" if own.score is not None else "open",
                score=own.score,
                scores=(own.score,),
                rationale=own.rationale,
            )
            for rank, own in enumerate(result.records, start=1)
        ),
        conclusions=(_stated(result.conclusion),),
    )


def _stated(text: str) -> Concluded:
    """A conclusion that a file holds, if it does."""
    return Concluded(text=text) if text else Concluded(failure="no_conclusion")
