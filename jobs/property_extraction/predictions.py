"""Collects the predictions of each model in one pass over the answers of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from jobs.kit.text_format import plural
from jobs.property_extraction import plan
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.parsing import ParsedExtraction, ParsedQuotes
from jobs.property_extraction.rows import (
    ROWS_STAGE,
    UNREADABLE,
    Prediction,
    count_repeated,
    parse_rows,
    rows_of_paper,
)
from jobs.property_extraction.tasks import paper_of
from runner.errors import UsageError
from runner.job import Answer, Answers
from runner.messages import ParseFailure


class PaperState(StrEnum):
    """The outcome of a paper."""

    SCORED = "scored"
    FAILED = "failed"  #: no reply, or an unparsed one
    SKIPPED = "skipped"
    OPEN = "open"  #: the run is unfinished


@dataclass(frozen=True, slots=True)
class PaperOutcome:
    """The outcome of a paper, and its reason."""

    state: PaperState
    reason: str = ""  #: of a skip or failure


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatePredictions:
    """One replicate of one model."""

    model: str
    replicate: int
    predictions: tuple[Prediction, ...]  #: by row
    outcomes: Mapping[str, PaperOutcome] = field(default_factory=dict)
    """Outcomes of requested papers; an import only knows those with rows."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Numbers of other entries in replies, such as `dropped`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPredictions:
    """The results of all answers of a run, by the current rules."""

    models: tuple[str, ...]
    replicates: int
    imported: bool
    predicted: tuple[ReplicatePredictions, ...]  #: by model, then replicate
    missing: int = 0  #: tasks of the current plan that the run does not have
    stale: int = 0  #: answers that the current plan no longer needs

    def of(self, model: str) -> tuple[ReplicatePredictions, ...]:
        """Return a model's replicates."""
        return tuple(
            replicate for replicate in self.predicted if replicate.model == model
        )


def run_predictions(dataset: PropertyDataset, answers: Answers) -> RunPredictions:
    """Collect the results of all answers, by the current rules."""
    planned = {
        spec.key: spec.skip for spec in (() if answers.imported else plan.plan(dataset))
    }
    due = Counter(paper_of(key)[0] for key in planned)
    columns = {
        (model, replicate): _ReplicateAnswers(dataset=dataset, planned=planned, due=due)
        for model in answers.models
        for replicate in range(1, answers.replicates + 1)
    }
    stale = 0
    for family in answers.families():
        for answer in family:
            column = columns.get((answer.task.model, answer.task.replicate))
            if column is None or not column.add(answer):
                stale += answer.reply is not None
    answered_models = {model for (model, _), c in columns.items() if c.outcomes}
    predicted = tuple(
        column.predicted(model, replicate)
        for (model, replicate), column in columns.items()
        # imported models may have different numbers of replicates
        if column.outcomes or not (answers.imported and model in answered_models)
    )
    return RunPredictions(
        models=answers.models,
        replicates=answers.replicates,
        imported=answers.imported,
        predicted=predicted,
        missing=sum(column.missing for column in columns.values()),
        stale=stale,
    )


@dataclass
class _PaperAnswers:
    """The answers about one paper, by their stage."""

    answered: int = 0  #: number of chunks with an outcome
    pieces: dict[int, ParsedExtraction] = field(default_factory=dict)
    failed: str = ""
    skipped: str = ""
    is_open: bool = False
    requote_context: str | None = None  #: context of the second request
    requoted: ParsedQuotes | None = None

    @property
    def outcome(self) -> PaperOutcome:
        """Outcome of the paper; one missing chunk decides for all."""
        if self.is_open:
            return PaperOutcome(PaperState.OPEN)
        if self.failed:
            return PaperOutcome(PaperState.FAILED, self.failed)
        if self.skipped:
            return PaperOutcome(PaperState.SKIPPED, self.skipped)
        return PaperOutcome(PaperState.SCORED)


@dataclass
class _ReplicateAnswers:
    """One replicate of one model, filled answer by answer."""

    dataset: PropertyDataset
    planned: Mapping[str, str | None]
    """Keys of chunks, with the reason of a skip; empty for an import."""
    due: Mapping[str, int]  #: number of chunks of each paper
    rows: list[Prediction] = field(default_factory=list)  #: of an import
    outcomes: dict[str, PaperOutcome] = field(default_factory=dict)
    papers: dict[str, _PaperAnswers] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    answered: set[str] = field(default_factory=set)  #: keys of the plan

    @property
    def missing(self) -> int:
        """Number of missing tasks."""
        return len(self.planned) - len(self.answered)

    def add(self, answer: Answer) -> bool:
        """Add an answer; return whether the plan still needs it."""
        match answer.task.stage:
            case "extract" if answer.task.key in self.planned:
                self._extracted(answer)
            case "requote" if self.dataset.settings.requote:
                self._requoted(answer)
            case stage if stage == ROWS_STAGE:
                self._imported(answer)
            case _:
                return False
        return True

    def _extracted(self, answer: Answer) -> None:
        refno, number = paper_of(answer.task.key)
        paper = self.papers.setdefault(refno, _PaperAnswers())
        if answer.is_open:
            paper.is_open = True
            return
        paper.answered += 1
        self.answered.add(answer.task.key)
        if answer.skip is not None:
            paper.skipped = answer.skip
            return
        if answer.chat is None:
            paper.failed = answer.error or "failed"
            return
        match plan.read_extraction(self.dataset, answer.task, answer.chat):
            case ParseFailure(reason=reason):
                paper.failed = reason
            case extraction:
                paper.pieces[number or 1] = extraction
                self.counts["dropped"] += extraction.dropped
                self.counts["cut"] += extraction.cut

    def _requoted(self, answer: Answer) -> None:
        refno, _ = paper_of(answer.task.key)
        paper = self.papers.setdefault(refno, _PaperAnswers())
        paper.requote_context = answer.task.context
        if answer.chat is not None:
            quotes = plan.read_requote(self.dataset, answer.task, answer.chat)
            paper.requoted = None if isinstance(quotes, ParseFailure) else quotes

    def _imported(self, answer: Answer) -> None:
        refno, reply = answer.task.key, answer.chat
        if reply is not None:
            match parse_rows(refno, reply):
                case ParseFailure(reason=reason):
                    self.outcomes[refno] = PaperOutcome(PaperState.FAILED, reason)
                case rows:
                    self.outcomes[refno] = PaperOutcome(PaperState.SCORED)
                    stated_rows = [row for row in rows if row.value]
                    self.counts["blank"] += len(rows) - len(stated_rows)
                    self.rows += stated_rows
        elif answer.skip is not None:
            self.outcomes[refno] = PaperOutcome(PaperState.SKIPPED, answer.skip)
        elif answer.error not in {None, UNREADABLE}:
            self.outcomes[refno] = PaperOutcome(PaperState.FAILED, answer.error or "")

    def _skip_unsent(self) -> None:
        """Skip tasks that are never sent, such as papers of a later truth."""
        for key, skip in self.planned.items():
            if skip is not None and key not in self.answered:
                paper = self.papers.setdefault(paper_of(key)[0], _PaperAnswers())
                paper.skipped = skip
                paper.answered += 1
                self.answered.add(key)

    def predicted(self, model: str, replicate: int) -> ReplicatePredictions:
        """Return the replicate's predictions, papers ascending."""
        rows = sorted(self.rows, key=lambda row: row.row)
        self._skip_unsent()
        for refno, pieces in self.due.items():
            paper = self.papers.setdefault(refno, _PaperAnswers())
            paper.is_open |= paper.answered < pieces
        for refno, paper in sorted(self.papers.items()):
            self.outcomes[refno] = paper.outcome
            if paper.outcome.state is PaperState.SCORED:
                parts = [paper.pieces[number] for number in sorted(paper.pieces)]
                self.counts["partial"] += any(part.is_partial for part in parts)
                self.counts["parted"] += len(parts) > 1
                self.counts["repeated"] += count_repeated(parts)
                rows += rows_of_paper(
                    refno,
                    parts,
                    first=len(rows) + 1,
                    requote_rows=plan.rows_of_context(paper.requote_context),
                    requoted=paper.requoted,
                    paper=self.dataset.papers.paper(refno),
                )
        return ReplicatePredictions(
            model=model,
            replicate=replicate,
            predictions=tuple(rows),
            outcomes=dict(sorted(self.outcomes.items())),
            counts=dict(sorted(self.counts.items())),
        )


def consensus(
    replicates: Sequence[ReplicatePredictions], least: int
) -> ReplicatePredictions:
    """Combine replicates into the rows that at least *least* of them found.

    Rows with the same paper, property, value and unit are one, of which the first is
    used. A paper counts if at least *least* replicates read it; else its first failure
    counts.

    Args:
        replicates: of one model.
        least: replicates that must have found a row.

    Raises:
        UsageError: there are fewer.
    """
    if len(replicates) < least:
        raise UsageError(
            f"consensus={least} needs rows that {least} replicates found, and "
            f"{replicates[0].model} has {plural(len(replicates), 'replicate')} (ask "
            f"with --replicates {least}, or score with --set consensus=0)."
        )
    counts: Counter[tuple[str, ...]] = Counter()
    first: dict[tuple[str, ...], Prediction] = {}
    for replicate in replicates:
        for key, row in {
            _row_key(row): row for row in reversed(replicate.predictions)
        }.items():
            counts[key] += 1
            first.setdefault(key, row)
    return ReplicatePredictions(
        model=replicates[0].model,
        replicate=0,
        predictions=tuple(
            sorted(
                (row for key, row in first.items() if counts[key] >= least),
                key=lambda row: row.row,
            )
        ),
        outcomes={
            refno: _consensus_outcome(
                [r.outcomes.get(refno) for r in replicates], least
            )
            for refno in sorted({refno for r in replicates for refno in r.outcomes})
        },
        counts=dict(
            sum((Counter(replicate.counts) for replicate in replicates), Counter())
        ),
    )


def _row_key(row: Prediction) -> tuple[str, ...]:
    return (row.refno, row.name, row.value, row.unit)


def _consensus_outcome(
    outcomes: Sequence[PaperOutcome | None], least: int
) -> PaperOutcome:
    every = [outcome for outcome in outcomes if outcome is not None]
    read = [outcome for outcome in every if outcome.state is PaperState.SCORED]
    others = [outcome for outcome in every if outcome.state is not PaperState.SCORED]
    return read[0] if len(read) >= least or not others else others[0]
