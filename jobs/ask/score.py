"""Counts what was answered; the table of answers and the metrics are built here."""

from __future__ import annotations

from collections import Counter

from jobs.ask.inputs import AskDataset
from jobs.ask.merge import item_answers
from jobs.ask.plan import parser_of
from runner.job import Answers
from runner.scorecard import Scorecard


def score(dataset: AskDataset, answers: Answers) -> Scorecard:
    """Return a summary with the number of answered fields."""
    counts: Counter[tuple[str, str, str]] = Counter()
    lines = []
    for answer in item_answers(dataset.recipe, answers, parser_of(dataset)):
        for name, value in answer.fields.items():
            state = "answered" if value.is_answered else value.failure or "not reported"
            counts[answer.model, name, state] += 1
            lines.append(
                f"{answer.item}  {answer.model}  {name}: {value.value!r} {state} "
                f"{[(q.text, q.level.value, q.page, q.section) for q in value.quotes]} "
                f"{answer.checks.get(name, ())}"
            )
        lines += [f"{answer.item} {name}: {why}" for name, why in answer.failed.items()]
    return Scorecard(models={}, summary="\n".join(lines))
