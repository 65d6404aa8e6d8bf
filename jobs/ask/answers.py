"""Reads the answers of a run: a result per item and model."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.ask.inputs import AskDataset
from jobs.ask.merge import item_answers
from jobs.ask.plan import parser_of
from jobs.kit.fields.results import ItemResult, item_results
from runner.job import Answers


def results(dataset: AskDataset, answers: Answers) -> Iterator[ItemResult]:
    """Yield the results of the items that are still among the papers."""
    merged = item_answers(dataset.recipe, answers, parser_of(dataset))
    known = (answer for answer in merged if answer.item in dataset.items)
    return item_results(known, dataset.recipe.every_field)
