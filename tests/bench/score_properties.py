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
from tests.bench.properties import Papers, names, renamed, write_crowd
from tests.bench.row import Row
from tests.bench.verdict import most, shown

NEAREST = 3


def measure(quick: bool) -> list[Row]:
    """Many papers, then one that is crowded, then very many names."""
    papers, crowd, wrong = (250, 1_000, 500) if quick else (2_500, 10_000, 5_000)
    return [*_papers(papers), *_crowd(crowd), *_names(wrong)]


def _papers(n: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = Papers(n).write(folder)
        aliases = folder / "aliases.json"
        aliases.write_text(json.dumps(renamed()), "utf-8")
        seconds = _timed(_scoring(files))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        again = _timed(_scoring(files, aliases=aliases, accept_drafts=True))
    share = n / 2_500
    what = f"{20 * n:,} curated, {60 * n:,} predicted rows"
    yield most("properties", f"{what}, s", seconds, 10 * share)
    yield most("properties", f"{what}, peak MB", peak, 1_000)
    yield most("properties", "the same with aliases, s", again, 2 * share)


def _crowd(n: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        seconds = _timed(_scoring(write_crowd(Path(name), n)))
    yield shown(f"{n:,} x {n:,} rows of one name in one paper, s", seconds)


def _names(n: int) -> Iterator[Row]:
    predicted, missed = frozenset(names(n, 1)), frozenset(names(n, 2))
    paper = Mismatch(refno="P0", predicted=predicted, missed=missed - predicted)
    seconds = _timed(lambda: list(near(paper, NEAREST)))
    share = (n / 5_000) ** 2
    yield most("properties", f"{n:,} x {n:,} names, s", seconds, max(0.5 * share, 0.02))


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
