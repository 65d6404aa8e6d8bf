"""One pass over a run's answers: a sheet of columns, one a model and replicate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from jobs.inputs.rows import InputFindings
from jobs.metrics.columns import Floats, Ints
from jobs.screening.asking.plan import ends
from jobs.screening.corpus import Criteria
from jobs.screening.dataset import Dataset
from jobs.screening.decisions import MISSING, NOTED, Decisions, Sheet
from jobs.screening.gathering.joining import of_models, of_replicates
from jobs.screening.gathering.records import Screened
from jobs.screening.gathering.staged import (
    EXCLUDED_EARLIER,
    Course,
    Step,
    course,
    is_exclusion,
    read,
)
from jobs.screening.parsing.criteria import parse_criteria
from runner.job import Answer, Answers


def sheet_of(dataset: Dataset, answers: Answers, found: Screened) -> Sheet:
    """Everything that the answers say of the *found* records, by the present rules."""
    gathering = _Gathering(dataset, answers, found)
    for family in answers.families():
        gathering.add(family)
    replicates = gathering.columns()
    joined = [
        of_replicates(model, [own for own in replicates if own.model == model])
        for model in answers.models
    ]
    ensembles: list[Decisions] = []
    if len(joined) > 1:
        ensembles = [of_models(rule, joined) for rule in dataset.settings.ensemble]
    noticed = gathering.noticed
    return Sheet(
        records=found.records,
        decisions=(*joined, *ensembles),
        replicates=tuple(replicates) if answers.replicates > 1 else (),
        models=answers.models,
        findings=noticed.findings(),
        missing=gathering.missing,
        stale=gathering.stale,
    )


@dataclass
class _Column:
    """What one model, once asked, says of each record; filled in one by one."""

    outcome: Ints
    p: Floats
    stage: Ints
    ended: Ints
    latest: Ints
    reason_code: list[str]
    reason: list[str]
    noticed: list[str]
    replies: int = 0
    skip: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, n: int, last: int) -> _Column:
        return cls(
            outcome=np.full(n, MISSING, dtype=np.int64),
            p=np.full(n, np.nan),
            stage=np.full(n, -1, dtype=np.int64),
            ended=np.full(n, last, dtype=np.int64),
            latest=np.full(n, MISSING, dtype=np.int64),
            reason_code=[""] * n,
            reason=[""] * n,
            noticed=[""] * n,
        )

    def put(self, at: int, own: Course) -> None:
        self.outcome[at] = own.outcome
        self.p[at] = np.nan if own.p is None else own.p
        self.stage[at], self.ended[at] = own.stage, own.ended
        self.latest[at] = own.latest
        self.reason_code[at], self.reason[at] = own.reason_code, own.reason
        self.noticed[at] = NOTED.join(own.noticed)
        if own.skip:
            self.skip[own.skip] += 1
        self.replies += own.replies
        self.counts.update(own.noticed)


class _Gathering:
    """One pass, with what it has found so far."""

    def __init__(self, dataset: Dataset, answers: Answers, found: Screened) -> None:
        self._found = found
        self._imported = answers.imported
        self._asked = {name: at for at, name in enumerate(found.stages)}
        self._stages = tuple(self._asked)
        self._dataset = dataset
        self._steps: dict[tuple[str, int], dict[int, list[Step]]] = {
            (model, replicate): {}
            for model in answers.models
            for replicate in range(1, answers.replicates + 1)
        }
        self.noticed = InputFindings()
        self._open = 0
        self.stale = 0

    def add(self, family: Sequence[Answer]) -> None:
        """Take in a first-stage answer with what descends from it."""
        for answer in family:
            task = answer.task
            if task.stage == "criteria":
                self._note(answer)
                continue
            stage = self._asked.get(task.stage)
            at = self._found.places.get(task.key)
            own = self._steps.get((task.model, task.replicate))
            if stage is None or at is None or own is None:
                self.stale += answer.reply is not None
            else:
                own.setdefault(at, []).append(read(answer, stage))

    def _note(self, answer: Answer) -> None:
        """Flag criteria that no model stated: the review's abstract was told."""
        reply = answer.chat
        is_stated = reply is not None and isinstance(parse_criteria(reply), Criteria)
        if not (is_stated or answer.is_open):
            task = answer.task
            self.noticed.add(
                "criteria_not_stated",
                "warn",
                f"criteria of {task.model}",
                "A model was to state what a review asks for, and did not or could not "
                "be read: it was told the review's own abstract, or its title.",
                example=task.key,
            )

    @property
    def missing(self) -> int:
        """Tasks that are due and not there; known when all columns were made."""
        if self._imported:
            return 0
        n = len(self._found.records)
        return self._open + sum(n - len(own) for own in self._steps.values())

    def columns(self) -> list[Decisions]:
        """Every model and replicate, in the run's order."""
        return [
            self._column(model, replicate, steps)
            for (model, replicate), steps in self._steps.items()
        ]

    def _column(
        self, model: str, replicate: int, steps: Mapping[int, Sequence[Step]]
    ) -> Decisions:
        last = len(self._stages) - 1
        column = _Column.of(len(self._found.records), last)
        for at, own in steps.items():
            due, has_ended = self._due(own)
            column.put(at, course(due, last, has_ended=has_ended))
            if has_ended and due[-1].stage < last:
                column.skip[EXCLUDED_EARLIER] += 1
        return Decisions(
            model=model,
            replicate=replicate,
            outcome=column.outcome,
            p=column.p,
            stage=column.stage,
            ended=column.ended,
            latest=column.latest,
            stages=self._stages,
            reason_code=column.reason_code,
            reason=column.reason,
            noticed=column.noticed,
            replies=column.replies,
            skip=dict(column.skip),
            counts=dict(column.counts),
        )

    def _due(self, steps: Sequence[Step]) -> tuple[Sequence[Step], bool]:
        """The steps up to the one that ends the record, and whether one does."""
        in_order = sorted(steps, key=lambda step: step.stage)
        if self._imported:
            # what the settings were is not known: nothing after an exclusion is an end
            return in_order, is_exclusion(in_order[-1])
        due: list[Step] = []
        has_ended = False
        for own in in_order:
            if has_ended:
                self.stale += own.parsed is not None
                continue
            # it was not asked under settings that have changed since
            self._open += own.skip == EXCLUDED_EARLIER
            due.append(own)
            has_ended = ends(self._dataset, self._stages[own.stage], own.parsed)
        before = due[-1]
        is_answered = before.parsed is not None or before.error is not None
        if is_answered and not has_ended and before.stage < len(self._stages) - 1:
            # it has yet to be planned, or the run never had such a stage
            self._open += 1
            due.append(Step(stage=before.stage + 1, is_open=True))
        return due, has_ended
