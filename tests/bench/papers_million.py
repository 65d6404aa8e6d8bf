"""A database of a million papers: its import, its coverage of truth papers, its search.

PubMed files are invented first (`tests.bench.pubmed`) and imported by the command
itself. Rates are of the clock, so they need a machine that does nothing else. Beside
each figure stands what the plain way takes in the same run: a record at a time with an
index kept by triggers, difflib on every title, and reading all texts.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path

import numpy as np

from jobs.review_benchmark.coverage import measure_coverage
from jobs.review_benchmark.data import Review, SearchQuery, TruthPaper, expression
from jobs.review_benchmark.database.formats import read_papers
from jobs.review_benchmark.database.papers import ImportedRecord, normalise_record
from jobs.review_benchmark.database.reader import SQL, PaperDatabase, writer
from jobs.review_benchmark.matching import METHODS
from tests.bench.pubmed import Library, write_pubmed
from tests.bench.row import Row
from tests.bench.verdict import least, most, shown
from tests.processes import SIFTLOG

TARGET = "papers"
FILE = 50_000
TRUTH = 1_000
SEARCHES = 200
NAIVE = 10_000
"""Records, or pairs of titles, that the plain way is tried on."""

BY_ROW = """
CREATE TRIGGER naive AFTER INSERT ON papers BEGIN
    INSERT INTO papers_fts (rowid, title, abstract)
    VALUES (new.id, new.title, new.abstract);
END;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a process took."""

    seconds: float
    cpu_s: float
    peak_mb: float


def measure(quick: bool) -> list[Row]:
    """Import in two steps, to see memory and speed at two sizes; then look-ups."""
    n_files = 2 if quick else 20
    bound = None if quick else 1.0
    library = Library()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [folder / f"pubmed{number:02}.xml.gz" for number in range(n_files)]
        for number, path in enumerate(files):
            write_pubmed(path, library, 1 + number * FILE, FILE)
        database = folder / "papers.db"
        first = _import(database, files[:1])
        rest = _import(database, files[1:])
        n = FILE * (n_files - 1)
        naive = _naive_rate(folder, files[0])
        rows = [
            least(
                TARGET,
                f"{n:,} more records imported, a second",
                n / rest.seconds,
                5_000,
            ),
            shown("the same, of processor time", n / rest.cpu_s, TARGET),
            shown("a record at a time, by triggers, of processor time", naive, TARGET),
            shown(f"peak of the first {FILE:,}, MB", first.peak_mb, TARGET),
            most(
                TARGET,
                "peak of the others, of that",
                rest.peak_mb / first.peak_mb,
                1.25,
            ),
            shown("bytes a paper", database.stat().st_size / (FILE * n_files), TARGET),
        ]
        with closing(PaperDatabase(database)) as papers:
            rows += _coverage(papers, bound and 60)
            rows += _search(papers, library, bound and 100)
    return rows


def _import(database: Path, files: Sequence[Path]) -> Cost:
    words = ("prepare", "review-benchmark", "import", "--database", database, *files)
    began = time.perf_counter()
    process = subprocess.Popen(
        [SIFTLOG, *map(str, words)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise RuntimeError(f"the import ended with {process.returncode}")
    return Cost(
        seconds=time.perf_counter() - began,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mb=usage.ru_maxrss / 1024,
    )


def _naive_rate(folder: Path, path: Path) -> float:
    """Records a second of processor time, reading included."""
    with closing(writer(folder / "naive.db")) as connection:
        connection.executescript(BY_ROW)
        began = time.process_time()
        connection.execute("BEGIN")
        for number, entry in enumerate(
            islice(read_papers(path, "pubmed", {}), NAIVE), 1
        ):
            assert isinstance(entry, ImportedRecord)
            connection.execute(SQL["id_by_pmid"], (entry.pmid,))
            paper = replace(normalise_record(entry).paper, id=number)
            connection.execute(SQL["add"], paper.row)
        connection.execute("COMMIT")
        return NAIVE / (time.process_time() - began)


def _coverage(database: PaperDatabase, bound: float | None) -> list[Row]:
    """Truth papers of which a quarter each has a PMID, a DOI, a near title, nothing."""
    chance = random.Random(1)
    studies = []
    n_papers = len(database)
    for number in range(TRUTH):
        paper = database.paper(chance.randint(1, n_papers))
        assert paper is not None
        words = paper.title.split()
        chance.shuffle(words)
        studies.append(
            (
                TruthPaper(pmid=paper.pmid, title=paper.title),
                TruthPaper(doi=paper.doi, title=paper.title),
                TruthPaper(title=f"{paper.title[:-4]}."),
                TruthPaper(title=" ".join(words)),
            )[number % 4]
        )
    review = Review(id="x", title="x", question="x", studies=tuple(studies))
    began = time.perf_counter()
    found = measure_coverage(
        [review], database, keys=tuple(METHODS), cutoff=0.85, autojunk=True
    )
    seconds = time.perf_counter() - began
    plain = _difflib_s([each.title for each in studies], n_papers)
    return [
        most(TARGET, f"coverage of {TRUTH:,} truth papers, s", seconds, bound),
        shown(
            "found of them",
            sum(each.present is not None for each in found),
            TARGET,
        ),
        shown("difflib on every title, in a straight line, s", plain, TARGET),
    ]


def _difflib_s(titles: Sequence[str], papers: int) -> float:
    began = time.perf_counter()
    for number in range(NAIVE):
        other = titles[(7 * number + 1) % len(titles)]
        SequenceMatcher(None, titles[number % len(titles)], other).ratio()
    return (time.perf_counter() - began) / NAIVE * len(titles) * papers


def _search(
    database: PaperDatabase, library: Library, bound: float | None
) -> list[Row]:
    """Queries as plans have them: a rare group of words, and one that narrows it."""
    chance = random.Random(2)
    n_words = len(library.words)

    def group(least_rank: int, most_rank: int) -> tuple[str, ...]:
        ranks = (chance.randint(least_rank, most_rank) for _ in range(3))
        return tuple(library.words[min(rank, n_words - 1)] for rank in ranks)

    narrow = [(group(500, 20_000), group(100, 1_000)) for _ in range(SEARCHES)]
    rows = []
    for what, groups, goal in (
        ("search for two groups of words", narrow, bound),
        ("search for any of six common words", [(group(5, 50) * 2,)] * 5, None),
    ):
        taken = []
        for each in groups:
            asked = expression(SearchQuery(label="x", all_of=each))
            began = time.perf_counter()
            database.search(asked, (0, 9999), 200)
            taken.append(1000 * (time.perf_counter() - began))
        rows += [
            most(TARGET, f"{what}, ms, p50", float(np.percentile(taken, 50)), goal),
            most(TARGET, f"{what}, ms, p99", float(np.percentile(taken, 99)), goal),
        ]
    began = time.perf_counter()
    word = library.words[700]
    sum(word in paper.abstract for paper in islice(database.papers(), FILE))
    seconds = (time.perf_counter() - began) * len(database) / FILE
    return [*rows, shown("reading all texts for a word, ms", 1000 * seconds, TARGET)]
