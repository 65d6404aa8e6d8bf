"""`siftlog explain RUN NAME` of a run that verified names: who said what, and why."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.property_extraction.aliases.verdicts import Names
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.inputs.candidates import Pair
from jobs.property_extraction.verifying.verification import (
    SAID,
    Column,
    Verification,
    verification_of,
)
from jobs.text import clip, hanging_lines, number, one_line, plural
from runner.errors import UsageError
from runner.job import Answers

SHOWN = 60
"""Characters of an unknown item that its error repeats."""


def explained(dataset: Dataset, answers: Answers | None, items: tuple[str, ...]) -> str:
    """A page for each name.

    Args:
        dataset: the pairs.
        answers: those of a run; None before any.
        items: predicted names, or names of the truth.

    Raises:
        UsageError: an item is in no pair; or there is no run yet.
    """
    if answers is None:
        raise UsageError("Nobody was asked yet: name a run, not the job.")
    verification = verification_of(dataset, answers)
    pages = ("\n".join(_lines(verification, item)) for item in dict.fromkeys(items))
    return "\n\n".join(pages) + "\n"


def _lines(verification: Verification, item: str) -> Iterator[str]:
    found = [own for own in verification.pairs if item in (own.pred_name, own.gt_name)]
    if not found:
        raise UsageError(
            f"No pair has the name {clip(item, SHOWN)!r}; verification.csv lists the "
            "pairs."
        )
    yield from hanging_lines("", one_line(item))
    for pair in found:
        yield ""
        yield from _pair(verification, pair)


def _pair(verification: Verification, pair: Pair) -> Iterator[str]:
    names = (pair.pred_name, pair.gt_name)
    yield from hanging_lines(
        "", f"{one_line(pair.pred_name)} => {one_line(pair.gt_name)}"
    )
    yield (
        f"  seen       in {plural(pair.count, 'paper')}, similarity "
        f"{number(pair.avg_sim, 3)}, equal values {pair.value_hits:,}"
    )
    if names in verification.equal:
        yield "  ruling     match: the names are equal but for case; nobody was asked"
        return
    ruling = verification.rulings.get(names)
    if ruling is None:
        yield "  ruling     none: it is not answered"
    else:
        votes = plural(ruling.votes, "vote")
        yield f"  ruling     {SAID[ruling.is_match]}, {votes} for"
    for column in verification.columns:
        yield from _said(column, names)


def _said(column: Column, names: Names) -> Iterator[str]:
    for own in column.verdicts:
        if (own.pred_name, own.gt_name) == names:
            yield from hanging_lines("  asked      ", one_line(column.model))
            said = "not read" if own.is_match is None else SAID[own.is_match]
            yield from hanging_lines("             ", f"{said}: {one_line(own.reason)}")
