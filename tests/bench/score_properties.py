"""Scoring property-extraction at the size of section 13 of its specification.

Seconds are the processor's. Files are read and answers stored beforehand; a scoring
includes its tables, drained as a writer does.
"""

from __future__ import annotations

import json
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from jobs.property_extraction.job import job
from jobs.property_extraction.mismatch.candidates import Mismatch, near
from jobs.property_extraction.scoring import score
from jobs.property_extraction.settings import Settings
from jobs.testing import MemoryAnswers
from tests.bench.properties import (
    PER_PAPER,
    STATED,
    Papers,
    names,
    renamed,
    write_crowd,
)
from tests.bench.row import Row
from tests.bench.verdict import most, shown

NEAREST = 3


def measure(quick: bool) -> list[Row]:
    """Many papers, then one that is crowded, then very many names."""
    with tempfile.TemporaryDirectory() as name:
        _scoring(Papers(1).write(Path(name)))()  # what is loaded at first use
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
        again = _timed(_scoring(files, aliases=aliases, accept_drafts=True))
    what = f"{PER_PAPER * n:,} curated, {STATED * PER_PAPER * n:,} predicted rows"
    yield most("properties", f"{what}, s", seconds, goals[0])
    yield most("properties", f"{what}, peak MB", peak, goals[1])
    yield most("properties", "the same with aliases, s", again, goals[2])


def _crowd(n: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        seconds = _timed(_scoring(write_crowd(Path(name), n)))
    yield shown(f"{n:,} x {n:,} rows of one name in one paper, s", seconds)


def _names(n: int, goal: float | None = None) -> Iterator[Row]:
    predicted, missed = frozenset(names(n, 1)), frozenset(names(n, 2))
    paper = Mismatch(refno="P0", predicted=predicted, missed=missed - predicted)
    seconds = _timed(lambda: list(near(paper, NEAREST)))
    yield most("properties", f"{n:,} x {n:,} names, s", seconds, goal)


def _scoring(files: Mapping[str, Path], **settings: object) -> Callable[[], None]:
    """A scoring of rows that are read already."""
    own = Settings.model_validate({**files, "preds": [files["preds"]], **settings})
    dataset = job.load(own)
    held = MemoryAnswers.of_import(
        job.importer.read((), own, model=None, form=None, replicates={})
    )

    def work() -> None:
        for _ in score(dataset, held).details:
            pass

    return work


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
