"""Collects the predictions of each model in one pass over the answers of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from jobs.property_extraction import plan
from jobs.property_extraction import plan as asking
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
from jobs.text import plural
from runner.errors import UsageError
from runner.job import Answer, Answers
from runner.messages import ParseFailure


class PaperState(StrEnum):
    """What became of a paper."""

    SCORED = "scored"
    FAILED = "failed"  #: no reply, or none that can be read
    SKIPPED = "skipped"
    OPEN = "open"  #: the run is unfinished


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperOutcome:
    """What became of a paper, and why."""

    state: PaperState
    reason: str = ""  #: of a skip or failure


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatePredictions:
    """One replicate of one model."""

    model: str
    replicate: int
    predictions: tuple[Prediction, ...]  #: by row
    outcomes: Mapping[str, PaperOutcome] = field(default_factory=dict)
    """Of papers that were asked about; an import knows only those it has rows of."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What its replies held beside rows, such as `dropped`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPredictions:
    """All that the answers of a run say, by the present rules."""

    models: tuple[str, ...]
    replicates: int
    imported: bool
    predicted: tuple[ReplicatePredictions, ...]  #: by model, then replicate
    missing: int = 0  #: tasks that the plan asks for and the run has not
    stale: int = 0  #: answers that the plan no longer asks for

    def of(self, model: str) -> tuple[ReplicatePredictions, ...]:
        """A model's replicates."""
        return tuple(own for own in self.predicted if own.model == model)


def run_predictions(dataset: PropertyDataset, answers: Answers) -> RunPredictions:
    """Everything that the answers say, by the present rules."""
    planned = frozenset(
        () if answers.imported else (spec.key for spec in plan.plan(dataset))
    )
    due = Counter(paper_of(key)[0] for key in planned)
    columns = {
        (model, replicate): _ReplicateAnswers(dataset=dataset, planned=planned, due=due)
        for model in answers.models
        for replicate in range(1, answers.replicates + 1)
    }
    stale = 0
    for family in answers.families():
        for answer in family:
            own = columns.get((answer.task.model, answer.task.replicate))
            if own is None or not own.add(answer):
                stale += answer.reply is not None
    told = {model for (model, _), own in columns.items() if own.outcomes}
    predicted = tuple(
        own.predicted(model, replicate)
        for (model, replicate), own in columns.items()
        # of imported models each brings as many replicates as it has
        if own.outcomes or not (answers.imported and model in told)
    )
    return RunPredictions(
        models=answers.models,
        replicates=answers.replicates,
        imported=answers.imported,
        predicted=predicted,
        missing=sum(own.missing for own in columns.values()),
        stale=stale,
    )


@dataclass
class _PaperAnswers:
    """The answers about one paper, by their stage."""

    answered: int = 0  #: pieces that have an outcome
    pieces: dict[int, ParsedExtraction] = field(default_factory=dict)
    failed: str = ""
    skipped: str = ""
    is_open: bool = False
    asked: str | None = None  #: context of the second request
    requoted: ParsedQuotes | None = None

    @property
    def outcome(self) -> PaperOutcome:
        """What became of it: one piece that is lacking decides for all."""
        if self.is_open:
            return PaperOutcome(state=PaperState.OPEN)
        if self.failed:
            return PaperOutcome(state=PaperState.FAILED, reason=self.failed)
        if self.skipped:
            return PaperOutcome(state=PaperState.SKIPPED, reason=self.skipped)
        return PaperOutcome(state=PaperState.SCORED)


@dataclass
class _ReplicateAnswers:
    """One replicate of one model, filled answer by answer."""

    dataset: PropertyDataset
    planned: Collection[str]  #: keys of pieces; an import has none
    due: Mapping[str, int]  #: pieces of each paper
    rows: list[Prediction] = field(default_factory=list)  #: of an import
    outcomes: dict[str, PaperOutcome] = field(default_factory=dict)
    papers: dict[str, _PaperAnswers] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def missing(self) -> int:
        """Tasks that are due and not there."""
        return len(self.planned) - sum(own.answered for own in self.papers.values())

    def add(self, answer: Answer) -> bool:
        """Take in an answer; False: the plan no longer asks for it."""
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
        own = self.papers.setdefault(refno, _PaperAnswers())
        if answer.is_open:
            own.is_open = True
            return
        own.answered += 1
        if answer.skip is not None:
            own.skipped = answer.skip
            return
        if answer.chat is None:
            own.failed = answer.error or "failed"
            return
        match plan.read_extraction(self.dataset, answer.task, answer.chat):
            case ParseFailure(reason=reason):
                own.failed = reason
            case found:
                own.pieces[number or 1] = found
                self.counts["dropped"] += found.dropped
                self.counts["cut"] += found.cut

    def _requoted(self, answer: Answer) -> None:
        refno, _ = paper_of(answer.task.key)
        own = self.papers.setdefault(refno, _PaperAnswers())
        own.asked = answer.task.context
        if answer.chat is not None:
            found = plan.read_requote(self.dataset, answer.task, answer.chat)
            own.requoted = None if isinstance(found, ParseFailure) else found

    def _imported(self, answer: Answer) -> None:
        refno, reply = answer.task.key, answer.chat
        if reply is None:
            if answer.skip is not None:
                self.outcomes[refno] = PaperOutcome(
                    state=PaperState.SKIPPED, reason=answer.skip
                )
            elif answer.error not in {None, UNREADABLE}:
                reason = answer.error or ""
                self.outcomes[refno] = PaperOutcome(
                    state=PaperState.FAILED, reason=reason
                )
            return
        match parse_rows(refno, reply):
            case ParseFailure(reason=reason):
                self.outcomes[refno] = PaperOutcome(
                    state=PaperState.FAILED, reason=reason
                )
            case rows:
                self.outcomes[refno] = PaperOutcome(state=PaperState.SCORED)
                kept = [row for row in rows if row.value]
                self.counts["blank"] += len(rows) - len(kept)
                self.rows += kept

    def predicted(self, model: str, replicate: int) -> ReplicatePredictions:
        """All of it, papers ascending."""
        rows = sorted(self.rows, key=lambda row: row.row)
        for refno, pieces in self.due.items():
            own = self.papers.setdefault(refno, _PaperAnswers())
            own.is_open |= own.answered < pieces
        for refno, own in sorted(self.papers.items()):
            self.outcomes[refno] = own.outcome
            if own.outcome.state is PaperState.SCORED:
                parts = [own.pieces[number] for number in sorted(own.pieces)]
                self.counts["partial"] += any(each.is_partial for each in parts)
                self.counts["parted"] += len(parts) > 1
                self.counts["repeated"] += count_repeated(parts)
                rows += rows_of_paper(
                    refno,
                    parts,
                    first=len(rows) + 1,
                    asked=asking.rows_of_context(own.asked),
                    requoted=own.requoted,
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
    """One column of what at least so many replicates found.

    Rows are one where paper, property, value and unit are; the first one stands. A
    paper counts where at least so many replicates read it; else its first failure does.

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
    found: Counter[tuple[str, ...]] = Counter()
    first: dict[tuple[str, ...], Prediction] = {}
    for own in replicates:
        for key, row in {
            _row_key(row): row for row in reversed(own.predictions)
        }.items():
            found[key] += 1
            first.setdefault(key, row)
    return ReplicatePredictions(
        model=replicates[0].model,
        replicate=0,
        predictions=tuple(
            sorted(
                (row for key, row in first.items() if found[key] >= least),
                key=lambda row: row.row,
            )
        ),
        outcomes={
            refno: _consensus_outcome(
                [own.outcomes.get(refno) for own in replicates], least
            )
            for refno in sorted({refno for own in replicates for refno in own.outcomes})
        },
        counts=dict(sum((Counter(own.counts) for own in replicates), Counter())),
    )


def _row_key(row: Prediction) -> tuple[str, ...]:
    return (row.refno, row.name, row.value, row.unit)


def _consensus_outcome(
    found: Sequence[PaperOutcome | None], least: int
) -> PaperOutcome:
    read = [own for own in found if own is not None and own.state is PaperState.SCORED]
    others = [
        own for own in found if own is not None and own.state is not PaperState.SCORED
    ]
    return read[0] if len(read) >= least or not others else others[0]
