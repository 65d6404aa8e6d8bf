"""Scoring property-extraction at the size of section 13 of its specification.

Seconds are the processor's, and Python's garbage collector is set as commands set it.
Files are read and answers stored beforehand; a scoring includes its tables, drained as
a writer does. Beside the figures stand what plain loops take in the same run: rows of a
group compared one by one as bare numbers, the first free one taken, without units,
intervals and tables; and names compared a pair at a time.
"""

from __future__ import annotations

import json
import math
import resource
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from rapidfuzz.distance import Indel

from jobs.kit.testing import MemoryAnswers
from jobs.property_extraction.aliases.candidates import PaperMismatch, near_names
from jobs.property_extraction.job import job
from jobs.property_extraction.prediction_files import read_predictions
from jobs.property_extraction.score import score
from jobs.property_extraction.settings import PropertySettings
from runner.cli import console
from tests.bench.properties import (
    PER_PAPER,
    STATED,
    Papers,
    names,
    renamed,
    write_crowd,
)
from tests.bench.row import Row
from tests.bench.verdict import least, most, shown

NEAREST = 3
TOLERANCE = 0.001
SAMPLE = 100
"""Names that are compared a pair at a time; the rest in a straight line."""


def measure(quick: bool) -> list[Row]:
    """Many papers, then one that is crowded, then very many names."""
    with tempfile.TemporaryDirectory() as name:
        _scoring(Papers(1).write(Path(name)))()  # what is loaded at first use
    console.relax_collector()
    if quick:
        return [*_papers(250), *_crowd(1_000), *_names(500)]
    return [
        *_papers(2_500, (10, 1_000, 2)),
        *_crowd(10_000),
        *_names(5_000, 0.5),
    ]


def _papers(
    n: int, goals: tuple[float | None, float | None, float | None] = (None, None, None)
) -> Iterator[Row]:
    """Seconds, megabytes, and seconds of another scoring with aliases."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = Papers(n).write(folder)
        aliases = folder / "aliases.json"
        aliases.write_text(json.dumps(renamed()), "utf-8")
        seconds = _timed(_scoring(files))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        plain = _plainly(files)
        again = _timed(_scoring(files, aliases=aliases, accept_drafts=True))
    what = f"{PER_PAPER * n:,} curated, {STATED * PER_PAPER * n:,} predicted rows"
    yield most("properties", f"{what}, s", seconds, goals[0])
    yield most("properties", f"{what}, peak MB", peak, goals[1])
    yield shown("the same by plain loops, s", plain, "properties")
    yield most("properties", "the same with aliases, s", again, goals[2])


def _crowd(n: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        files = write_crowd(Path(name), n)
        seconds = _timed(_scoring(files))
        plain = _plainly(files)
    what = f"{n:,} x {n:,} rows of one name in one paper"
    yield shown(f"{what}, s", seconds, "properties")
    yield shown("the same by plain loops, s", plain, "properties")


def _names(n: int, goal: float | None = None) -> Iterator[Row]:
    predicted, missed = frozenset(names(n, 1)), frozenset(names(n, 2))
    paper = PaperMismatch(refno="P0", predicted=predicted, missed=missed - predicted)
    seconds = _timed(lambda: list(near_names(paper, NEAREST)))
    loop = _timed(lambda: _similarities(predicted, missed)) * n / SAMPLE
    yield most("properties", f"{n:,} x {n:,} names, s", seconds, goal)
    yield least("properties", "a pair at a time, times longer", loop / seconds, 1)


def _scoring(files: Mapping[str, Path], **settings: object) -> Callable[[], None]:
    """A scoring of rows that are read already."""
    own = PropertySettings.model_validate(
        {**files, "preds": [files["preds"]], **settings}
    )
    dataset = job.load(own)
    held = MemoryAnswers.of_import(
        job.importer.read((), own, model=None, form=None, replicates={})
    )

    def work() -> None:
        for _ in score(dataset, held).details:
            pass

    return work


def _plainly(files: Mapping[str, Path]) -> float:
    """Seconds of plain loops over the rows that were read."""
    own = PropertySettings.model_validate({**files, "preds": [files["preds"]]})
    truth = job.load(own).truth
    stated = list(read_predictions(files["preds"]))

    def work() -> None:
        wanted: dict[tuple[str, str], list[float]] = {}
        for row in truth:
            wanted.setdefault((row.refno, row.name), []).append(_number(row.value))
        for each in stated:
            rest = wanted.get((each.refno, each.name), [])
            value = _number(each.value)
            for place, goal in enumerate(rest):
                if abs(value - goal) <= TOLERANCE * abs(goal):
                    del rest[place]
                    break

    return _timed(work)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _similarities(predicted: Iterable[str], missed: Collection[str]) -> None:
    for name in islice(predicted, SAMPLE):
        for other in missed:
            Indel.normalized_similarity(name.lower(), other.lower())


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
