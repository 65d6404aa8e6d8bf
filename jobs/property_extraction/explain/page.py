"""`siftlog explain RUN PAPER [NAME]` and `explain RUN NAME`: the pages of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.explain.alias import alias_lines
from jobs.property_extraction.explain.group_page import group_lines
from jobs.property_extraction.explain.paper import paper_lines
from jobs.property_extraction.explain.selection import Selection, selections
from jobs.property_extraction.gathering.gathering import sheet_of
from jobs.property_extraction.gathering.predicted import Sheet
from jobs.property_extraction.measuring.left_out import LeftOut
from jobs.property_extraction.measuring.results import Results, measured
from jobs.text import WIDTH, cut, hanging_lines, one_line
from runner.job import Answers

NOTHING = Sheet(models=(), replicates=1, imported=False, predicted=())
"""Of a run that is still to come."""


def explain(dataset: Dataset, answers: Answers | None, items: tuple[str, ...]) -> str:
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
    sheet = NOTHING if answers is None else sheet_of(plain, answers)
    results = measured(plain, sheet)
    chosen = selections(items, _papers(results), _names(results))
    pages = ("\n".join(_lines(results, own)) for own in chosen)
    return "\n\n".join(pages) + "\n"


def _lines(results: Results, own: Selection) -> Iterator[str]:
    title = "  ".join(one_line(part) for part in (own.refno, own.name) if part)
    yield cut(title, WIDTH)
    if own.refno is None:
        yield from alias_lines(results, own.name or "")
    elif own.name is None:
        yield from paper_lines(results, own.refno)
    else:
        yield from group_lines(results, own.refno, own.name)
    if own.refno is not None:
        for finding in LeftOut.of(results).findings():
            yield from hanging_lines("note: ", finding.message)


def _papers(results: Results) -> frozenset[str]:
    return frozenset(
        {
            *results.dataset.truth_by_paper,
            *results.dataset.papers,
            *(
                refno
                for own in results.sheet.predicted
                for refno in (*own.outcomes, *(row.refno for row in own.predictions))
            ),
        }
    )


def _names(results: Results) -> frozenset[str]:
    return frozenset(
        {
            *results.dataset.canonical,
            *(row.name for own in results.sheet.predicted for row in own.predictions),
            *(
                name
                for entry in results.dataset.aliases.entries
                for name in (entry.pred_name, entry.gt_name)
            ),
        }
    )
