"""The second pass over the answers: everything that has a line of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.paper_investigation.artifacts import lines
from jobs.paper_investigation.dataset import Dataset
from jobs.paper_investigation.marking.families import records
from jobs.paper_investigation.marking.judging import expected
from jobs.paper_investigation.marking.paper import MarkedPaper, mark, read
from jobs.paper_investigation.parsing import VariantList
from jobs.paper_investigation.record import Mode
from jobs.paper_investigation.scoring.tables import SHEETS, Sources, rows
from jobs.slugs import slugs
from runner.job import Answers
from runner.scorecard import Detail, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """Verdicts, table rows and file lines of a scoring, made while they are read."""

    dataset: Dataset
    answers: Answers
    mode: Mode
    sources: Sources

    def __iter__(self) -> Iterator[Detail]:
        sheets = [sheet for sheet in SHEETS if self.mode in sheet.modes]
        names = slugs(self.answers.models)
        is_recorded = self.dataset.settings.profile == "clinpgx-qa"
        for record in records(self.dataset, self.answers):
            paper = mark(read(record, self.sources.lens.rules), self.sources.lens)
            yield from verdicts(paper)
            yield from rows(paper, sheets, self.sources)
            yield from lines(paper, names[record.model], is_recorded=is_recorded)


def verdicts(paper: MarkedPaper) -> Iterator[Verdict]:
    """What was read from each reply about a paper, and whether it is right."""
    record, listed = paper.record, paper.listed
    if record.task is not None and listed is not None:
        rule = listed.rule if isinstance(listed, VariantList) else listed.reason
        yield Verdict(
            task=record.task,
            model=record.model,
            stage="extract",
            key=record.pmcid,
            value=", ".join((paper.predicted or {}).values()),
            expected=", ".join(paper.truth.values()),
            correct=None,
            rule=rule,
        )
    for marked in (*paper.questions, *paper.aside):
        item, judgement = marked.item, marked.judgement
        if judgement is not None and item.task is not None:
            yield Verdict(
                task=item.task,
                model=record.model,
                stage=item.stage,
                key=item.key,
                value=judgement.value,
                expected=expected(item.question),
                correct=judgement.right,
                rule=judgement.rule,
            )
