"""Implements `siftlog prepare evidence-retrieval`: sentence pools and folds."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from jobs.evidence_retrieval.inputs import FoldSize, assign_folds, fold_sizes, load
from jobs.evidence_retrieval.posts import cut, read_texts, spans
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.inputs.rows import InputFindings
from jobs.kit.text_format import plural
from runner.errors import UsageError
from runner.job import Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedEvidence:
    """Lines of a file, and a summary of them."""

    lines: tuple[str, ...]
    text: str
    json: dict[str, object]


def sentences(settings: EvidenceSettings) -> PreparedEvidence:
    """Return the sentences of `--posts` as JSONL, with their offsets in the text.

    Raises:
        UsageError: no posts are named.
    """
    if settings.posts is None:
        raise UsageError("Name the posts to cut with --posts.")
    texts = read_texts(settings, InputFindings())
    pools = [_pool(post_id, text) for post_id, text in texts.items()]
    n, empty = sum(map(len, pools)), pools.count(())
    return PreparedEvidence(
        lines=tuple(line for pool in pools for line in pool),
        text=f"{n:,} sentences of {len(texts):,} posts; {empty:,} posts have none",
        json={"sentences": n, "posts": len(texts), "empty_posts": empty},
    )


def folds(settings: EvidenceSettings) -> PreparedEvidence:
    """Return the folds of the named posts, drawn by `--seed`, as CSV.

    Raises:
        DatasetError: there are fewer posts than folds.
    """
    dataset = load(settings.model_copy(update={"folds": None}))
    assignment = assign_folds(
        (post.id for post in dataset.posts), settings.n_folds, settings.seed
    )
    rows = [(post.id, assignment[post.id]) for post in dataset.posts]
    sizes = fold_sizes(dataset, assignment)
    overlap = sum(size.posts for size in sizes) - len(assignment)
    return PreparedEvidence(
        lines=tuple(_csv_line(row) for row in [("post_id", "fold_id"), *rows]),
        text="\n".join([*map(_fold_line, sizes), f"overlap: {overlap} posts"]),
        json={"folds": [asdict(size) for size in sizes], "overlap": overlap},
    )


SUBCOMMANDS: Mapping[str, Callable[[EvidenceSettings], Prepared]] = {
    "sentences": sentences,
    "folds": folds,
}
"""Functions by the word after the job's name."""


def _pool(post_id: str, text: str) -> tuple[str, ...]:
    return tuple(
        json.dumps(
            {
                "post_id": post_id,
                "sid": sentence.sid,
                "sent_uid": sentence.uid,
                "text": sentence.text,
                "start": span.start,
                "end": span.end,
            },
            ensure_ascii=False,
        )
        for sentence, span in zip(cut(post_id, text), spans(text), strict=True)
    )


def _csv_line(row: tuple[str, str]) -> str:
    """Format a CSV record; ids are read back unchanged."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(row)
    return line.getvalue()


def _fold_line(size: FoldSize) -> str:
    """Describe the size of a fold; queries are known if criteria are named."""
    parts = [plural(size.posts, "post")]
    if size.queries:
        parts.append(plural(size.queries, "query", "queries"))
    if size.positives is not None:
        parts.append(f"{size.positives:,} positive")
    return f"fold {size.fold}: {', '.join(parts)}"
