"""What the aliases that act gain and lose against none at all, alias by alias."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jobs.property_extraction.artifacts.naming import Folders
from jobs.property_extraction.differing import bookable, booked
from jobs.property_extraction.measuring.results import Results
from runner.scorecard import Table


def alias_tables(results: Results, folders: Folders) -> Iterator[Table]:
    """A table of each model whose names aliases changed; of the first replicate."""
    for model, column in results.columns.items():
        fates = column.first.fates
        if column.unrenamed is not fates:
            found = booked(bookable(column.unrenamed), bookable(fates)).table
            yield replace(
                found,
                name=folders.of(model, found.name),
                caption="What each alias gains and loses, against no aliases at all.",
            )
