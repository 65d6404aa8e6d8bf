"""What was read from each reply, and whether it is right: the verdicts of a scoring.

A second pass over the answers, made while the verdicts are written, so that none is
held. What an assessment says is judged as the model said it, at `tau`, before any gate;
an imported prediction as it is scored. Orders, vectors and scores of an endpoint have
no right or wrong of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from jobs.evidence_retrieval.asking.listing import listing
from jobs.evidence_retrieval.dataset import Dataset, query_key
from jobs.evidence_retrieval.parsing.values import (
    Assessment,
    EndpointScores,
    Ordering,
    PostAssessment,
    PostVectors,
)
from jobs.evidence_retrieval.predicting.gathering import Planned
from jobs.evidence_retrieval.queries import UNKNOWN, Predictions, Queries, Sheet
from jobs.evidence_retrieval.reading import PARSERS
from jobs.metrics.selective import STATES
from runner.job import Answer, Answers, Task
from runner.messages import AnyReply, ParseFailure
from runner.scorecard import Verdict

EVIDENCE, NO_EVIDENCE = "evidence", "no evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """One verdict for each task of the plan that was answered; may be read again."""

    dataset: Dataset
    answers: Answers
    sheet: Sheet

    def __iter__(self) -> Iterator[Verdict]:
        places = {self.sheet.queries.key(i): i for i in range(len(self.sheet.queries))}
        if self.answers.imported:
            yield from self._given(places)
            return
        truth = self.sheet.queries.y
        expected = {key: int(truth[place]) for key, place in places.items()}
        planned = Planned(self.dataset, self.answers)
        for family in self.answers.families():
            if not planned.takes(family[0].task):
                continue
            for answer in family:
                if answer.reply is not None:
                    yield _read(self.dataset, answer.task, answer.reply, expected)

    def _given(self, places: Mapping[str, int]) -> Iterator[Verdict]:
        """Of work made elsewhere: the column that is scored, not all that was said."""
        said = {found.model: found for found in self.sheet.predictions}
        for (answer,) in self.answers.families():
            if answer.reply is not None:
                yield _imported(
                    answer,
                    self.sheet.queries,
                    said[answer.task.model],
                    places[answer.task.key],
                    self.dataset.settings.tau,
                )


def _read(
    dataset: Dataset, task: Task, reply: AnyReply, expected: Mapping[str, int]
) -> Verdict:
    parsed = PARSERS[task.stage](dataset, task, reply)
    tau = dataset.settings.tau
    match parsed:
        case Assessment(probability=p):
            truth = expected[task.key]
            return _verdict(
                task,
                value=f"{_called(p >= tau)} {p:.2f}",
                expected=_truth(truth),
                correct=_agree([(p >= tau, truth)]),
                rule=_noted(parsed.noted),
            )
        case PostAssessment():
            return _batch(task, parsed, expected, tau)
        case Ordering():
            listed = listing(dataset, task)
            order = (str(listed.places[place] + 1) for place in parsed.places)
            value = " > ".join(order)
            return _verdict(task, value=value, rule=_noted(parsed.noted))
        case PostVectors():
            n = len(parsed.criteria) + len(parsed.sentences)
            return _verdict(task, value=f"{n} x {parsed.criteria.shape[1]} numbers")
        case EndpointScores(scores=scores):
            there = sum(score is not None for score in scores)
            value = f"{there} of {len(scores)} sentences scored"
            return _verdict(task, value=value, rule=_noted(parsed.noted))
        case ParseFailure(reason=reason):
            return _verdict(task, value="", rule=reason)
        case _:
            raise AssertionError(parsed)


def _batch(
    task: Task, parsed: PostAssessment, expected: Mapping[str, int], tau: float
) -> Verdict:
    """Of a whole post: each criterion that could be read; right if all of these are."""
    values, due, pairs = [], [], []
    noted = [_noted(parsed.noted)]
    for criterion, found in parsed.criteria.items():
        truth = expected[query_key(task.key, criterion)]
        due.append(f"{criterion}: {_truth(truth) or 'not judged'}")
        if isinstance(found, ParseFailure):
            noted.append(f"{criterion}: {found.reason}")
            continue
        p = found.probability
        values.append(f"{criterion}: {_called(p >= tau)} {p:.2f}")
        pairs.append((p >= tau, truth))
        if found.noted:
            noted.append(f"{criterion}: {_noted(found.noted)}")
    return _verdict(
        task,
        value="; ".join(values),
        expected="; ".join(due),
        correct=_agree(pairs),
        rule="; ".join(filter(None, noted)),
    )


def _imported(
    answer: Answer, queries: Queries, said: Predictions, place: int, tau: float
) -> Verdict:
    truth = int(queries.y[place])
    p = np.nan if said.prob is None else float(said.prob[place])
    if np.isnan(p):
        best = said.lists.get(said.final, {place: ()})[place][:1]
        value = f"first {best[0]}" if best else ""
        return _verdict(answer.task, value=value, expected=_truth(truth))
    state = UNKNOWN if said.state is None else int(said.state[place])
    called = _called(p >= tau) if state == UNKNOWN else STATES[state]
    return _verdict(
        answer.task,
        value=f"{called} {p:.2f}",
        expected=_truth(truth),
        correct=_agree([(p >= tau, truth)]),
    )


def _verdict(
    task: Task,
    *,
    value: str,
    expected: str = "",
    correct: bool | None = None,
    rule: str = "",
) -> Verdict:
    return Verdict(
        task=task.number,
        model=task.model,
        stage=task.stage,
        key=task.key,
        value=value,
        expected=expected,
        correct=correct,
        rule=rule,
    )


def _called(has_evidence: bool) -> str:
    return EVIDENCE if has_evidence else NO_EVIDENCE


def _truth(truth: int) -> str:
    return "" if truth == UNKNOWN else _called(bool(truth))


def _agree(pairs: Iterable[tuple[bool, int]]) -> bool | None:
    """Whether every decision is right; None where one was not judged, or none made."""
    judged = list(pairs)
    if not judged or any(truth == UNKNOWN for _, truth in judged):
        return None
    return all(called == bool(truth) for called, truth in judged)


def _noted(noted: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in noted.items())
