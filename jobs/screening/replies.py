"""Reads a run's answers once, into columns: the parsed values, without the text.

Predictions and verdicts are computed from the columns. Apart from probabilities and
reasons, replies have few distinct forms, so an answer takes about thirty bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jobs.screening.data import ScreeningJudgement
from jobs.screening.parsing import PARSER, ScreeningReading
from runner.job import Answer, Answers, parsed_families
from runner.messages import ParseFailure


class TaskGroup(NamedTuple):
    """Stage, model and replicate of a task."""

    stage: str
    model: str
    replicate: int


@dataclass(frozen=True, slots=True)
class ReplyKind:
    """A parsed result that many answers share; without probability and reason."""

    parsed: ScreeningJudgement | ParseFailure | None = None  #: None: nothing to parse
    error: str | None = None
    skip: str | None = None
    is_open: bool = False
    is_stated: bool = False  #: the reply states criteria, or a decision


@dataclass(slots=True, kw_only=True)
class AnswerColumns:
    """The answers of a run, in the order of the log; columns have equal lengths."""

    models: tuple[str, ...]
    replicates: int
    imported: bool
    task: array[int] = field(default_factory=lambda: array("q"))  #: numbers
    key: array[int] = field(default_factory=lambda: array("q"))  #: index into `keys`
    group: array[int] = field(default_factory=lambda: array("l"))  #: into `groups`
    kind: array[int] = field(default_factory=lambda: array("l"))  #: into `forms`
    p: array[float] = field(default_factory=lambda: array("d"))  #: NaN: none
    reasons: dict[int, str] = field(default_factory=dict)
    """Reasons in the models' words, by answer; answers without a reason are absent."""
    keys: list[str] = field(default_factory=list)  #: distinct ones
    contexts: list[str | None] = field(default_factory=list)
    """The first context of a first-stage task, for each key."""
    groups: list[TaskGroup] = field(default_factory=list)
    forms: list[ReplyKind] = field(default_factory=list)
    first_stages: set[str] = field(default_factory=set)  #: of first-stage tasks

    def __len__(self) -> int:
        return len(self.task)


NO_P = float("nan")


def read_answers(answers: Answers) -> AnswerColumns:
    """Read all answers of a run by the current rules, in one pass."""
    columns = AnswerColumns(
        models=answers.models, replicates=answers.replicates, imported=answers.imported
    )
    keys: dict[str, int] = {}
    groups: dict[TaskGroup, int] = {}
    forms: dict[Hashable, int] = {}
    for family in parsed_families(answers, PARSER):
        _note_root(columns, keys, family)
        for answer in family:
            task, parsed = answer.task, answer.parsed
            key = keys.get(task.key)
            if key is None:
                key = _added(columns, keys, task.key)
            identity = (task.stage, task.model, task.replicate)
            group = groups.get(identity)  # type: ignore[call-overload]
            if group is None:
                group = groups[TaskGroup(*identity)] = len(columns.groups)
                columns.groups.append(TaskGroup(*identity))
            p: float | None = None
            form: Hashable
            judgement: ScreeningJudgement | None = None
            if isinstance(parsed, ScreeningReading):
                judgement, p = parsed.judgement, parsed.p
            if judgement is not None:
                p = judgement.p_include
                form = (
                    judgement.decision,
                    judgement.reason_code,
                    judgement.rule,
                    judgement.issues,
                )
                if judgement.reason:
                    columns.reasons[len(columns.task)] = judgement.reason
            else:
                form = _other_form(answer)
            kind = forms.get(form)
            if kind is None:
                kind = forms[form] = len(columns.forms)
                columns.forms.append(_kind_of(answer))
            columns.task.append(task.number)
            columns.key.append(key)
            columns.group.append(group)
            columns.kind.append(kind)
            columns.p.append(NO_P if p is None else p)
    return columns


def _note_root(
    columns: AnswerColumns, keys: dict[str, int], family: Sequence[Answer]
) -> None:
    task = family[0].task
    columns.first_stages.add(task.stage)
    if task.context is not None:
        key = keys.get(task.key)
        if key is None:
            key = _added(columns, keys, task.key)
        if columns.contexts[key] is None:
            columns.contexts[key] = task.context


def _added(columns: AnswerColumns, keys: dict[str, int], name: str) -> int:
    at = keys[name] = len(columns.keys)
    columns.keys.append(name)
    columns.contexts.append(None)
    return at


def _other_form(answer: Answer) -> Hashable:
    """Return a key for the form of an answer without a judgement."""
    parsed = answer.parsed
    if not isinstance(parsed, ScreeningReading):
        return None, answer.error, answer.skip, answer.is_open
    return None if parsed.failure is None else parsed.failure.reason


def _kind_of(answer: Answer) -> ReplyKind:
    parsed = answer.parsed
    if not isinstance(parsed, ScreeningReading):
        return ReplyKind(error=answer.error, skip=answer.skip, is_open=answer.is_open)
    if parsed.judgement is None:
        return ReplyKind(parsed=parsed.failure, is_stated=parsed.failure is None)
    judgement = ScreeningJudgement(
        decision=parsed.judgement.decision,
        reason_code=parsed.judgement.reason_code,
        rule=parsed.judgement.rule,
        issues=parsed.judgement.issues,
    )
    return ReplyKind(parsed=judgement, is_stated=True)
