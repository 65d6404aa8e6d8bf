"""A paper as a whole: what became of it, and its properties, the worst first."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.property_extraction.measuring.fate import COUNTED, Fates
from jobs.property_extraction.measuring.results import Results
from jobs.text import TextColumn, hanging_lines, one_line, plural, shortened, text_table

ROWS = 40
"""Properties that are listed; `score_pr_detailed.csv` has all."""

NAME_CELLS = 58


def paper_lines(results: Results, refno: str) -> Iterator[str]:
    """All of the page but its head."""
    truth = [
        results.dataset.truth[at]
        for at in results.dataset.truth_by_paper.get(refno, ())
    ]
    names = len({row.name for row in truth})
    yield (
        f"truth      {plural(len(truth), 'row')} of "
        f"{plural(names, 'property', 'properties')}"
    )
    for model, column in results.columns.items():
        yield ""
        yield from hanging_lines("", one_line(model))
        yield from _model(column.first.fates, refno)


def _model(fates: Fates, refno: str) -> Iterator[str]:
    outcome = fates.predicted.outcomes.get(refno)
    if refno not in fates.papers:
        why = "" if outcome is None else f": {outcome.state}"
        reason = f", {outcome.reason}" if outcome is not None and outcome.reason else ""
        yield f"  not scored{why}{one_line(reason)}"
        return
    rows = [
        fate
        for row, fate in zip(fates.predictions, fates.fates, strict=True)
        if row.refno == refno
    ]
    apart = {
        fate: rows.count(fate) for fate in dict.fromkeys(rows) if fate not in COUNTED
    }
    others = "".join(
        f", {n:,} {fate.replace('_', ' ')}" for fate, n in sorted(apart.items())
    )
    yield f"  predicted {plural(len(rows), 'row')}{others}"
    groups = sorted(
        (-fn, -fp, name, tp)
        for (paper, name), (tp, fp, fn) in fates.tallies().items()
        if paper == refno
    )
    counts = {
        "tp": [tp for *_, tp in groups],
        "fp": [-fp for _, fp, *_ in groups],
        "fn": [-fn for fn, *_ in groups],
    }
    yield "  " + "  ".join(f"{word.upper()} {sum(n):,}" for word, n in counts.items())
    shown = groups[:ROWS]
    yield from text_table(
        [
            *(
                TextColumn(title=word, cells=[f"{each:,}" for each in n[:ROWS]])
                for word, n in counts.items()
            ),
            TextColumn(
                title="property",
                cells=[
                    shortened(one_line(name), NAME_CELLS) for _, _, name, _ in shown
                ],
                has_words=True,
            ),
        ]
    )
    if groups[ROWS:]:
        yield f"  and {len(groups) - ROWS:,} more, in score_pr_detailed.csv"
