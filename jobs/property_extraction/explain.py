"""`siftlog explain RUN PAPER [NAME]` and `explain RUN NAME`: the pages of a run.

`Paper_1` is a paper. A name after it is that property in the paper; a name before any
paper is asked about as an alias.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from jobs.kit.text_format import (
    NAME_CHARS,
    TextColumn,
    hanging_lines,
    nearest_hint,
    plural,
    text_table,
)
from jobs.property_extraction.aliases.alias_set import AliasEntry
from jobs.property_extraction.caveats import ExcludedRows
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.explain_property import group_lines
from jobs.property_extraction.predictions import RunPredictions, run_predictions
from jobs.property_extraction.results import PropertyResults, measure_run
from jobs.property_extraction.row_outcomes import COUNTED, RowOutcome, RowOutcomes
from runner.errors import UsageError
from runner.job import Answers
from store.document import WIDTH, number
from store.printable import clip, cut, one_line, shortened


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedItem:
    """One page; at least one of both is there."""

    refno: str | None = None
    name: str | None = None


def explained_items(
    items: Iterable[str], papers: Collection[str], names: Collection[str]
) -> tuple[ExplainedItem, ...]:
    """What the items name, each page once.

    Args:
        items: in the order in which they were typed.
        papers: that the truth or a model has.
        names: that the truth, the rubric, an alias or a model has.

    Raises:
        UsageError: an item is neither; says what is near.
    """
    return tuple(dict.fromkeys(_read(items, papers, names)))


def _read(
    items: Iterable[str], papers: Collection[str], names: Collection[str]
) -> Iterator[ExplainedItem]:
    refno, has_page = None, True
    for item in items:
        if item in papers:
            if not has_page:
                yield ExplainedItem(refno=refno)
            refno, has_page = item, False
        elif item in names:
            yield ExplainedItem(refno=refno, name=item)
            has_page = True
        else:
            raise UsageError(_unknown(item, papers, names))
    if not has_page:
        yield ExplainedItem(refno=refno)


def _unknown(item: str, papers: Iterable[str], names: Iterable[str]) -> str:
    near = difflib.get_close_matches(item, sorted({*papers, *names}))
    hint = nearest_hint(near, "name a paper, and a property after it.", repr)
    return f"There is no paper and no property {clip(item, NAME_CHARS)!r}; {hint}"


ROWS = 40
"""Properties that are listed; `score_pr_detailed.csv` has all."""

PAPER_NAME_CELLS = 58


def paper_lines(results: PropertyResults, refno: str) -> Iterator[str]:
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
        yield from _model(column.first.row_outcomes, refno)


def _model(outcomes: RowOutcomes, refno: str) -> Iterator[str]:
    outcome = outcomes.predicted.outcomes.get(refno)
    if refno not in outcomes.papers:
        state = "" if outcome is None else f": {outcome.state}"
        reason = f", {outcome.reason}" if outcome is not None and outcome.reason else ""
        yield f"  not scored{state}{one_line(reason)}"
        return
    rows = [
        row_outcome
        for row, row_outcome in zip(
            outcomes.predictions, outcomes.prediction_outcomes, strict=True
        )
        if row.refno == refno
    ]
    apart = {
        row_outcome: rows.count(row_outcome)
        for row_outcome in dict.fromkeys(rows)
        if row_outcome not in COUNTED
    }
    others = "".join(
        f", {n:,} {row_outcome.replace('_', ' ')}"
        for row_outcome, n in sorted(apart.items())
    )
    yield f"  predicted {plural(len(rows), 'row')}{others}"
    groups = sorted(
        (-fn, -fp, name, tp)
        for (paper, name), (tp, fp, fn) in outcomes.group_counts().items()
        if paper == refno
    )
    counts = {
        "tp": [tp for *_, tp in groups],
        "fp": [-fp for _, fp, *_ in groups],
        "fn": [-fn for fn, *_ in groups],
    }
    yield "  " + "  ".join(f"{word.upper()} {sum(n):,}" for word, n in counts.items())
    listed_groups = groups[:ROWS]
    yield from text_table(
        [
            *(
                TextColumn(title=word, cells=[f"{count:,}" for count in n[:ROWS]])
                for word, n in counts.items()
            ),
            TextColumn(
                title="property",
                cells=[
                    shortened(one_line(name), PAPER_NAME_CELLS)
                    for _, _, name, _ in listed_groups
                ],
                has_words=True,
            ),
        ]
    )
    if groups[ROWS:]:
        yield f"  and {len(groups) - ROWS:,} more, in score_pr_detailed.csv"


ALIAS_NAME_CELLS = 50
MOST_CANDIDATES = 10
"""Candidates of a model."""


def alias_lines(results: PropertyResults, name: str) -> Iterator[str]:
    """All of the page but its head."""
    dataset = results.dataset
    if name in dataset.canonical:
        yield "name       of truth or rubric: right as it is"
    else:
        yield "name       neither truth nor rubric has it"
    # crossfitted drafts are each model's own
    sets = [column.first.aliases for column in results.columns.values()]
    for alias_set in dict.fromkeys(sets or [dataset.aliases]):
        yield from hanging_lines(
            "alias set  ", f"{alias_set.id} ({alias_set.status_mix})"
        )
    entries = dict.fromkeys(
        entry for alias_set in sets or [dataset.aliases] for entry in alias_set.entries
    )
    name_entries = [entry for entry in entries if entry.pred_name == name]
    for entry in name_entries:
        yield from _entry(results, entry)
    if not name_entries:
        yield "no entry: it stands for itself"
    led = [entry for entry in entries if entry.gt_name == name != entry.pred_name]
    if led:
        yield "stands in for it:"
    for entry in led:
        yield from hanging_lines(f"  {entry.status:<10} ", one_line(entry.label))
    yield from _candidates(results, name)


def _entry(results: PropertyResults, entry: AliasEntry) -> Iterator[str]:
    yield ""
    yield from hanging_lines("=> ", one_line(entry.gt_name))
    if entry.refno is not None:
        yield from hanging_lines("  in       ", one_line(entry.refno))
    models = f", asked: {', '.join(entry.models)}" if entry.models else ""
    votes = f", {plural(entry.votes, 'vote')}" if entry.votes else ""
    yield from hanging_lines(
        "  status   ", one_line(f"{entry.status} by {entry.source}{votes}{models}")
    )
    if entry.reason:
        yield from hanging_lines("  reason   ", one_line(entry.reason))
    similar = "" if entry.avg_sim is None else f", similarity {entry.avg_sim:.3f}"
    yield f"  seen     as a candidate in {plural(entry.count, 'paper')}{similar}"
    for model, column in results.columns.items():
        outcomes = column.first.row_outcomes
        rows = [
            index
            for index, renamed in enumerate(outcomes.renamed)
            if renamed.entry(outcomes.names[index]) == entry
        ]
        matched = sum(
            outcomes.prediction_outcomes[index] is RowOutcome.TP for index in rows
        )
        papers = len({outcomes.predictions[index].refno for index in rows})
        effect = (
            f"{plural(len(rows), 'row')} renamed in {plural(papers, 'paper')}, "
            f"{matched:,} matched"
            if rows
            else "no row is renamed by it"
        )
        yield from hanging_lines("  effect   ", f"{one_line(model)}: {effect}")


def _candidates(results: PropertyResults, name: str) -> Iterator[str]:
    """What a name that is wrong somewhere may mean."""
    for model, column in results.columns.items():
        candidates = [
            candidate
            for candidate in column.mismatches.candidates
            if candidate.pred_name == name and candidate.gt_name != name
        ][:MOST_CANDIDATES]
        if not candidates:
            continue
        yield ""
        yield from hanging_lines("candidates of ", one_line(model))
        yield from text_table(
            [
                TextColumn(
                    title="papers",
                    cells=[f"{candidate.count:,}" for candidate in candidates],
                ),
                TextColumn(
                    title="similar",
                    cells=[number(candidate.avg_sim) for candidate in candidates],
                ),
                TextColumn(
                    title="values",
                    cells=[f"{candidate.value_hits:,}" for candidate in candidates],
                ),
                TextColumn(
                    title="missed name",
                    cells=[
                        shortened(one_line(candidate.gt_name), ALIAS_NAME_CELLS)
                        for candidate in candidates
                    ],
                    has_words=True,
                ),
            ]
        )


NO_PREDICTIONS = RunPredictions(models=(), replicates=1, imported=False, predicted=())
"""Of a run that is still to come."""


def explain(
    dataset: PropertyDataset, answers: Answers | None, items: tuple[str, ...]
) -> str:
    """Explain papers, properties of papers, and aliases.

    Args:
        dataset: the inputs.
        answers: those of a run; None before any.
        items: refnos, and names of properties.

    Raises:
        UsageError: an item names nothing in the data or the run.
    """
    # no page has an interval
    settings = dataset.settings.model_copy(update={"boot_b": 0})
    plain = replace(dataset, settings=settings)
    predictions = NO_PREDICTIONS if answers is None else run_predictions(plain, answers)
    results = measure_run(plain, predictions)
    chosen = explained_items(items, _papers(results), _names(results))
    pages = ("\n".join(_lines(results, item)) for item in chosen)
    return "\n\n".join(pages) + "\n"


def _lines(results: PropertyResults, item: ExplainedItem) -> Iterator[str]:
    title = "  ".join(one_line(part) for part in (item.refno, item.name) if part)
    yield cut(title, WIDTH)
    if item.refno is None:
        yield from alias_lines(results, item.name or "")
    elif item.name is None:
        yield from paper_lines(results, item.refno)
    else:
        yield from group_lines(results, item.refno, item.name)
    if item.refno is not None:
        for finding in ExcludedRows.of(results).findings():
            yield from hanging_lines("note: ", finding.message)


def _papers(results: PropertyResults) -> frozenset[str]:
    return frozenset(
        {
            *results.dataset.truth_by_paper,
            *results.dataset.papers,
            *(
                refno
                for replicate in results.predictions.predicted
                for refno in (
                    *replicate.outcomes,
                    *(row.refno for row in replicate.predictions),
                )
            ),
        }
    )


def _names(results: PropertyResults) -> frozenset[str]:
    return frozenset(
        {
            *results.dataset.canonical,
            *(
                row.name
                for replicate in results.predictions.predicted
                for row in replicate.predictions
            ),
            *(
                name
                for entry in results.dataset.aliases.entries
                for name in (entry.pred_name, entry.gt_name)
            ),
        }
    )
