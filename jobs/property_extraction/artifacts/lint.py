"""The file about what is odd in the curated values and the rules of a scoring."""

from __future__ import annotations

from jobs.property_extraction.linting.issues import look
from jobs.property_extraction.linting.lint import COLUMNS, cells
from jobs.property_extraction.measuring.results import Results
from runner.scorecard import Table


def lint_table(results: Results) -> Table:
    """Every odd row of truth, rubric and table of units."""
    dataset = results.dataset
    looked = look(dataset.truth, dataset.rubric, dataset.unit_table, results.comparer)
    return Table(
        name="lint",
        columns=COLUMNS,
        rows=tuple(map(cells, looked.issues)),
        caption="Rows of the inputs that a score may suffer from.",
    )
