"""The files of a set, by name: written in one go, without a time or a path in them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from jobs.screening.corpus import Criteria, Text
from jobs.screening.difficulty.contamination import Contamination
from jobs.screening.difficulty.topic import Drift
from jobs.screening.prepared.statistics import ReviewStatistics
from jobs.screening.validation_set import KINDS, Record
from runner.score.render import harmless

Cell: TypeAlias = str | int | float | None


class Table:
    """A CSV file that grows row by row; cells are data, as they are."""

    def __init__(self, lines: Any, columns: Sequence[str]) -> None:  # noqa: ANN401
        self._writer = csv.writer(lines, lineterminator="\n")
        self._writer.writerow(columns)

    def add(self, rows: Iterable[Sequence[Cell]]) -> None:
        """Further rows; None becomes an empty cell."""
        self._writer.writerows(rows)


@contextmanager
def table(path: Path, columns: Sequence[str]) -> Iterator[Table]:
    """A table that is written inside."""
    with path.open("w", encoding="utf-8", newline="") as lines:
        yield Table(lines, columns)


def record_row(each: Record) -> Sequence[Cell]:
    """A record as a row of `validation_set.csv`."""
    return (
        each.review,
        each.paper,
        each.label,
        each.kind,
        int(each.also_near_miss),
        harmless(each.reason),
        each.reason_code,
        each.n_links,
        each.n_shared,
        each.similarity,
    )


def statistics_row(each: ReviewStatistics) -> Sequence[Cell]:
    """A review as a row of `near_miss_stats.csv`."""
    return tuple(asdict(each).values())


def drift_rows(each: Drift) -> Iterator[Sequence[Cell]]:
    """The kinds of a review as rows of `topic_drift.csv`."""
    for kind in KINDS:
        found = each.kinds.get(kind)
        if found is not None:
            yield (
                each.review,
                kind,
                found.n,
                found.mean,
                *found.quartiles,
                found.separability,
                each.jaccard,
            )


def contamination_row(review: str, each: Contamination) -> Sequence[Cell]:
    """A review as a row of `contamination.csv`."""
    return (
        review,
        each.n,
        each.confirmed,
        each.pending,
        each.duplicate_suspect,
        each.unverified,
        each.share_confirmed,
        each.lower,
        each.upper,
    )


def review_json(review: str, text: Text, criteria: Criteria | None) -> dict[str, Any]:
    """A review as a line of `reviews.jsonl`; without criteria where it has none."""
    shown: dict[str, Any] = {"review_pmid": review, **_text_json(text)}
    if criteria is not None:
        shown |= {
            "question": criteria.question,
            "pico": dict(criteria.pico),
            "inclusion": list(criteria.inclusion),
            "exclusion": list(criteria.exclusion),
            "criteria": dict(criteria.headings),
        }
    return shown


def paper_json(paper: str, text: Text) -> dict[str, Any]:
    """A paper as a line of `papers.jsonl`."""
    return {"pmid": paper, **_text_json(text)}


def _text_json(text: Text) -> dict[str, str | int | None]:
    # dataclasses.asdict copies deeply, which takes ten times as long
    return {"title": text.title, "abstract": text.abstract, "year": text.year}


def write_jsonl(path: Path, objects: Iterable[Mapping[str, Any]]) -> None:
    """One object a line."""
    with path.open("w", encoding="utf-8", newline="") as lines:
        lines.writelines(
            json.dumps(each, ensure_ascii=False) + "\n" for each in objects
        )


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """One object, indented, its keys in the order given."""
    text = json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False)
    path.write_text(f"{text}\n", encoding="utf-8", newline="")
