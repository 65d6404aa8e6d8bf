"""The short tables of a scoring: by property, by paper, by group, and models."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.property_extraction.artifacts.naming import Folders
from jobs.property_extraction.measuring.counts import Cells, Counts
from jobs.property_extraction.measuring.rates import WORDS, rates_of
from jobs.property_extraction.measuring.results import Column, Results
from runner.scorecard import Cell, Table

COUNTS = ("tp", "fp", "fn")


def short_tables(results: Results, folders: Folders) -> Iterator[Table]:
    """All of them, in the order of a report."""
    for model, column in results.columns.items():
        counts = column.first.counts
        yield Table(
            name=folders.of(model, "score_pr_summary"),
            columns=("property_name", *COUNTS, *WORDS),
            rows=tuple(
                (name, *own)
                for name, own in zip(
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
                (refno, *own)
                for refno, own in zip(
                    counts.papers, _rows(counts.by_paper()), strict=True
                )
            ),
            caption="Each paper over all properties.",
        )
    if len(results.columns) > 1:
        yield _comparison(results)


def _rows(cells: Cells) -> Iterator[tuple[Cell, ...]]:
    rates = [rates_of(cells, word) for word in WORDS]
    for at, own in enumerate(zip(cells.tp, cells.fp, cells.fn, strict=True)):
        yield (*map(int, own), *(column[at] for column in rates))


def _with_zeros(cells: Cells) -> Iterator[tuple[Cell, ...]]:
    for row in _rows(cells):
        yield tuple(0.0 if cell is None else cell for cell in row)


def _groups(counts: Counts) -> Iterator[tuple[str, str, int, int, int]]:
    for at in range(len(counts.tp)):
        yield (
            counts.papers[counts.paper[at]],
            counts.names[counts.name[at]],
            int(counts.tp[at]),
            int(counts.fp[at]),
            int(counts.fn[at]),
        )


def _detailed(results: Results, column: Column, folders: Folders) -> Table:
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


def _encompassment(column: Column, folders: Folders) -> Table:
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


def _comparison(results: Results) -> Table:
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
