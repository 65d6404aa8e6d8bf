"""A record's whole course: the paper, what was told, every stage, what it came to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jobs.screening.corpus import Text
from jobs.screening.decisions import OUTCOMES
from jobs.screening.explain.criteria import told_lines
from jobs.screening.explain.diagram import UNTITLED
from jobs.screening.explain.replies import reply_lines
from jobs.screening.explain.run import Run
from jobs.screening.explain.selection import Selection
from jobs.screening.measuring.view import UNDECIDED, View
from jobs.screening.validation_set import Record, record_key
from jobs.text import WIDTH, cut, hanging_lines, number, one_line, plural

NO_ABSTRACT = "(no abstract)"

CALLS = ("exclude", "include")
"""By the number of a call."""


def record_lines(run: Run, chosen: Selection, at: int) -> Iterator[str]:
    """The page of one record.

    Args:
        run: that it is explained from.
        chosen: whose page.
        at: its place among all records.
    """
    records = run.records
    paper = records.papers[at]
    key = record_key(chosen.review, paper)
    text = run.paper(paper)
    answers = tuple(run.about_item(key))
    year = "" if text.year is None else f" ({text.year})"
    yield cut(one_line(key), WIDTH)
    title = one_line(run.review_title(chosen.review)) or UNTITLED
    yield from hanging_lines("review     ", title)
    yield from abstract_lines(run.review(chosen.review))
    yield from hanging_lines("paper      ", (one_line(text.title) or UNTITLED) + year)
    yield from abstract_lines(text)
    yield from hanging_lines("truth      ", _truth(run, key, at))
    yield from told_lines(run, chosen.review, answers)
    for model, view in run.views.items():
        yield ""
        yield cut(one_line(model), WIDTH)
        yield f"  {'decision':<10} {_decision(view, at)}"
        for own in run.replicates(model):
            name = f"replicate {own.decisions.replicate}"
            yield f"  {name:<12} {_decision(own, at)}"
        yield f"  {'rank':<10} {_rank(run, view, chosen.review, at)}"
        stated = run.about_item(chosen.review)
        own_answers = (a for a in (*stated, *answers) if a.task.model == model)
        yield from reply_lines(own_answers, imported=run.answers.imported)


def abstract_lines(text: Text) -> Iterator[str]:
    """The whole abstract of a review or paper, so that the two can be compared."""
    yield from hanging_lines(
        "abstract   ", one_line(text.abstract).strip() or NO_ABSTRACT
    )


def _truth(run: Run, key: str, at: int) -> str:
    """What the review made of the paper, as far as anybody knows."""
    record = run.dataset.find(key)
    kind = run.records.kinds[run.records.kind[at]]
    if kind == "included":
        said = "included"
    elif kind == "near-miss":
        said = f"near miss, unjudged{_relations(record)}"
    elif kind == "true-excluded":
        said = f"excluded by the review{_why(record)}"
    elif kind == "random":
        said = "random: neither the review nor a related one includes it"
    else:
        said = "not included; the import says no more"
    if record is not None and record.similarity is not None:
        said += f"; topic similarity {record.similarity:.3f}"
    return said


def _relations(record: Record | None) -> str:
    if record is None:
        return ""
    return (
        f": included by {plural(record.n_links, 'related review')}, which share up to "
        f"{plural(record.n_shared, 'paper')} with this one"
    )


def _why(record: Record | None) -> str:
    if record is None:
        return ""
    near = ", also a near miss" if record.also_near_miss else ""
    code = f", {record.reason_code}" if record.reason_code else ""
    reason = f': "{one_line(record.reason)}"' if record.reason else ""
    return f"{code}{near}{reason}"


def _decision(view: View, at: int) -> str:
    """What it comes to, by which stage, and whether that is right."""
    own, call = view.decisions, int(view.call[at])
    said = OUTCOMES[view.outcome[at]]
    if view.outcome[at] != own.outcome[at]:
        said += f" by the threshold, read as {OUTCOMES[own.outcome[at]]}"
    p = None if np.isnan(own.p[at]) else float(own.p[at])
    stage = f", {own.stages[own.stage[at]]}" if own.stage[at] >= 0 else ""
    code = own.reason_code[at] if own.reason_code else ""
    why = f", {code}" if code else ""
    if call == UNDECIDED:
        return f"{said}, p {number(p, 2)}{stage}{why}: undecided"
    counts = "" if said.startswith(CALLS[call]) else f", counted as {CALLS[call]}"
    worth = "right" if call == view.records.label[at] else "wrong"
    return f"{said}, p {number(p, 2)}{stage}{why}{counts}: {worth}"


def _rank(run: Run, view: View, review: str, at: int) -> str:
    """Its place when a person reads in the model's order."""
    own = run.ranked(view, review)
    rank = int(np.flatnonzero(own.rows == at)[0]) + 1
    found = int(own.label[:rank].sum())
    stand_in = f", by {view.score[at]:g}: it has no p" if view.imputed[at] else ""
    return (
        f"{rank:,} of {len(own.rows):,}{stand_in}; {found:,} of "
        f"{int(own.label.sum()):,} included papers found by there"
    )
