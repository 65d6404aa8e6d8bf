"""What was read from each reply, and whether it agrees with the truth.

A second pass over the answers, made while the verdicts are written, so that none is
held. A score is right where it includes a paper that the review includes, or leaves out
one that it does not; what decides about no paper is neither right nor wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from jobs.review_benchmark import reading
from jobs.review_benchmark.answered import Conclusion, Likeness, Relevance, SearchPlan
from jobs.review_benchmark.asking import keys
from jobs.review_benchmark.inputs.results import AgentResult
from jobs.review_benchmark.measuring.results import Results
from jobs.review_benchmark.summary.reasons import percent
from runner.job import Answer, Answers
from runner.messages import ParseFailure
from runner.scorecard import Verdict

EXPECTED = ("exclude", "include")
"""By whether the review includes the paper."""

NOT_STATED = "not stated"

_PARSERS = {stage.name: stage.parse for stage in reading.STAGES}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What a reply comes to."""

    value: str = ""
    expected: str = ""
    correct: bool | None = None
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskVerdicts:
    """One verdict for each answered task; may be read again."""

    results: Results
    answers: Answers

    def __iter__(self) -> Iterator[Verdict]:
        truth = {
            (own.model, own.review): frozenset(own.records)
            for own in self.results.sheet.rebuilt
        }
        for family in self.answers.families():
            for answer in family:
                said = _said(answer, self.results, truth)
                if said is not None:
                    task = answer.task
                    yield Verdict(
                        task=task.number,
                        model=task.model,
                        stage=task.stage,
                        key=task.key,
                        value=said.value,
                        expected=said.expected,
                        correct=said.correct,
                        rule=said.rule,
                    )


def _said(  # noqa: PLR0911 - a line for each kind of value
    answer: Answer,
    results: Results,
    truth: Mapping[tuple[str, str], AbstractSet[str]],
) -> _Said | None:
    """None of a task without a reply."""
    if answer.reply is None:
        return None
    dataset, task = results.dataset, answer.task
    match _PARSERS[task.stage](dataset, task, answer.reply):
        case ParseFailure(reason=reason):
            return _Said(rule=reason)
        case SearchPlan(queries=queries, dropped=dropped):
            rule = f"{dropped} dropped" if dropped else ""
            return _Said(value=f"{len(queries)} queries", rule=rule)
        case Relevance(score=score, rule=rule):
            review, paper = keys.paper_of_key(task.key)
            is_truth = str(paper) in truth.get((task.model, review), frozenset())
            return _Said(
                value=f"{score:g}",
                expected=EXPECTED[is_truth],
                correct=dataset.settings.includes(score) == is_truth,
                rule=rule,
            )
        case Conclusion(direction=direction, certainty=certainty):
            value = f"{direction or NOT_STATED}, certainty {certainty or NOT_STATED}"
            return _Said(value=value)
        case Likeness(similarity=similarity, direction=direction):
            return _Said(value=f"{similarity:.2f}, {direction}")
        case AgentResult():
            return _result(results, task.model, task.key)
        case _:
            return None


def _result(results: Results, model: str, review: str) -> _Said | None:
    """What an imported result comes to; None where its review is gone."""
    own = results.columns[model].benchmarks.get(review)
    if own is None:
        return None
    target = results.dataset.settings.target_recall
    return _Said(
        value=f"{own.found_and_included} of {own.truth} included",
        expected=f"recall {percent(target)}",
        correct=own.passes(target),
        rule="results",
    )
