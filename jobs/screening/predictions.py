"""Reads a run's answers in one pass into decisions by model and replicate.

The last stage with a readable reply decides a record. An unreadable, failed or skipped
stage never excludes: the record goes on, with the decision of the stage before it.
Replicates of a model are joined into one column, models into ensembles.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from msgspec import structs

from jobs.kit.inputs.rows import InputFindings
from jobs.kit.metrics.columns import Floats, Ints, quotient
from jobs.screening.data import Decision, ScreeningJudgement
from jobs.screening.decisions import (
    EXCLUDE,
    FAILED,
    INCLUDE,
    MISSING,
    NOTED,
    READABLE,
    SKIPPED,
    UNCLEAR,
    UNPARSED,
    Decisions,
    ScreenedRecords,
    ScreeningPredictions,
)
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.plan import ends_early
from jobs.screening.replies import AnswerColumns, ReplyKind
from runner.messages import ParseFailure

OUTCOME_OF: Mapping[Decision, int] = {
    "include": INCLUDE,
    "exclude": EXCLUDE,
    "unclear": UNCLEAR,
}

EXCLUDED_EARLIER = "excluded_earlier"
NOT_REACHED = frozenset({EXCLUDED_EARLIER, "missing"})
"""Skip reasons of stages that were never due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageAnswer:
    """The answer about one record in one stage."""

    stage: int  #: index among the stages
    parsed: ScreeningJudgement | ParseFailure | None = None  #: None: no reply
    error: str | None = None
    p: float | None = None  #: of a reply with a score and no decision
    skip: str | None = None
    is_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOutcome:
    """The combined result of all stages of one record, for one replicate."""

    outcome: int
    p: float | None = None
    stage: int = -1  #: index of the stage that decided; -1: none
    ended: int  #: stages that were passed
    latest: int  #: outcome of the last stage that was due
    reason_code: str = ""
    reason: str = ""
    skip: str = ""
    replies: int = 0
    issues: tuple[str, ...] = field(default=())


def combine_stages(
    steps: Iterable[StageAnswer], last: int, *, has_ended: bool
) -> RecordOutcome:
    """Combine the stages of a record.

    Args:
        steps: at most one per stage, in any order; none after the one that ended it.
        last: index of the last stage.
        has_ended: whether the last of the steps excluded it for good. Otherwise it goes
            on, even if a later stage failed or is open.
    """
    due = sorted(steps, key=lambda step: step.stage)
    reached = [
        step for step in due if step.skip not in NOT_REACHED and not step.is_open
    ]
    readable = [
        (step, step.parsed)
        for step in reached
        if isinstance(step.parsed, ScreeningJudgement)
    ]
    skip = next((step.skip for step in reversed(reached) if step.skip is not None), "")
    issues = tuple(word for step in reached for word in _issues(step.parsed))
    replies = sum(step.parsed is not None for step in reached)
    latest = _outcome(due[-1]) if due else MISSING
    if not readable:
        return RecordOutcome(
            outcome=_without_decision(reached),
            p=next((step.p for step in reversed(reached) if step.p is not None), None),
            ended=last,
            latest=latest,
            skip=skip,
            replies=replies,
            issues=issues,
        )
    deciding, judgement = readable[-1]
    return RecordOutcome(
        outcome=OUTCOME_OF[judgement.decision],
        p=judgement.p_include,
        stage=deciding.stage,
        ended=deciding.stage if has_ended else last,
        latest=latest,
        reason_code=judgement.reason_code,
        reason=judgement.reason,
        skip=skip,
        replies=replies,
        issues=issues,
    )


def is_exclusion(step: StageAnswer) -> bool:
    """Return whether a stage excluded its record."""
    return _outcome(step) == EXCLUDE


def _outcome(step: StageAnswer) -> int:
    """Return the outcome of one stage."""
    match step.parsed:
        case ScreeningJudgement(decision=decision):
            return OUTCOME_OF[decision]
        case ParseFailure():
            return UNPARSED
        case None:
            if step.error is not None:
                return FAILED
            return MISSING if step.skip in {None, *NOT_REACHED} else SKIPPED


def _without_decision(reached: list[StageAnswer]) -> int:
    """Return the outcome closest to a decision, if there is none."""
    return min((_outcome(step) for step in reached), default=MISSING)


def _issues(parsed: ScreeningJudgement | ParseFailure | None) -> tuple[str, ...]:
    if isinstance(parsed, ParseFailure):
        return (f"parse.{parsed.reason}",)
    return () if parsed is None else parsed.issues


def record_places(answers: AnswerColumns, screened: ScreenedRecords) -> Ints:
    """Return the index of the record of each answer; -1: none."""
    place = screened.index_by_key
    of_keys = [place.get(key, -1) for key in answers.keys]
    places: Ints = np.array(of_keys, dtype=np.int64)[np.array(answers.key, np.int64)]
    return places


def _of_groups(answers: AnswerColumns, values: Sequence[int]) -> Ints:
    """Return the value of the group of each answer."""
    column: Ints = np.array(values, dtype=np.int64)[np.array(answers.group, np.int64)]
    return column


EnsembleRule = Literal["any", "majority", "all"]


def join_replicates(model: str, replicates: Sequence[Decisions]) -> Decisions:
    """Join a model's replicates by majority of the readable ones; a tie is unclear."""
    if len(replicates) == 1:
        (only,) = replicates
        return replace(only, model=model, replicate=None)
    outcome = _majority(_outcomes(replicates))
    return _joined(model, replicates, outcome)


def join_models(rule: EnsembleRule, models: Sequence[Decisions]) -> Decisions:
    """Build an ensemble, by majority, or including if `any` or `all` models do.

    Its p_include is the mean of the models', for every rule.
    """
    outcomes = _outcomes(models)
    outcome = _majority(outcomes)
    includes = outcomes == INCLUDE
    if rule == "any":
        outcome[includes.any(axis=0)] = INCLUDE
    elif rule == "all":
        is_torn = includes.any(axis=0) & ~includes.all(axis=0)
        excluded = (outcomes == EXCLUDE).any(axis=0)
        outcome[is_torn] = np.where(excluded, EXCLUDE, UNCLEAR)[is_torn]
    return _joined(f"ensemble/{rule}", models, outcome)


def _outcomes(columns: Sequence[Decisions]) -> Ints:
    return np.stack([decisions.outcome for decisions in columns])


def _majority(outcomes: Ints) -> Ints:
    """Return the most frequent readable outcome (tie: unclear), else the closest."""
    votes = np.stack([(outcomes == outcome).sum(axis=0) for outcome in READABLE])
    most = votes.max(axis=0)
    is_tie = (votes == most).sum(axis=0) > 1
    majority: Ints = np.asarray(READABLE, dtype=np.int64)[votes.argmax(axis=0)]
    majority[is_tie] = UNCLEAR
    # outcomes without a decision are ordered by how close they are to one
    return np.where(most > 0, majority, outcomes.min(axis=0, initial=MISSING))


def _joined(model: str, columns: Sequence[Decisions], outcome: Ints) -> Decisions:
    first = columns[0]
    stage, ended = (
        np.stack([getattr(decisions, name) for decisions in columns]).max(axis=0)
        for name in ("stage", "ended")
    )
    counts: Counter[str] = Counter()
    skip: Counter[str] = Counter()
    for decisions in columns:
        counts.update(decisions.counts)
        skip.update(decisions.skip)
    codes, reasons = _reasons(columns, outcome)
    return Decisions(
        model=model,
        outcome=outcome,
        p=_mean([decisions.p for decisions in columns]),
        stage=stage,
        ended=ended,
        latest=outcome,
        stages=first.stages,
        reason_code=codes,
        reason=reasons,
        replies=sum(decisions.replies for decisions in columns),
        skip=dict(skip),
        counts=dict(counts),
    )


def _mean(columns: Sequence[Floats]) -> Floats:
    """Return the mean of the defined probabilities; NaN if there is none."""
    table = np.stack(columns)
    total = np.where(np.isnan(table), 0.0, table).sum(axis=0)
    return quotient(total, (~np.isnan(table)).sum(axis=0))


def _reasons(
    columns: Sequence[Decisions], outcome: Ints
) -> tuple[Sequence[str], Sequence[str]]:
    """Return, for each record, the reason of the first column that agrees."""
    codes, reasons = [], []
    outcomes = _outcomes(columns)
    agrees = (outcomes == outcome).argmax(axis=0)
    for row, at in enumerate(agrees.tolist()):
        decisions = columns[at]
        codes.append(decisions.reason_code[row] if decisions.reason_code else "")
        reasons.append(decisions.reason[row] if decisions.reason else "")
    return codes, reasons


def collect_predictions(
    dataset: ScreeningDataset, answers: AnswerColumns, screened: ScreenedRecords
) -> ScreeningPredictions:
    """Collect the decisions about the *screened* records, by the current rules."""
    collector = _Collector(dataset, answers, screened)
    replicates = collector.columns()
    joined = [
        join_replicates(
            model, [decisions for decisions in replicates if decisions.model == model]
        )
        for model in answers.models
    ]
    ensembles: list[Decisions] = []
    if len(joined) > 1:
        ensembles = [join_models(rule, joined) for rule in dataset.settings.ensemble]
    findings = collector.findings
    return ScreeningPredictions(
        records=screened.records,
        decisions=(*joined, *ensembles),
        replicates=tuple(replicates) if answers.replicates > 1 else (),
        models=answers.models,
        findings=findings.findings(),
        missing=collector.missing,
        stale=collector.stale,
    )


class _Collector:
    """Answers about records by model and replicate, with counts and findings."""

    def __init__(
        self,
        dataset: ScreeningDataset,
        answers: AnswerColumns,
        screened: ScreenedRecords,
    ) -> None:
        self._screened = screened
        self._answers = answers
        self._stages = screened.stages
        self._dataset = dataset
        self.findings = InputFindings()
        self._open = 0
        self._kind = np.array(answers.kind, dtype=np.int64)
        self._at = record_places(answers, screened)
        place = {name: at for at, name in enumerate(screened.stages)}
        groups = answers.groups
        stages = [place.get(group.stage, -1) for group in groups]
        self._stage = _of_groups(answers, stages)
        column_indices = {
            (model, replicate): index
            for index, (model, replicate) in enumerate(
                (model, replicate)
                for model in answers.models
                for replicate in range(1, answers.replicates + 1)
            )
        }
        indices = [
            column_indices.get((group.model, group.replicate), -1) for group in groups
        ]
        column = _of_groups(answers, indices)
        is_criteria = _of_groups(
            answers, [at.stage == "criteria" for at in answers.groups]
        )
        for row in np.flatnonzero(is_criteria).tolist():
            self._note(row)
        is_due = (self._at >= 0) & (self._stage >= 0) & (column >= 0)
        has_reply = np.array([kind.parsed is not None for kind in answers.forms], bool)
        left_out = self._kind[~is_due & (is_criteria == 0)]
        self.stale = int(has_reply[left_out].sum())
        self._rows = {
            key: np.flatnonzero(is_due & (column == index))
            for key, index in column_indices.items()
        }

    def _note(self, row: int) -> None:
        """Add a finding for criteria not stated by a model; the abstract was used."""
        answers = self._answers
        kind = answers.forms[answers.kind[row]]
        if not (kind.is_stated or kind.is_open):
            self.findings.add(
                "criteria_not_stated",
                "warn",
                f"criteria of {answers.groups[answers.group[row]].model}",
                "The model that states a review's criteria gave none that "
                "could be parsed: prompts used the review's abstract or "
                "title.",
                example=answers.keys[answers.key[row]],
            )

    @property
    def missing(self) -> int:
        """Tasks that are due and absent; valid after all columns are built."""
        if self._answers.imported:
            return 0
        n = len(self._screened.records)
        return self._open + sum(
            n - len(np.unique(self._at[rows])) for rows in self._rows.values()
        )

    def columns(self) -> list[Decisions]:
        """Return the columns of every model and replicate, in the run's order."""
        column = self._column if len(self._stages) > 1 else self._single_stage
        return [
            column(model, replicate, rows)
            for (model, replicate), rows in self._rows.items()
        ]

    def _single_stage(self, model: str, replicate: int, rows: Ints) -> Decisions:
        """Build the same as `_column`, if no record has a second stage."""
        answers, n = self._answers, len(self._screened.records)
        forms = [
            combine_stages([self._step(kind, 0)], 0, has_ended=False)
            for kind in answers.forms
        ]
        at, kind = self._at[rows], self._kind[rows]

        def placed(values: Sequence[int], missing: int) -> Ints:
            column = np.full(n, missing, dtype=np.int64)
            column[at] = np.array(values, dtype=np.int64)[kind]
            return column

        def words(values: Sequence[str]) -> list[str]:
            column = [""] * n
            for place, form in zip(at.tolist(), kind.tolist(), strict=True):
                column[place] = values[form]
            return column

        p = np.full(n, np.nan)
        p[at] = np.array(answers.p)[rows]
        reason = [""] * n
        if answers.reasons:
            for place, row in zip(at.tolist(), rows.tolist(), strict=True):
                reason[place] = answers.reasons.get(row, "")
        times = np.bincount(kind, minlength=len(forms)).tolist()
        skips, counts = Counter[str](), Counter[str]()
        for form, reply_kind, times_seen in zip(
            forms, answers.forms, times, strict=True
        ):
            skips[form.skip] += times_seen
            for word in form.issues:
                counts[word] += times_seen
            self._open += times_seen * (reply_kind.skip == EXCLUDED_EARLIER)
        del skips[""]
        return Decisions(
            model=model,
            replicate=replicate,
            outcome=placed([form.outcome for form in forms], MISSING),
            p=p,
            stage=placed([form.stage for form in forms], -1),
            ended=np.zeros(n, dtype=np.int64),
            latest=placed([form.latest for form in forms], MISSING),
            stages=self._stages,
            reason_code=words([form.reason_code for form in forms]),
            reason=reason,
            issues=words([NOTED.join(form.issues) for form in forms]),
            replies=sum(
                form.replies * times_seen
                for form, times_seen in zip(forms, times, strict=True)
            ),
            skip=dict(+skips),
            counts=dict(+counts),
        )

    def _step(
        self, kind: ReplyKind, stage: int, p: float | None = None, reason: str = ""
    ) -> StageAnswer:
        parsed, score = kind.parsed, p
        if isinstance(parsed, ScreeningJudgement):
            parsed = structs.replace(parsed, p_include=p, reason=reason)
            score = None
        return StageAnswer(
            stage=stage,
            parsed=parsed,
            p=score,
            error=kind.error,
            skip=kind.skip,
            is_open=kind.is_open,
        )

    def _steps(self, rows: Ints) -> Mapping[int, Sequence[StageAnswer]]:
        """Return the steps of each record that has any."""
        answers = self._answers
        steps: dict[int, list[StageAnswer]] = {}
        for row in rows.tolist():
            p = answers.p[row]
            step = self._step(
                answers.forms[answers.kind[row]],
                int(self._stage[row]),
                None if math.isnan(p) else p,
                answers.reasons.get(row, ""),
            )
            steps.setdefault(int(self._at[row]), []).append(step)
        return steps

    def _column(self, model: str, replicate: int, rows: Ints) -> Decisions:
        last, n = len(self._stages) - 1, len(self._screened.records)
        unasked = RecordOutcome(outcome=MISSING, ended=last, latest=MISSING)
        outcomes, skips = [unasked] * n, Counter[str]()
        for at, record_steps in self._steps(rows).items():
            due, has_ended = self._due(record_steps)
            outcomes[at] = combine_stages(due, last, has_ended=has_ended)
            skips.update(filter(None, [outcomes[at].skip]))
            skips[EXCLUDED_EARLIER] += has_ended and due[-1].stage < last
        p = (math.nan if row.p is None else row.p for row in outcomes)
        return Decisions(
            model=model,
            replicate=replicate,
            outcome=np.fromiter((row.outcome for row in outcomes), np.int64, n),
            p=np.fromiter(p, np.float64, n),
            stage=np.fromiter((row.stage for row in outcomes), np.int64, n),
            ended=np.fromiter((row.ended for row in outcomes), np.int64, n),
            latest=np.fromiter((row.latest for row in outcomes), np.int64, n),
            stages=self._stages,
            reason_code=[row.reason_code for row in outcomes],
            reason=[row.reason for row in outcomes],
            issues=[NOTED.join(row.issues) for row in outcomes],
            replies=sum(row.replies for row in outcomes),
            skip=dict(+skips),
            counts=dict(Counter(word for row in outcomes for word in row.issues)),
        )

    def _due(self, steps: Sequence[StageAnswer]) -> tuple[Sequence[StageAnswer], bool]:
        """Return the steps up to the one that ends the record, and whether one does."""
        in_order = sorted(steps, key=lambda step: step.stage)
        if self._answers.imported:
            # the settings are unknown, so a record ends only if nothing follows its
            # exclusion
            return in_order, is_exclusion(in_order[-1])
        due: list[StageAnswer] = []
        has_ended = False
        for step in in_order:
            if has_ended:
                self.stale += step.parsed is not None
                continue
            # it was not requested under settings that have changed since
            self._open += step.skip == EXCLUDED_EARLIER
            due.append(step)
            has_ended = ends_early(self._dataset, self._stages[step.stage], step.parsed)
        before = due[-1]
        is_answered = before.parsed is not None or before.error is not None
        if is_answered and not has_ended and before.stage < len(self._stages) - 1:
            # it is not planned yet, or the run never had such a stage
            self._open += 1
            due.append(StageAnswer(stage=before.stage + 1, is_open=True))
        return due, has_ended
