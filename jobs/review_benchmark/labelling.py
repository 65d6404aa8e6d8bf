"""Declares what people label in a review benchmark: which papers a review includes.

An item is a candidate: a paper that a search of the run found for a review. Papers that
no search found are not labelled, so that recall against labels is recall of the papers
known to be relevant, as in pooled evaluations of retrieval (Sparck Jones and van
Rijsbergen, 1975); `retrieval_recall` is 1 then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from jobs.review_benchmark import parsing, requests
from jobs.review_benchmark.data import Relevance, Review, TruthPaper
from jobs.review_benchmark.database.papers import DatabasePaper
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.truth_files import review_to_json
from runner.job import Answers
from runner.labelling import (
    LabelChoice,
    LabelField,
    LabelItem,
    Labelling,
    ModelLabel,
)

INCLUDE: Final = "include"
EXCLUDE: Final = "exclude"

INCLUSION: Final = LabelField(
    name="",
    question="Does the review include the paper?",
    choices=(
        LabelChoice(value=INCLUDE, key="i"),
        LabelChoice(value=EXCLUDE, key="e"),
        LabelChoice(value="unclear", key="u", is_gold=False),
    ),
)


class CandidateLabelling(Labelling):
    """A decision per candidate of a review."""

    gold_setting = "truth"
    gold_suffix = ".jsonl"

    def __init__(self, candidates: Mapping[str, Sequence[str]]) -> None:
        """Label the candidates of a run.

        Args:
            candidates: keys of the papers that searches found, by review.
        """
        self._candidates = candidates

    def of_run(self, dataset: object, answers: Answers) -> CandidateLabelling | None:
        """Return the labelling of the candidates of a run's searches.

        None if no paper database is searched: for extractions and imports.
        """
        if not isinstance(dataset, ReviewDataset) or dataset.database is None:
            return None
        candidates: dict[str, dict[str, None]] = {}
        for family in answers.families():
            for answer in family:
                key = answer.task.key
                if answer.task.stage != "score" or dataset.find(key) is not None:
                    continue  # a review's key represents a search without a hit
                review, number = requests.paper_of_key(key)
                if dataset.find(review) and dataset.database.paper(number):
                    candidates.setdefault(review, {})[key] = None
        return CandidateLabelling(
            {review: [*keys] for review, keys in candidates.items()}
        )

    def fields(self, dataset: ReviewDataset) -> tuple[LabelField, ...]:
        """Return the decision field."""
        del dataset
        return (INCLUSION,)

    def items(self, dataset: ReviewDataset) -> Iterator[str]:
        """Yield the candidates of each review, as the searches ranked them."""
        for review in dataset.reviews:
            yield from self._candidates.get(review.id, ())

    def item(self, dataset: ReviewDataset, key: str) -> LabelItem:
        """Return title and abstract of a paper, below the question of the review."""
        review, paper = _candidate(dataset, key)
        text = "\n".join((*_criteria(review), "", paper.abstract))
        return LabelItem(key=key, title=paper.title, text=text)

    def items_of_task(self, dataset: ReviewDataset, key: str) -> Sequence[str]:
        """Return the candidates of the review of a search or conclusion."""
        review = key if dataset.find(key) else requests.review_of_key(key)
        return self._candidates.get(review) or (key,)

    def replies(self, dataset: ReviewDataset, answers: Answers) -> Iterator[ModelLabel]:
        """Yield for each score whether it includes the paper."""
        for family in answers.families():
            for answer in family:
                task = answer.task
                if task.stage != "score" or answer.chat is None:
                    continue
                read = parsing.read_score(dataset, task, answer.chat)
                if isinstance(read, Relevance):
                    is_included = dataset.settings.includes(read.score)
                    yield ModelLabel(
                        item=task.key,
                        field="",
                        model=task.model,
                        replicate=task.replicate,
                        value=INCLUDE if is_included else EXCLUDE,
                        reason=read.rationale,
                        task=task.number,
                    )

    def gold_changes(self, dataset: ReviewDataset) -> Mapping[str, object]:
        """Return changes that select all reviews: a named one may lack labels."""
        del dataset
        return {"review": ()}

    def gold_files(
        self, dataset: ReviewDataset, gold: Mapping[str, Mapping[str, str]]
    ) -> Mapping[str, str]:
        """Return published reviews whose studies are the papers that people include.

        A review counts once all its candidates have a value, and one is included:
        those without a value would count as wrong.
        """
        decided = {key: values[""] for key, values in gold.items() if "" in values}
        lines = []
        for review in dataset.reviews:
            keys = self._candidates.get(review.id, ())
            included = [key for key in keys if decided.get(key) == INCLUDE]
            if included and all(key in decided for key in keys):
                studies = (_study(_candidate(dataset, key)[1]) for key in included)
                truth = replace(
                    review,
                    title=review.title or review.question,
                    studies=tuple(studies),
                )
                lines.append(json.dumps(review_to_json(truth), ensure_ascii=False))
        return (
            {self.gold_setting: "".join(f"{line}\n" for line in lines)} if lines else {}
        )


def _candidate(dataset: ReviewDataset, key: str) -> tuple[Review, DatabasePaper]:
    """Return the review and paper of a key; raise `KeyError` if the data lack them."""
    try:
        review, number = requests.paper_of_key(key)
    except ValueError:
        raise KeyError(key) from None
    return dataset.review(review), requests.paper(dataset, number)


def _criteria(review: Review) -> Iterator[str]:
    """Yield the question of a review and its criteria, one per line."""
    yield f"Review: {review.question}"
    yield from (f"Include: {criterion}" for criterion in review.inclusion)
    yield from (f"Exclude: {criterion}" for criterion in review.exclusion)


def _study(paper: DatabasePaper) -> TruthPaper:
    return TruthPaper(
        pmid=paper.pmid, doi=paper.doi, title=paper.title, year=paper.year
    )


labelling = CandidateLabelling({})
