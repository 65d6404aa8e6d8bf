"""What models were not told: a finding where a review is no more than its title."""

from __future__ import annotations

from jobs.noticed import Noticed
from jobs.screening.asking.told import told
from jobs.screening.dataset import Dataset
from runner.scorecard import Finding

_MESSAGES = {
    "auto": "Reviews are told by their title alone: neither criteria nor sections of "
    "an abstract say what they ask for (build the set with --criteria).",
    "llm": "A model states what reviews ask for from their title alone: their "
    "abstracts have no sections that say it (build the set with --criteria, and set "
    "criteria_source to auto).",
}
"""By the source of criteria; with `file`, such reviews are skipped and counted so."""


def told_by_title(dataset: Dataset) -> tuple[Finding, ...]:
    """The reviews of which a model learns the title alone, where there are any."""
    settings = dataset.settings
    message = _MESSAGES.get(settings.criteria_source)
    if message is None:
        return ()
    noticed = Noticed()
    for review in dataset.screened:
        if told(settings, dataset.review(review)).source == "title":
            noticed.add(
                "criteria_from_title",
                "warn",
                "reviews.jsonl",
                message,
                example=review,
            )
    return noticed.findings()
