"""`siftlog explain RUN PAPER [NAME]` and `explain RUN NAME`: the pages of a run.

`Paper_1` is a paper. A name after it selects that property in the paper; a name before
any paper is explained as an alias.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from jobs.kit.explain import (
    ItemAnswer,
    closest,
    pages_text,
    passage_of,
    summary_fact,
    unknown_item,
)
from jobs.kit.grounding import ground
from jobs.kit.text_format import listed, plural
from jobs.property_extraction.aliases.alias_set import AliasEntry
from jobs.property_extraction.caveats import ExcludedRows
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.explain_property import group_blocks
from jobs.property_extraction.parsing import ParsedExtraction
from jobs.property_extraction.predictions import RunPredictions, run_predictions
from jobs.property_extraction.results import (
    PropertyResults,
    ScoredReplicate,
    measure_run,
)
from jobs.property_extraction.row_outcomes import COUNTED, RowOutcome, RowOutcomes
from jobs.property_extraction.tasks import paper_of
from runner.job import Answer, Answers, QuotedPassage
from store.document import Block, Fact, Heading, Numbers, TableBlock, Words


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedItem:
    """One page, of a paper, a name or both."""

    refno: str | None = None
    name: str | None = None


def explained_items(
    items: Iterable[str], papers: Collection[str], names: Collection[str]
) -> tuple[ExplainedItem, ...]:
    """Return the pages that the items name, each one once.

    Args:
        items: in the order in which they were typed.
        papers: papers of the truth or a model.
        names: names of the truth, the rubric, an alias or a model.

    Raises:
        UsageError: an item is neither; lists the nearest ones.
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
            near = closest(item, sorted({*papers, *names}))
            raise unknown_item(item, near, kinds=KINDS, otherwise=HINT, quote=repr)
    if not has_page:
        yield ExplainedItem(refno=refno)


KINDS = "paper and no property"
HINT = "name a paper, and a property after it."

ROWS = 40
"""Number of properties in the list; `score_pr_detailed.csv` has all."""

PAPER_NAME_CELLS = 58


def paper_blocks(results: PropertyResults, refno: str) -> Iterator[Block]:
    """Yield the page of a paper without its head."""
    if not results.dataset.has_truth:
        yield f"text       {len(results.dataset.papers.paper(refno).text):,} characters"
        for model, column in results.columns.items():
            yield from ("", Fact("", model, width=0))
            yield from _extracted(column.first, refno)
        return
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
        yield Fact("", model, width=0)
        yield from _model(column.first.row_outcomes, refno)


def _extracted(replicate: ScoredReplicate, refno: str) -> Iterator[Block]:
    """Yield the rows that a model extracted from a paper without a truth."""
    outcomes = replicate.row_outcomes
    if refno not in outcomes.papers:
        yield f"  not read{_paper_state(outcomes, refno)}"
        return
    rows = [
        (
            row.name,
            row.value,
            row.unit or None,
            str(replicate.groundings[at].quote.level),
        )
        for at, row in enumerate(outcomes.predictions)
        if row.refno == refno
    ]
    yield f"  extracted {plural(len(rows), 'row')}"
    columns = (Words("property", 32, keeps_end=True), Words("value", 16), Words("unit"))
    yield TableBlock(
        [*columns, Words("quote")],
        rows[:ROWS],
        total=len(rows),
        rest=", in extracted.csv",
    )


def _paper_state(outcomes: RowOutcomes, refno: str) -> str:
    """Return why a paper has no rows, after a colon."""
    outcome = outcomes.predicted.outcomes.get(refno)
    state = "" if outcome is None else f": {outcome.state}"
    reason = f", {outcome.reason}" if outcome is not None and outcome.reason else ""
    return state + reason


def _model(outcomes: RowOutcomes, refno: str) -> Iterator[Block]:
    if refno not in outcomes.papers:
        yield f"  not scored{_paper_state(outcomes, refno)}"
        return
    pairs = zip(outcomes.predictions, outcomes.prediction_outcomes, strict=True)
    counts = Counter(row_outcome for row, row_outcome in pairs if row.refno == refno)
    others = "".join(
        f", {n:,} {row_outcome.replace('_', ' ')}"
        for row_outcome, n in sorted(counts.items())
        if row_outcome not in COUNTED
    )
    yield f"  predicted {plural(counts.total(), 'row')}{others}"
    rows = [
        (tp, fp, fn, name)
        for (paper, name), (tp, fp, fn) in outcomes.group_counts().items()
        if paper == refno
    ]
    rows.sort(key=lambda row: (-row[2], -row[1], row[3]))
    yield (
        f"  TP {sum(row[0] for row in rows):,}  FP {sum(row[1] for row in rows):,}  "
        f"FN {sum(row[2] for row in rows):,}"
    )
    yield TableBlock(
        [
            Numbers("tp"),
            Numbers("fp"),
            Numbers("fn"),
            Words("property", PAPER_NAME_CELLS, keeps_end=True),
        ],
        rows[:ROWS],
        total=len(rows),
        rest=", in score_pr_detailed.csv",
    )


ENTRY_WIDTH = 9
"""Cells of the label of an entry."""
ALIAS_NAME_CELLS = 50
MOST_CANDIDATES = 10
"""Most candidates per model."""


def alias_blocks(results: PropertyResults, name: str) -> Iterator[Block]:
    """Yield the page of a name without its head."""
    dataset = results.dataset
    if name in dataset.canonical:
        yield "name       canonical (in truth or rubric)"
    else:
        yield "name       neither truth nor rubric has it"
    # crossfitted drafts differ by model
    sets = [column.first.aliases for column in results.columns.values()]
    for alias_set in dict.fromkeys(sets or [dataset.aliases]):
        yield Fact("alias set", f"{alias_set.id} ({alias_set.status_mix})")
    entries = dict.fromkeys(
        entry for alias_set in sets or [dataset.aliases] for entry in alias_set.entries
    )
    name_entries = [entry for entry in entries if entry.pred_name == name]
    for entry in name_entries:
        yield from _entry(results, entry)
    if not name_entries:
        yield "no alias"
    led = [entry for entry in entries if entry.gt_name == name != entry.pred_name]
    if led:
        yield "aliases:"
    for entry in led:
        yield Fact(entry.status, entry.label, indent=2)
    yield from _candidates(results, name)


def _entry(results: PropertyResults, entry: AliasEntry) -> Iterator[Block]:
    yield ""
    yield Fact("=> ", entry.gt_name, width=0)
    yield Fact("in", entry.refno or "", 2, ENTRY_WIDTH)
    models = f", asked: {', '.join(entry.models)}" if entry.models else ""
    votes = f", {plural(entry.votes, 'vote')}" if entry.votes else ""
    status = f"{entry.status} by {entry.source}{votes}{models}"
    yield Fact("status", status, 2, ENTRY_WIDTH)
    yield Fact("reason", entry.reason, 2, ENTRY_WIDTH)
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
        yield Fact("effect", f"{model}: {effect}", 2, ENTRY_WIDTH)


def _candidates(results: PropertyResults, name: str) -> Iterator[Block]:
    """Yield the names that a name without a match may mean."""
    for model, column in results.columns.items():
        candidates = [
            candidate
            for candidate in column.mismatches.candidates
            if candidate.pred_name == name and candidate.gt_name != name
        ][:MOST_CANDIDATES]
        if not candidates:
            continue
        yield ""
        yield Fact("candidates of ", model, width=0)
        yield TableBlock(
            [
                Numbers("papers"),
                Numbers("similar"),
                Numbers("values"),
                Words("missed name", ALIAS_NAME_CELLS, keeps_end=True),
            ],
            [(c.count, c.avg_sim, c.value_hits, c.gt_name) for c in candidates],
        )


NO_PREDICTIONS = RunPredictions(models=(), replicates=1, imported=False, predicted=())
"""Predictions before any run."""


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
    plain = dataset.without_intervals  # no page has intervals
    predictions = NO_PREDICTIONS if answers is None else run_predictions(plain, answers)
    results = measure_run(plain, predictions)
    chosen = explained_items(items, _papers(results), _names(results))
    return pages_text(_page(results, item) for item in chosen)


def _page(results: PropertyResults, item: ExplainedItem) -> Iterator[Block]:
    yield Heading("  ".join(filter(None, (item.refno, item.name))), level=1)
    if item.refno is not None:
        yield _summary(results, item.refno, item.name)
    if item.refno is None:
        yield from alias_blocks(results, item.name or "")
    elif item.name is None:
        yield from paper_blocks(results, item.refno)
    else:
        yield from group_blocks(results, item.refno, item.name)
    if item.refno is not None:
        for finding in ExcludedRows.of(results).findings():
            yield Fact("note: ", finding.message, width=0)


def _summary(results: PropertyResults, refno: str, name: str | None) -> Fact:
    """Return the number of truth rows, and the counts of each model."""
    rows = [
        results.dataset.truth[at]
        for at in results.dataset.truth_by_paper.get(refno, ())
    ]
    n = sum(name in {None, row.name} for row in rows)
    answers = []
    for model, column in results.columns.items():
        outcomes = column.first.row_outcomes
        if not results.dataset.has_truth:
            stated = sum(
                row.refno == refno and name in {None, row.name}
                for row in outcomes.predictions
            )
            answers.append(ItemAnswer(model=model, text=plural(stated, "row")))
            continue
        if refno not in outcomes.papers:
            answers.append(ItemAnswer(model=model, text="not scored"))
            continue
        counts = [
            count
            for (paper, group), count in outcomes.group_counts().items()
            if paper == refno and name in {None, group}
        ]
        tp, fp, fn = (sum(count[at] for count in counts) for at in range(3))
        answers.append(ItemAnswer(model=model, text=f"TP {tp:,} FP {fp:,} FN {fn:,}"))
    truth = plural(n, "row") if results.dataset.has_truth else None
    return summary_fact(truth, answers)


def _papers(results: PropertyResults) -> frozenset[str]:
    papers = {*results.dataset.truth_by_paper, *results.dataset.papers}
    for replicate in results.predictions.predicted:
        papers.update(replicate.outcomes)
        papers.update(row.refno for row in replicate.predictions)
    return frozenset(papers)


def _names(results: PropertyResults) -> frozenset[str]:
    names = {*results.dataset.canonical}
    for replicate in results.predictions.predicted:
        names.update(row.name for row in replicate.predictions)
    for entry in results.dataset.aliases.entries:
        names.update(entry.names)
    return frozenset(names)


def quotes(dataset: PropertyDataset, answer: Answer, /) -> Iterator[QuotedPassage]:
    """Yield the quotes of an extraction, each with the value that it supports."""
    if not isinstance(answer.parsed, ParsedExtraction):
        return
    paper = dataset.papers.paper(paper_of(answer.task.key)[0])
    for row in answer.parsed.rows:
        if row.quote:
            match = ground(paper, row.quote)
            value = " ".join(filter(None, (row.value, row.unit)))
            start, end = match.start, match.end
            yield passage_of(
                paper.text,
                row.quote,
                None if start is None or end is None else (start, end),
                label=f"{row.name}: {value}",
                match=match.level.value,
            )


def describe(dataset: PropertyDataset, /) -> Iterator[str]:
    """Yield the properties to extract, or the names to verify."""
    if dataset.questions:
        pairs = sum(len(question.pairs) for question in dataset.questions.values())
        yield f"Do the two names of a pair mean one property? {plural(pairs, 'pair')}."
        return
    names = [prop.name for prop in dataset.listed_properties]
    if names:
        yield f"Properties: {listed(names, most=12)}"
    if dataset.truth:
        values = plural(len(dataset.truth), "curated value")
        papers = plural(len(dataset.truth_by_paper), "paper")
        yield f"Compared with {values} of {papers}."
