"""What was screened: the records of a set, or those that an import's rows speak of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

import msgspec
import numpy as np

from jobs.screening.dataset import Dataset
from jobs.screening.decisions import Records
from jobs.screening.validation_set import KINDS, Kind, Record, record_key
from runner.job import Answers


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a row of an import says is true; stored with its task."""

    label: int
    kind: str = "unspecified"
    reason_code: str = ""  #: the review's own; empty: none is known


_DECODER = msgspec.json.Decoder(Told)


def told(context: str) -> Told:
    """What was stored with a task."""
    return _DECODER.decode(context)


def text_of(row: Told) -> str:
    """What is stored with a task."""
    return msgspec.json.encode(row).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """Records with the place of each by its key."""

    records: Records
    places: dict[str, int]


def screened(dataset: Dataset, answers: Answers) -> Screened:
    """The records that a run is about."""
    drawn = dataset.validation_set
    if drawn is None:
        return _screened(_of_import(answers))
    return _screened(drawn.records)


def _of_import(answers: Answers) -> Iterator[Record]:
    """One record a pair that any row speaks of, in the order of a set."""
    found: dict[str, Record] = {}
    for family in answers.families():
        task = family[0].task
        if task.key in found or task.context is None:
            continue
        review, _, paper = task.key.partition(":")
        said = told(task.context)
        found[task.key] = Record(
            review=review,
            paper=paper,
            kind="included" if said.label else cast("Kind", said.kind),
            reason_code=said.reason_code,
        )
    yield from sorted(
        found.values(), key=lambda own: (own.review, KINDS.index(own.kind), own.paper)
    )


def _screened(of: Iterable[Record]) -> Screened:
    rows = tuple(of)
    reviews = tuple(sorted({own.review for own in rows}))
    kinds = tuple(kind for kind in KINDS if any(own.kind == kind for own in rows))
    at = {review: place for place, review in enumerate(reviews)}
    of_kind = {kind: place for place, kind in enumerate(kinds)}
    n = len(rows)
    return Screened(
        records=Records(
            reviews=reviews,
            papers=tuple(own.paper for own in rows),
            review=np.fromiter((at[own.review] for own in rows), np.int64, n),
            label=np.fromiter((own.label for own in rows), np.int64, n),
            kinds=kinds,
            kind=np.fromiter((of_kind[own.kind] for own in rows), np.int64, n),
            reason_code=tuple(own.reason_code for own in rows),
        ),
        places={record_key(own.review, own.paper): i for i, own in enumerate(rows)},
    )
