"""A name by itself: what it stands for, who decided so, and what that changes."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.property_extraction.aliases.alias_set import AliasEntry
from jobs.property_extraction.measuring.fate import Fate
from jobs.property_extraction.measuring.results import Results
from jobs.text import (
    TextColumn,
    hanging_lines,
    number,
    one_line,
    plural,
    shortened,
    text_table,
)

NAME_CELLS = 50
LISTED = 10
"""Candidates of a model."""


def alias_lines(results: Results, name: str) -> Iterator[str]:
    """All of the page but its head."""
    dataset = results.dataset
    if name in dataset.canonical:
        yield "name       of truth or rubric: right as it is"
    else:
        yield "name       neither truth nor rubric has it"
    # crossfitted drafts are each model's own
    sets = [column.first.aliases for column in results.columns.values()]
    for each in dict.fromkeys(sets or [dataset.aliases]):
        yield from hanging_lines("alias set  ", f"{each.id} ({each.status_mix})")
    entries = dict.fromkeys(
        entry for each in sets or [dataset.aliases] for entry in each.entries
    )
    own = [entry for entry in entries if entry.pred_name == name]
    for entry in own:
        yield from _entry(results, entry)
    if not own:
        yield "no entry: it stands for itself"
    led = [entry for entry in entries if entry.gt_name == name != entry.pred_name]
    if led:
        yield "stands in for it:"
    for entry in led:
        yield from hanging_lines(f"  {entry.status:<10} ", one_line(entry.shown))
    yield from _candidates(results, name)


def _entry(results: Results, entry: AliasEntry) -> Iterator[str]:
    yield ""
    yield from hanging_lines("=> ", one_line(entry.gt_name))
    if entry.refno is not None:
        yield from hanging_lines("  in       ", one_line(entry.refno))
    asked = f", asked: {', '.join(entry.models)}" if entry.models else ""
    votes = f", {plural(entry.votes, 'vote')}" if entry.votes else ""
    yield from hanging_lines(
        "  status   ", one_line(f"{entry.status} by {entry.source}{votes}{asked}")
    )
    if entry.reason:
        yield from hanging_lines("  reason   ", one_line(entry.reason))
    similar = "" if entry.avg_sim is None else f", similarity {entry.avg_sim:.3f}"
    yield f"  seen     as a candidate in {plural(entry.count, 'paper')}{similar}"
    for model, column in results.columns.items():
        fates = column.first.fates
        rows = [
            place
            for place, renamed in enumerate(fates.renamed)
            if renamed.entry(fates.names[place]) == entry
        ]
        matched = sum(fates.fates[place] is Fate.TP for place in rows)
        papers = len({fates.predictions[place].refno for place in rows})
        effect = (
            f"{plural(len(rows), 'row')} renamed in {plural(papers, 'paper')}, "
            f"{matched:,} matched"
            if rows
            else "no row is renamed by it"
        )
        yield from hanging_lines("  effect   ", f"{one_line(model)}: {effect}")


def _candidates(results: Results, name: str) -> Iterator[str]:
    """What a name that is wrong somewhere may mean."""
    for model, column in results.columns.items():
        found = [
            own
            for own in column.mismatches.candidates
            if own.pred_name == name and own.gt_name != name
        ][:LISTED]
        if not found:
            continue
        yield ""
        yield from hanging_lines("candidates of ", one_line(model))
        yield from text_table(
            [
                TextColumn(title="papers", cells=[f"{own.count:,}" for own in found]),
                TextColumn(
                    title="similar", cells=[number(own.avg_sim) for own in found]
                ),
                TextColumn(
                    title="values", cells=[f"{own.value_hits:,}" for own in found]
                ),
                TextColumn(
                    title="missed name",
                    cells=[
                        shortened(one_line(own.gt_name), NAME_CELLS) for own in found
                    ],
                    has_words=True,
                ),
            ]
        )
