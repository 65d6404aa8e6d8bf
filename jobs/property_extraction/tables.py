"""Declares the tables of a scoring: by property, paper, group, model, alias; lint."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from jobs.kit.tables import (
    Columns,
    TableOf,
    count,
    flag,
    group,
    number,
    per_key,
    text,
)
from jobs.kit.text_format import slugs
from jobs.property_extraction.aliases.alias_set import AliasSet
from jobs.property_extraction.aliases.candidates import (
    AliasCandidate,
    PredictionExample,
    review_candidates,
)
from jobs.property_extraction.aliases.differences import (
    bookable_predictions,
    changes_by_alias,
)
from jobs.property_extraction.lint import LINT, lint_rows
from jobs.property_extraction.name_metrics import Mismatches
from jobs.property_extraction.name_pairs import EXAMPLE_FIELDS
from jobs.property_extraction.rates import WORDS, CountColumns, GroupCounts, rates_of
from jobs.property_extraction.results import PropertyResults, ScoredModel
from jobs.property_extraction.settings import PropertySettings
from jobs.property_extraction.values.comparison import Rubric
from runner.scorecard import Artifact, Table

Row = TypeVar("Row")


def model_slugs(models: Iterable[str]) -> dict[str, str]:
    """Return models as parts of file names: "/" becomes "--", unsafe characters "_"."""
    plain = {model: model.replace("/", "--") for model in models}
    uses = Counter(plain.values())
    # of "a/b" and "a--b" only the second gets this name
    names = {model: model if uses[name] > 1 else name for model, name in plain.items()}
    slug_by_name = slugs(names.values())
    return {model: slug_by_name[name] for model, name in names.items()}


class ModelFolders:
    """Names of files by model."""

    def __init__(self, models: Iterable[str]) -> None:
        self._slugs = model_slugs(models)

    def of(self, model: str, name: str) -> str:
        """Return the name of a model's file."""
        return name if len(self._slugs) == 1 else f"{self._slugs[model]}/{name}"

    def table(self, model: str, declared: TableOf[Row], rows: Iterable[Row]) -> Table:
        """Return the table of a model with its rows."""
        return declared.table(rows, name=self.of(model, declared.name))


class _Counts(NamedTuple):
    tp: int
    fp: int
    fn: int


COUNTS: tuple[Columns[_Counts], ...] = (
    count("tp", lambda counts: counts.tp),
    count("fp", lambda counts: counts.fp),
    count("fn", lambda counts: counts.fn),
)


class _GroupRow(NamedTuple):
    """A property of a paper."""

    refno: str
    name: str
    counts: _Counts


class _ItemRow(NamedTuple):
    """A property over all papers, or a paper over all properties."""

    item: str
    counts: _Counts
    rates: Mapping[str, float | None]


def _items(items: Sequence[str], cells: CountColumns) -> Iterator[_ItemRow]:
    rates = {word: rates_of(cells, word) for word in WORDS}
    for at, (item, counts) in enumerate(zip(items, cells.rows(), strict=True)):
        item_rates = {word: values[at] for word, values in rates.items()}
        yield _ItemRow(item, _Counts(*counts), item_rates)


def _groups(counts: GroupCounts) -> Iterator[_GroupRow]:
    for paper, name, *cells in zip(
        counts.paper, counts.name, counts.tp, counts.fp, counts.fn, strict=True
    ):
        of_group = _Counts(*map(int, cells))
        yield _GroupRow(counts.papers[paper], counts.names[name], of_group)


BY_NAME = TableOf[_ItemRow](
    name="score_pr_summary",
    columns=(
        text("property_name", lambda row: row.item),
        group(COUNTS, lambda row: row.counts),
        per_key("{}", WORDS, lambda row, word: row.rates[word] or 0.0, "number"),
    ),
    caption="Each property over all papers; 0/0 stands as 0.",
)

BY_PAPER = TableOf[_ItemRow](
    name="papers",
    columns=(
        text("refno", lambda row: row.item),
        group(COUNTS, lambda row: row.counts),
        per_key("{}", WORDS, lambda row, word: row.rates[word], "number"),
    ),
    caption="Each paper over all properties.",
)


def _detailed(rubric: Rubric) -> TableOf[_GroupRow]:
    return TableOf(
        name="score_pr_detailed",
        columns=(
            text("refno", lambda row: row.refno),
            text("property_name", lambda row: row.name),
            group(COUNTS, lambda row: row.counts),
            text("rubric", lambda row: str(rubric.kind(row.name))),
            count("gt_count", lambda row: row.counts.tp + row.counts.fn),
            count("pred_count", lambda row: row.counts.tp + row.counts.fp),
            text("details", lambda row: _in_words(row.counts)),
        ),
        caption="Each property of each paper.",
    )


def _in_words(counts: _Counts) -> str:
    tp, fp, fn = counts
    return f"{tp} of {tp + fn} found, {fp} others predicted"


def _encompassment(aliases: AliasSet) -> TableOf[_GroupRow]:
    return TableOf(
        name="encompassment",
        columns=(
            text("refno", lambda row: row.refno),
            text("property_name", lambda row: row.name),
            group(COUNTS, lambda row: row.counts),
            text(
                "kind",
                lambda row: "wrong value" if row.counts.fp else "name not found",
            ),
        ),
        caption="Every property of a paper with a missed value: was a value predicted "
        f"under its name? Aliases: {aliases.id} ({aliases.status_mix}).",
    )


COMPARED = (
    *("tp", "fp", "fn", *WORDS, *(f"macro.{word}" for word in WORDS)),
    *("encompassment", "fabricated_quote_rate"),
)
"""Metrics of the table of models."""

COMPARISON = TableOf[ScoredModel](
    name="comparison",
    columns=(
        text("model", lambda column: column.model),
        per_key("{}", COMPARED, lambda column, path: column.metric(path).value),
    ),
    caption="The models of the run.",
    is_headline=True,
)


def short_tables(results: PropertyResults, folders: ModelFolders) -> Iterator[Table]:
    """Yield the short tables, in the order of a report."""
    detailed = _detailed(results.dataset.rubric)
    for model, column in results.columns.items():
        counts, table = column.first.counts, partial(folders.table, model)
        missed = [row for row in _groups(counts) if row.counts.fn]
        yield table(BY_NAME, _items(counts.names, counts.by_name()))
        yield table(detailed, _groups(counts))
        yield table(_encompassment(column.first.aliases), missed)
        yield table(BY_PAPER, _items(counts.papers, counts.by_paper()))
    if len(results.columns) > 1:
        yield COMPARISON.table(results.columns.values())


REVIEW: tuple[Columns[AliasCandidate], ...] = (
    text("pred_name", lambda candidate: candidate.pred_name),
    text("gt_name", lambda candidate: candidate.gt_name),
    count("count", lambda candidate: candidate.count, "papers"),
    number("avg_sim", lambda candidate: candidate.avg_sim),
)

CANDIDATES = TableOf[AliasCandidate](
    name="alias_candidates",
    columns=(
        count("rank", lambda candidate: candidate.rank),
        *REVIEW,
        flag("contained", lambda candidate: candidate.contained),
        count("value_hits", lambda candidate: candidate.value_hits),
        flag("canonical", lambda candidate: candidate.canonical),
        count("clash", lambda candidate: candidate.clash),
        text("examples", lambda candidate: _examples_json(candidate.examples)),
    ),
    caption="Wrong names with the missed ones that they may mean, by spelling "
    "or by value. If values were used, a score on the same papers is in-sample.",
)

REVIEWED = TableOf[AliasCandidate](
    name="alias_candidates_review",
    columns=REVIEW,
    caption="Of them those by spelling alone, for verification.",
)


def candidate_tables(
    results: PropertyResults, folders: ModelFolders
) -> Iterator[Table]:
    """Yield the candidates of each model, and the first of them for review."""
    for model, column in results.columns.items():
        reviewed = _reviewed(column.mismatches, results.dataset.settings)
        yield folders.table(model, CANDIDATES, column.mismatches.candidates)
        yield folders.table(model, REVIEWED, reviewed)


def _reviewed(
    mismatches: Mismatches, settings: PropertySettings
) -> Sequence[AliasCandidate]:
    """Return the first pairs by count, or all pairs by name and count."""
    if settings.review_rows == "top":
        return mismatches.review
    return sorted(
        review_candidates(mismatches.near, settings.k, None),
        key=lambda candidate: (candidate.pred_name, -candidate.count),
    )


def draft_maps(results: PropertyResults, folders: ModelFolders) -> Iterator[Artifact]:
    """Yield the first target of each name, as drafts that act only if accepted."""
    for model, column in results.columns.items():
        text = json.dumps(dict(column.mismatches.draft), ensure_ascii=False, indent=2)
        yield Artifact(
            name=folders.of(model, "property_aliases.json"), text=f"{text}\n"
        )


def _examples_json(examples: Sequence[PredictionExample]) -> str | None:
    if not examples:
        return None
    # dataclasses.asdict copies every text, which takes longer than the rest
    records = [
        {name: getattr(example, name) for name in EXAMPLE_FIELDS}
        for example in examples
    ]
    return json.dumps(records, ensure_ascii=False)


def alias_tables(results: PropertyResults, folders: ModelFolders) -> Iterator[Table]:
    """Yield a table for each model whose names aliases changed; first replicate."""
    for model, column in results.columns.items():
        outcomes = column.first.row_outcomes
        if column.unrenamed is not outcomes:
            table = changes_by_alias(
                bookable_predictions(column.unrenamed), bookable_predictions(outcomes)
            ).table
            yield replace(
                table,
                name=folders.of(model, table.name),
                caption="What each alias gains and loses, against no aliases at all.",
            )


def lint_table(results: PropertyResults) -> Table:
    """Return a table of every problem in truth, rubric and unit table."""
    dataset = results.dataset
    row_findings = lint_rows(
        dataset.truth, dataset.rubric, dataset.unit_table, results.comparer
    )
    return LINT.table(row_findings.issues)
