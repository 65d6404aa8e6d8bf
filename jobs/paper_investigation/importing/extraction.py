"""Variant extraction results: a line a paper, with the raw reply or the list read."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from jobs.paper_investigation.importing.context import StoredPaper, encode
from jobs.paper_investigation.importing.investigation import FAILED
from jobs.paper_investigation.importing.source import Source, recorded, reply_text
from jobs.paper_investigation.rows import Row
from runner.job import ImportedAnswer, TaskSpec

FACTS = ("predicted", "true_positives", "false_negatives", "recall", "parse_failure")


def read_extraction(source: Source) -> Iterator[ImportedAnswer]:
    """The extraction of each paper in the file; the mode is `extract`."""
    for row in source.rows():
        had_paper = row.fields.get("had_paper_context") is not False
        text = _text(row)
        paper = StoredPaper(
            mode="extract",
            truth=row.texts("ground_truth"),
            title=row.text("article_title") or None,
            pmid=row.text("pmid") or None,
            had_paper=had_paper,
            recorded=recorded(row, FACTS),
        )
        # a reply to a prompt without the paper is one; no reply and no paper is a skip
        skip = "no_paper_text" if not had_paper and not text else None
        stated = row.text("skip_reason")
        is_absent = bool(stated) and row.fields.get("raw_response") is None
        has_failed = is_absent and stated == FAILED
        if is_absent and not has_failed:
            skip = stated
        yield ImportedAnswer(
            spec=TaskSpec(
                stage="extract",
                key=source.paper_of(row),
                skip=skip,
                context=encode(paper),
            ),
            model=source.model_of(row),
            replicate=source.replicate_of(row),
            text=None if skip or has_failed else text,
            finish_reason=row.text("finish_reason") or "stop",
            error="unknown" if has_failed else None,
        )


def _text(row: Row) -> str:
    if "raw_response" in row.fields:
        return reply_text(row, "raw_response")
    return msgspec.json.encode(row.texts("predicted")).decode()
