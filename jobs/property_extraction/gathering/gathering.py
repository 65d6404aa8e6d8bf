"""One pass over a run's answers: the predictions of each model and replicate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from jobs.property_extraction import reading
from jobs.property_extraction.answered import Extraction, Requoted
from jobs.property_extraction.asking import plan
from jobs.property_extraction.asking import request as asking
from jobs.property_extraction.asking.keys import paper_of
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.gathering.predicted import (
    Outcome,
    Predicted,
    Sheet,
    State,
)
from jobs.property_extraction.importing.told import STAGE, UNREADABLE, parse_rows
from jobs.property_extraction.parsing.rows import predictions, repeated
from jobs.property_extraction.row import Prediction
from runner.job import Answer, Answers
from runner.messages import ParseFailure


def sheet_of(dataset: Dataset, answers: Answers) -> Sheet:
    """Everything that the answers say, by the present rules."""
    planned = frozenset(
        () if answers.imported else (spec.key for spec in plan.plan(dataset))
    )
    due = Counter(paper_of(key)[0] for key in planned)
    columns = {
        (model, replicate): _Column(dataset=dataset, planned=planned, due=due)
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
    return Sheet(
        models=answers.models,
        replicates=answers.replicates,
        imported=answers.imported,
        predicted=predicted,
        missing=sum(own.missing for own in columns.values()),
        stale=stale,
    )


@dataclass
class _Paper:
    """The answers about one paper, by their stage."""

    answered: int = 0  #: pieces that have an outcome
    pieces: dict[int, Extraction] = field(default_factory=dict)
    failed: str = ""
    skipped: str = ""
    is_open: bool = False
    asked: str | None = None  #: context of the second request
    requoted: Requoted | None = None

    @property
    def outcome(self) -> Outcome:
        """What became of it: one piece that is lacking decides for all."""
        if self.is_open:
            return Outcome(state=State.OPEN)
        if self.failed:
            return Outcome(state=State.FAILED, reason=self.failed)
        if self.skipped:
            return Outcome(state=State.SKIPPED, reason=self.skipped)
        return Outcome(state=State.SCORED)


@dataclass
class _Column:
    """One replicate of one model, filled answer by answer."""

    dataset: Dataset
    planned: Collection[str]  #: keys of pieces; an import has none
    due: Mapping[str, int]  #: pieces of each paper
    rows: list[Prediction] = field(default_factory=list)  #: of an import
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    papers: dict[str, _Paper] = field(default_factory=dict)
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
            case stage if stage == STAGE:
                self._imported(answer)
            case _:
                return False
        return True

    def _extracted(self, answer: Answer) -> None:
        refno, number = paper_of(answer.task.key)
        own = self.papers.setdefault(refno, _Paper())
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
        match reading.read_extraction(self.dataset, answer.task, answer.chat):
            case ParseFailure(reason=reason):
                own.failed = reason
            case found:
                own.pieces[number or 1] = found
                self.counts["dropped"] += found.dropped
                self.counts["cut"] += found.cut

    def _requoted(self, answer: Answer) -> None:
        refno, _ = paper_of(answer.task.key)
        own = self.papers.setdefault(refno, _Paper())
        own.asked = answer.task.context
        if answer.chat is not None:
            found = reading.read_requote(self.dataset, answer.task, answer.chat)
            own.requoted = None if isinstance(found, ParseFailure) else found

    def _imported(self, answer: Answer) -> None:
        refno, reply = answer.task.key, answer.chat
        if reply is None:
            if answer.skip is not None:
                self.outcomes[refno] = Outcome(state=State.SKIPPED, reason=answer.skip)
            elif answer.error not in {None, UNREADABLE}:
                reason = answer.error or ""
                self.outcomes[refno] = Outcome(state=State.FAILED, reason=reason)
            return
        match parse_rows(refno, reply):
            case ParseFailure(reason=reason):
                self.outcomes[refno] = Outcome(state=State.FAILED, reason=reason)
            case rows:
                self.outcomes[refno] = Outcome(state=State.SCORED)
                kept = [row for row in rows if row.value]
                self.counts["blank"] += len(rows) - len(kept)
                self.rows += kept

    def predicted(self, model: str, replicate: int) -> Predicted:
        """All of it, papers ascending."""
        rows = sorted(self.rows, key=lambda row: row.row)
        for refno, pieces in self.due.items():
            own = self.papers.setdefault(refno, _Paper())
            own.is_open |= own.answered < pieces
        for refno, own in sorted(self.papers.items()):
            self.outcomes[refno] = own.outcome
            if own.outcome.state is State.SCORED:
                parts = [own.pieces[number] for number in sorted(own.pieces)]
                self.counts["partial"] += any(each.is_partial for each in parts)
                self.counts["parted"] += len(parts) > 1
                self.counts["repeated"] += repeated(parts)
                rows += predictions(
                    refno,
                    parts,
                    first=len(rows) + 1,
                    asked=asking.asked(own.asked),
                    requoted=own.requoted,
                    paper=self.dataset.papers.paper(refno),
                )
        return Predicted(
            model=model,
            replicate=replicate,
            predictions=tuple(rows),
            outcomes=dict(sorted(self.outcomes.items())),
            counts=dict(sorted(self.counts.items())),
        )
