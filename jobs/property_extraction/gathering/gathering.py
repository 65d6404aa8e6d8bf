"""One pass over a run's answers: the predictions of each model and replicate."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.gathering.predicted import (
    Outcome,
    Predicted,
    Sheet,
    State,
)
from jobs.property_extraction.importing.told import STAGE, parse_rows
from jobs.property_extraction.row import Prediction
from runner.job import Answers
from runner.reply import ParseFailure
from runner.task import Answer


def sheet_of(dataset: Dataset, answers: Answers) -> Sheet:
    """Everything that the answers say, by the present rules."""
    columns = {
        (model, replicate): _Column()
        for model in answers.models
        for replicate in range(1, answers.replicates + 1)
    }
    for family in answers.families():
        for answer in family:
            own = columns.get((answer.task.model, answer.task.replicate))
            if own is not None:
                own.add(answer)
    return Sheet(
        models=answers.models,
        replicates=answers.replicates,
        imported=answers.imported,
        predicted=tuple(
            own.predicted(model, replicate)
            for (model, replicate), own in columns.items()
        ),
    )


@dataclass
class _Column:
    """One replicate of one model, filled answer by answer."""

    rows: list[Prediction] = field(default_factory=list)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, answer: Answer) -> None:
        if answer.task.stage == STAGE:
            self._imported(answer)

    def _imported(self, answer: Answer) -> None:
        refno, reply = answer.task.key, answer.chat
        if reply is None:
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
        return Predicted(
            model=model,
            replicate=replicate,
            predictions=tuple(sorted(self.rows, key=lambda row: row.row)),
            outcomes=self.outcomes,
            counts=dict(sorted(self.counts.items())),
        )
