"""An extraction in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.review_benchmark.extracting.checking.flags import MEANINGS
from jobs.review_benchmark.extracting.extract import Extract
from jobs.review_benchmark.extracting.result.extraction import Extraction
from jobs.text import clip, one_line, plural
from runner.scorecard import Metric

SHOWN = 20
"""Flags that are listed; all of them stand in extraction_{id}.json."""

WIDTH = 60
"""Cells of what a flag is about."""


def extraction_text(
    own: Extraction, extract: Extract, compared: Sequence[Metric] = ()
) -> str:
    """What a terminal shows of one model's extraction, and how it stands to truth."""
    values = (
        f"  {each.path:24} {'n/a' if each.value is None else f'{each.value:.4f}'}"
        f"  (n {each.n})"
        for each in compared
    )
    against = ("Against the truth:", *values) if compared else ()
    return "\n".join((*_lines(own, extract), *against))


def _lines(own: Extraction, extract: Extract) -> Iterator[str]:
    meta, included = own.recorded.meta, own.included
    document = extract.document
    status = own.status(accept=extract.settings.accept)
    yield f"Extraction: {status.upper()}"
    yield f"Source: {document.name}, {plural(len(document.starts), 'page')}"
    yield f"Model: {one_line(own.model)}"
    yield f"Cochrane ID: {one_line(meta.id) or 'not found'}"
    yield f"Title: {one_line(meta.title) or 'not found'}"
    stated = "" if own.stated is None else f" (abstract: {own.stated})"
    yield (
        f"Included: {plural(len(included.kept), 'reference')} of "
        f"{plural(own.studies, 'study', 'studies')}{stated}; "
        f"{len(included.dropped)} dropped, {included.repeated} repeated"
    )
    if extract.settings.with_excluded:
        listed = sum(bool(each.paper.pmid) for each in own.excluded.kept)
        yield (
            f"Excluded: {plural(len(own.excluded.kept), 'reference')}, {listed} with "
            "the PMID that a table for screening needs"
        )
    if own.placed:
        yield f"Sections without a heading, found by the model: {', '.join(own.placed)}"
    if own.flags:
        yield f"To look at: {len(own.flags)}"
    for flag in own.flags[:SHOWN]:
        detail = f" ({clip(flag.detail, WIDTH)})" if flag.detail else ""
        yield f"  - {clip(flag.where, WIDTH)}: {MEANINGS[flag.code]}{detail}"
    if len(own.flags) > SHOWN:
        yield f"  - and {len(own.flags) - SHOWN} more"
