"""Judgements and runs in trec_eval's formats, whose query ids name post and criterion.

A run is ordered as trec_eval orders it, by score and then by falling id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from jobs.evidence_retrieval.importing.given import Given, Truth
from jobs.evidence_retrieval.importing.rankings import LIST
from jobs.evidence_retrieval.importing.source import Part, Source
from jobs.metrics.ranking import read_qrels, read_run
from runner.errors import DatasetError

QRELS_FIELDS, RUN_FIELDS = 4, 6


def trec_fields(path: Path) -> int:
    """How many words stand in the first line that has any; 0: there is none."""
    try:
        with path.open(encoding="utf-8") as file:
            return next((len(line.split()) for line in file if line.strip()), 0)
    except (OSError, UnicodeDecodeError):
        return 0


def read_trec_qrels(source: Source) -> Iterator[Part]:
    """The gold of each judged query: the items with a grade above 0."""
    try:
        judged = read_qrels(source.path, escape_ids=source.settings.escape_ids)
    except (OSError, ValueError) as error:
        raise _unreadable(source, error) from error
    for qid, grades in judged.items():
        part = _part(source, qid, list(grades))
        gold = tuple(item for item, grade in grades.items() if grade > 0)
        yield replace(part, truth=Truth(gold=gold), given={source.model: Given()})


def read_trec_run(source: Source) -> Iterator[Part]:
    """The list of each query of a run."""
    try:
        run = read_run(source.path, escape_ids=source.settings.escape_ids)
    except (OSError, ValueError) as error:
        raise _unreadable(source, error) from error
    if run.contradicting:
        source.noticed.add(
            "ranks_contradict_scores",
            "warn",
            source.path.name,
            "The rank column says another order than the scores, which trec_eval goes "
            "by.",
            example=run.first_contradicting or "",
            n=run.contradicting,
        )
    for qid, items in run.ranked.items():
        part = _part(source, qid, items)
        yield replace(part, given={source.model: Given(lists={LIST: tuple(items)})})


def _part(source: Source, qid: str, items: Sequence[str]) -> Part:
    separator = source.settings.qid_sep
    post, found, criterion = qid.rpartition(separator)
    part = Part(
        where=f"{source.path.name}, query {qid}", post=post, criterion=criterion
    )
    if not found or not post or not criterion:
        raise part.error(
            f"its id does not name post and criterion with {separator!r} between them "
            "(give the separator with --qid-sep)"
        )
    foreign = source.owners.foreign(post, items)
    if foreign is not None:
        raise part.error(f"holds {source.why_foreign(foreign, post)}")
    return part


def _unreadable(source: Source, error: OSError | ValueError) -> DatasetError:
    if isinstance(error, ValueError):
        return DatasetError(f"{error} Correct the file.")
    why = error.strerror or type(error).__name__
    return DatasetError(f"{source.path}: {why} (check the path and its permissions).")
