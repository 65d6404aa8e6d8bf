"""What scoring made of each task, for the monitor: one verdict a paper.

A second pass over the answers, made while the verdicts are written, so that none is
held. A paper is right where nothing of it is missed and nothing is made up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from jobs.property_extraction.answered import Extraction, Requoted
from jobs.property_extraction.asking.keys import paper_of
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.importing.told import STAGE
from jobs.property_extraction.measuring.results import Replicate, Results
from jobs.property_extraction.reading import read_extraction, read_requote, read_rows
from jobs.property_extraction.row import Prediction
from jobs.text import plural
from runner.job import Answer, Answers, Task
from runner.messages import ParseFailure, Reply
from runner.scorecard import Verdict

_Paper: TypeAlias = tuple[int, int, int]
"""TP, FP and FN."""

REQUOTE = "requote"

PARSERS: Mapping[
    str,
    Callable[
        [Dataset, Task, Reply],
        Extraction | Requoted | tuple[Prediction, ...] | ParseFailure,
    ],
] = {
    "extract": read_extraction,
    REQUOTE: read_requote,
    STAGE: read_rows,
}
"""By stage: what speaks of papers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """One verdict for each answered task; may be read again."""

    results: Results
    answers: Answers

    def __iter__(self) -> Iterator[Verdict]:
        known = {
            (model, own.replicate): _by_paper(own)
            for model, column in self.results.columns.items()
            for own in column.replicates
        }
        for family in self.answers.families():
            for answer in family:
                task = answer.task
                # a consensus is no replicate's own
                papers = known.get((task.model, task.replicate), {})
                own = _verdict(self.results.dataset, answer, papers)
                if own is not None:
                    yield own


def _by_paper(own: Replicate) -> Mapping[str, _Paper]:
    cells = own.counts.by_paper()
    return {
        refno: (int(tp), int(fp), int(fn))
        for refno, tp, fp, fn in zip(
            own.counts.papers, cells.tp, cells.fp, cells.fn, strict=True
        )
    }


def _verdict(
    dataset: Dataset, answer: Answer, papers: Mapping[str, _Paper]
) -> Verdict | None:
    """None of a task that has no reply."""
    task = answer.task
    if answer.chat is None:
        return None
    # a file names whole papers, whatever signs their names hold
    refno, piece = (task.key, None) if task.stage == STAGE else paper_of(task.key)
    value, rule = _read(dataset, task, answer.chat)
    counts = None if piece or task.stage == REQUOTE else papers.get(refno)
    if counts is not None:
        rule = ", ".join(
            filter(None, ("TP {:,} FP {:,} FN {:,}".format(*counts), rule))
        )
    return Verdict(
        task=task.number,
        model=task.model,
        stage=task.stage,
        key=task.key,
        value=value,
        expected=plural(len(dataset.truth_by_paper.get(refno, ())), "row"),
        correct=None if counts is None else not (counts[1] or counts[2]),
        rule=rule,
    )


def _read(dataset: Dataset, task: Task, reply: Reply) -> tuple[str, str]:
    """What a reply says, and what was left of it or why it says nothing."""
    match PARSERS[task.stage](dataset, task, reply):
        case Extraction() as found:
            left = {"dropped": found.dropped, "cut": found.cut}
            notes = [f"{n:,} {name}" for name, n in left.items() if n]
            notes += ["cut short"] if found.is_partial else []
            return plural(len(found.rows), "row"), ", ".join(notes)
        case Requoted(quotes=quotes, withdrawn=withdrawn):
            return f"{plural(len(quotes), 'quote')}, {len(withdrawn):,} withdrawn", ""
        case ParseFailure(reason=reason):
            return "", reason
        case rows:
            return plural(len(rows), "row"), ""
