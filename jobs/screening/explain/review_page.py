"""A review in short: what each model missed, and what it wrongly included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from jobs.metrics.columns import Bools
from jobs.screening.decisions import OUTCOMES
from jobs.screening.explain.criteria import told_lines
from jobs.screening.explain.diagram import UNTITLED
from jobs.screening.explain.run import Run
from jobs.screening.measuring.ranking import Ranked
from jobs.screening.measuring.view import View
from jobs.screening.validation_set import record_key
from jobs.text import (
    NONE,
    WIDTH,
    TextColumn,
    cut,
    hanging_lines,
    number,
    one_line,
    plural,
    text_table,
)
from runner.job import Answer

LISTED = 20
"""Records of a table; the files of a scoring hold all."""


def review_lines(run: Run, review: str) -> Iterator[str]:
    """The page of one review."""
    records = run.records
    place = records.reviews.index(review)
    mine = np.flatnonzero(records.review == place).tolist()
    kinds = [records.kinds[at] for at in records.kind[mine].tolist()]
    shown = ", ".join(
        f"{kinds.count(kind):,} {kind}" for kind in records.kinds if kind in kinds
    )
    yield cut(one_line(review), WIDTH)
    title = one_line(run.review_title(review)) or UNTITLED
    yield from hanging_lines("review     ", title)
    yield from hanging_lines("records    ", f"{len(mine):,}: {shown}")
    yield from told_lines(run, review, _of_records(run, review, mine))
    for model, view in run.views.items():
        yield ""
        yield cut(one_line(model), WIDTH)
        yield from _of_model(run, view, run.ranked(view, review))
    yield ""
    if "near-miss" in kinds:
        yield "Near misses are unjudged: a model that includes one may be right."
    first = record_key(review, records.papers[mine[0]])
    yield cut(f"Name a record for its whole course, such as {one_line(first)}.", WIDTH)


def _of_records(run: Run, review: str, mine: Sequence[int]) -> Iterator[Answer]:
    """The answers about the records of a review."""
    keys = {record_key(review, run.records.papers[at]) for at in mine}
    for family in run.answers.families():
        yield from (answer for answer in family if answer.task.key in keys)


def _of_model(run: Run, view: View, own: Ranked) -> Iterator[str]:
    outcomes = [OUTCOMES[outcome] for outcome in view.outcome[own.rows].tolist()]
    counts = [f"{outcomes.count(name):,} {name}" for name in OUTCOMES]
    said = ", ".join(count for count in counts if not count.startswith("0 "))
    yield from hanging_lines("  decisions  ", said)
    calls = view.call[own.rows]
    positives = plural(int(own.label.sum()), "included paper")
    # what ranks lowest was excluded most surely
    missed = _places(own.label & (calls == 0))[::-1]
    yield f"  missed     {len(missed):,} of {positives}{_order(missed)}"
    yield from _table(run, view, own, missed)
    negatives = plural(int((~own.label).sum()), "negative")
    wrong = _places(~own.label & (calls == 1))
    yield f"  included   wrongly {len(wrong):,} of {negatives}{_order(wrong)}"
    yield from _table(run, view, own, wrong)


def _places(chosen: Bools) -> list[int]:
    """Where a ranked review has something, from 0."""
    found: list[int] = np.flatnonzero(chosen).tolist()
    return found


def _order(places: Sequence[int]) -> str:
    return ", the surest first" if len(places) > 1 else ""


def _table(run: Run, view: View, own: Ranked, places: Sequence[int]) -> Iterator[str]:
    if not places:
        return
    records, said = view.records, view.decisions
    shown = places[:LISTED]
    rows = own.rows[shown].tolist()
    papers = [records.papers[at] for at in rows]
    is_staged = len(said.stages) > 1
    texts = {
        "kind": [
            "" if records.label[at] else records.kinds[records.kind[at]] for at in rows
        ],
        "stage": [said.stages[said.stage[at]] if is_staged else "" for at in rows],
        "reason": [said.reason_code[at] if said.reason_code else "" for at in rows],
        "title": [run.paper(paper).title for paper in papers],
    }
    yield from text_table(
        [
            _words("paper", papers),
            TextColumn(title="p", cells=[number(float(said.p[at]), 2) for at in rows]),
            TextColumn(title="rank", cells=[f"{place + 1:,}" for place in shown]),
            # what says nothing leaves its room to the others
            *(_words(title, cells) for title, cells in texts.items() if any(cells)),
        ],
        indent="    ",
    )
    if places[LISTED:]:
        yield f"    and {len(places) - LISTED:,} more"


def _words(title: str, cells: Sequence[str]) -> TextColumn:
    shown = [one_line(cell) or NONE for cell in cells]
    return TextColumn(title=title, cells=shown, has_words=True)
