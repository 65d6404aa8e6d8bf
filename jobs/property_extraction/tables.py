"""Tables of a scoring: by property, paper and group, models, aliases, lint."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace

from jobs.kit.text_format import slugs
from jobs.property_extraction.aliases.candidates import (
    AliasCandidate,
    PredictionExample,
    review_candidates,
)
from jobs.property_extraction.aliases.differences import (
    bookable_predictions,
    changes_by_alias,
)
from jobs.property_extraction.lint import COLUMNS, cells, lint_rows
from jobs.property_extraction.name_metrics import Mismatches
from jobs.property_extraction.rates import WORDS, CountColumns, GroupCounts, rates_of
from jobs.property_extraction.results import PropertyResults, ScoredModel
from jobs.property_extraction.settings import PropertySettings
from runner.scorecard import Artifact, Cell, Table


def model_slugs(models: Iterable[str]) -> dict[str, str]:
    """Models as parts of file names: "/" becomes "--", what is unsafe beside it "_"."""
    plain = {model: model.replace("/", "--") for model in models}
    uses = Counter(plain.values())
    # of "a/b" and "a--b" only the second can be called so
    names = {model: model if uses[name] > 1 else name for model, name in plain.items()}
    slug_by_name = slugs(names.values())
    return {model: slug_by_name[name] for model, name in names.items()}


class ModelFolders:
    """Names of files by model."""

    def __init__(self, models: Iterable[str]) -> None:
        self._slugs = model_slugs(models)

    def of(self, model: str, name: str) -> str:
        """A file of a model."""
        return name if len(self._slugs) == 1 else f"{self._slugs[model]}/{name}"


COUNTS = ("tp", "fp", "fn")


def short_tables(results: PropertyResults, folders: ModelFolders) -> Iterator[Table]:
    """All of them, in the order of a report."""
    for model, column in results.columns.items():
        counts = column.first.counts
        yield Table(
            name=folders.of(model, "score_pr_summary"),
            columns=("property_name", *COUNTS, *WORDS),
            rows=tuple(
                (name, *row)
                for name, row in zip(
                    counts.names, _with_zeros(counts.by_name()), strict=True
                )
            ),
            caption="Each property over all papers; 0/0 stands as 0.",
        )
        yield _detailed(results, column, folders)
        yield _encompassment(column, folders)
        yield Table(
            name=folders.of(model, "papers"),
            columns=("refno", *COUNTS, *WORDS),
            rows=tuple(
                (refno, *row)
                for refno, row in zip(
                    counts.papers, _rows(counts.by_paper()), strict=True
                )
            ),
            caption="Each paper over all properties.",
        )
    if len(results.columns) > 1:
        yield _comparison(results)


def _rows(cells: CountColumns) -> Iterator[tuple[Cell, ...]]:
    rates = [rates_of(cells, word) for word in WORDS]
    for at, counts in enumerate(zip(cells.tp, cells.fp, cells.fn, strict=True)):
        yield (*map(int, counts), *(column[at] for column in rates))


def _with_zeros(cells: CountColumns) -> Iterator[tuple[Cell, ...]]:
    for row in _rows(cells):
        yield tuple(0.0 if cell is None else cell for cell in row)


def _groups(counts: GroupCounts) -> Iterator[tuple[str, str, int, int, int]]:
    for at in range(len(counts.tp)):
        yield (
            counts.papers[counts.paper[at]],
            counts.names[counts.name[at]],
            int(counts.tp[at]),
            int(counts.fp[at]),
            int(counts.fn[at]),
        )


def _detailed(
    results: PropertyResults, column: ScoredModel, folders: ModelFolders
) -> Table:
    rubric = results.dataset.rubric
    return Table(
        name=folders.of(column.model, "score_pr_detailed"),
        columns=(
            "refno",
            "property_name",
            *COUNTS,
            "rubric",
            "gt_count",
            "pred_count",
            "details",
        ),
        rows=tuple(
            (
                refno,
                name,
                tp,
                fp,
                fn,
                str(rubric.kind(name)),
                tp + fn,
                tp + fp,
                f"{tp} of {tp + fn} found, {fp} beyond them",
            )
            for refno, name, tp, fp, fn in _groups(column.first.counts)
        ),
        caption="Each property of each paper.",
    )


def _encompassment(column: ScoredModel, folders: ModelFolders) -> Table:
    aliases = column.first.aliases
    return Table(
        name=folders.of(column.model, "encompassment"),
        columns=("refno", "property_name", *COUNTS, "kind"),
        rows=tuple(
            (refno, name, tp, fp, fn, "wrong value" if fp else "name not found")
            for refno, name, tp, fp, fn in _groups(column.first.counts)
            if fn
        ),
        caption="Every property of a paper with a missed value: was a value predicted "
        f"under its name? Aliases: {aliases.id} ({aliases.status_mix}).",
    )


def _comparison(results: PropertyResults) -> Table:
    """Models side by side."""
    paths = ("tp", "fp", "fn", *WORDS, *(f"macro.{word}" for word in WORDS))
    return Table(
        name="comparison",
        columns=("model", *paths, "encompassment", "fabricated_quote_rate"),
        rows=tuple(
            (
                model,
                *(column.metric(path).value for path in paths),
                column.metric("encompassment").value,
                column.metric("fabricated_quote_rate").value,
            )
            for model, column in results.columns.items()
        ),
        caption="The models of the run.",
        is_headline=True,
    )


REVIEW = ("pred_name", "gt_name", "count", "avg_sim")
CANDIDATES = (
    "rank",
    *REVIEW,
    "contained",
    "value_hits",
    "canonical",
    "clash",
    "examples",
)

# dataclasses.asdict copies every text, which takes longer than all else here
_FIELDS = tuple(field.name for field in fields(PredictionExample))


def candidate_tables(
    results: PropertyResults, folders: ModelFolders
) -> Iterator[Table]:
    """The candidates of each model, and the first of them for review."""
    for model, column in results.columns.items():
        mismatches = column.mismatches
        yield Table(
            name=folders.of(model, "alias_candidates"),
            columns=CANDIDATES,
            rows=tuple(map(_cells, mismatches.candidates)),
            caption="Wrong names with the missed ones that they may mean, by spelling "
            "or by value. Where values spoke, a score on the same papers is in-sample.",
        )
        yield Table(
            name=folders.of(model, "alias_candidates_review"),
            columns=REVIEW,
            rows=tuple(
                (
                    candidate.pred_name,
                    candidate.gt_name,
                    candidate.count,
                    candidate.avg_sim,
                )
                for candidate in _reviewed(mismatches, results.dataset.settings)
            ),
            caption="Of them those by spelling alone, for verification.",
        )


def _reviewed(
    mismatches: Mismatches, settings: PropertySettings
) -> Sequence[AliasCandidate]:
    """The first pairs by count; or all by name, and those of a name by count."""
    if settings.review_rows == "top":
        return mismatches.review
    return sorted(
        review_candidates(mismatches.near, settings.k, None),
        key=lambda candidate: (candidate.pred_name, -candidate.count),
    )


def draft_maps(results: PropertyResults, folders: ModelFolders) -> Iterator[Artifact]:
    """The first target of each name; it acts only where it is named and accepted."""
    for model, column in results.columns.items():
        text = json.dumps(dict(column.mismatches.draft), ensure_ascii=False, indent=2)
        yield Artifact(
            name=folders.of(model, "property_aliases.json"), text=f"{text}\n"
        )


def _cells(candidate: AliasCandidate) -> tuple[Cell, ...]:
    return (
        candidate.rank,
        candidate.pred_name,
        candidate.gt_name,
        candidate.count,
        candidate.avg_sim,
        candidate.contained,
        candidate.value_hits,
        candidate.canonical,
        candidate.clash,
        _examples_json(candidate.examples) if candidate.examples else None,
    )


def _examples_json(examples: Iterable[PredictionExample]) -> str:
    records = [
        {name: getattr(example, name) for name in _FIELDS} for example in examples
    ]
    return json.dumps(records, ensure_ascii=False)


def alias_tables(results: PropertyResults, folders: ModelFolders) -> Iterator[Table]:
    """A table of each model whose names aliases changed; of the first replicate."""
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
    """Every odd row of truth, rubric and table of units."""
    dataset = results.dataset
    row_findings = lint_rows(
        dataset.truth, dataset.rubric, dataset.unit_table, results.comparer
    )
    return Table(
        name="lint",
        columns=COLUMNS,
        rows=tuple(map(cells, row_findings.issues)),
        caption="Rows of the inputs that a score may suffer from.",
    )
