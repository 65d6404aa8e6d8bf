"""The page of one property of a paper, model by model."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.property_extraction.explain.group import Group, truth_of
from jobs.property_extraction.explain.sides import (
    edge_lines,
    predicted_lines,
    truth_lines,
    unit_lines,
)
from jobs.property_extraction.measuring.results import Results
from jobs.property_extraction.mismatch.candidates import near
from jobs.property_extraction.rubric import Rubric
from jobs.property_extraction.settings import Matching
from jobs.text import (
    WIDTH,
    TextColumn,
    cut,
    hanging_lines,
    number,
    one_line,
    quoted_lines,
    shortened,
    text_table,
)

NEAR = 3
"""Targets of a wrong name, by spelling; those that values speak for come on top."""
LISTED = 12
"""Near targets, and quotes, that are shown."""
NAME_CELLS = 28

METHODS: dict[Matching, str] = {
    "maximum": "most pairs, then most own names, then the least error",
    "greedy": "each row in file order with the first free one",
}


def group_lines(results: Results, refno: str, name: str) -> Iterator[str]:
    """All of the page but its head."""
    dataset = results.dataset
    groups = [Group.of(results, own, refno, name) for own in results.columns.values()]
    targets = dict.fromkeys(target for own in groups for target in own.targets)
    for target in targets or [name]:
        if target != name:
            yield from hanging_lines("stands for ", one_line(target))
        yield from _rule(dataset.rubric, target)
    if not groups:
        own = truth_of(results, refno, {name})
        yield from truth_lines([dataset.truth[at] for at in own], results.comparer)
    for group in groups:
        yield ""
        yield from hanging_lines("", one_line(group.column.model))
        yield from _group(group)


def _rule(rubric: Rubric, name: str) -> Iterator[str]:
    known = rubric.properties.get(name)
    if known is None:
        yield f"rule       {rubric.kind(name)}: the rubric does not have the name"
        return
    si = f", told in {one_line(known.si)}" if known.si else ""
    yield cut(f"rule       {known.kind}{si}", WIDTH)
    if known.definition:
        yield from hanging_lines("meaning    ", one_line(known.definition))


def _group(group: Group) -> Iterator[str]:
    if not group.predicted and not group.truth:
        yield "  neither side has a row of it in this paper"
        return
    yield from predicted_lines(group)
    yield from truth_lines(group.curated, group.results.comparer)
    if group.predicted and group.truth:
        yield from unit_lines(group)
        yield from edge_lines(group)
        yield from _pairs(group)
    yield from _near(group)
    yield from _quotes(group)


def _pairs(group: Group) -> Iterator[str]:
    method = group.results.dataset.settings.matching
    yield f"  pairing, {method}: {METHODS[method]}"
    found = [f"p{i + 1} = t{j + 1}" for i, j in group.pairs()]
    yield from hanging_lines("    ", ", ".join(found) or "no pair")


def _near(group: Group) -> Iterator[str]:
    """Names that may mean another one, where rows are left on both sides."""
    papers = group.column.mismatches.papers
    found = [
        own
        for paper in papers
        if paper.refno == group.refno
        for own in near(paper, NEAR)
        if own.pred_name != own.gt_name
        and (own.pred_name in group.names or own.gt_name in group.names)
    ]
    found.sort(key=lambda own: (-own.value_hits, -own.similarity, own.pred_name))
    if not found:
        return
    shown = found[:LISTED]
    yield "  near targets: wrong names, and the missed ones that they may mean"
    yield from text_table(
        [
            TextColumn(
                title="similar", cells=[number(own.similarity) for own in shown]
            ),
            TextColumn(title="values", cells=[f"{own.value_hits:,}" for own in shown]),
            *(
                TextColumn(
                    title=title,
                    cells=[shortened(one_line(name), NAME_CELLS) for name in names],
                    has_words=True,
                )
                for title, names in (
                    ("predicted", [own.pred_name for own in shown]),
                    ("missed", [own.gt_name for own in shown]),
                )
            ),
        ],
        indent="    ",
    )
    if found[LISTED:]:
        yield f"    and {len(found) - LISTED:,} more, in alias_candidates.csv"


def _quotes(group: Group) -> Iterator[str]:
    """What each predicted row is about, by itself, and where its quote stands."""
    text = group.results.dataset.papers.paper(group.refno).text
    shown = list(zip(group.predicted, group.stated, strict=True))[:LISTED]
    if shown:
        yield "  quotes"
    for i, (place, row) in enumerate(shown, start=1):
        found, quote = group.column.first.standing[place].quote, row.quote
        where = ""
        if found.start is not None:
            where = f"characters {found.start:,} to {found.end:,} of the paper"
            quote = text[found.start : found.end]
        about = (str(found.level), where, row.material, row.condition, row.flag)
        yield from hanging_lines(
            f"    p{i:<3} ", "; ".join(filter(None, map(one_line, about)))
        )
        if quote:
            yield from quoted_lines(one_line(quote))
