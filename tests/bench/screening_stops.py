"""How often the rule of a screening stops too early, and how much reading it saves.

`python -m tests.bench.screening_stops` prints the table of
`design/estimates-from-labels.md`: each kind of library with each ranking and rule.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from jobs.kit.metrics.intervals import wilson
from jobs.screening.inputs import load
from jobs.screening.settings import ScreeningSettings
from jobs.stopping.certificate import LABELS, read_copies
from jobs.stopping.certificate_check import check_certificate
from jobs.stopping.library import open_library
from tests.bench.row import Row
from tests.bench.verdict import most, shown
from tests.jobs.screening.stop_study import (
    ALPHA,
    RANKERS,
    TARGET,
    Ranker,
    StudyLibrary,
    StudyRow,
    real_libraries,
    simulated_library,
    study,
)
from tests.jobs.stopping.libraries import certified, screened, site

ROOT = Path(__file__).resolve().parents[2]
REALDATA = Path(os.environ.get("SIFTLOG_REALDATA", ROOT.parent / "shared" / "realdata"))
SEEDS = 50
STOPS = "stop rule"
SIMULATED = (
    *((1000, 0.01), (1000, 0.05), (3000, 0.05)),
    *((3000, 0.1), (10_000, 0.05), (10_000, 0.1)),
)
WITHOUT_TEXT: tuple[Ranker, ...] = ("model", "random")


def measure(quick: bool) -> list[Row]:
    """Rows of each kind of library and ranking."""
    rows = []
    for library, ranker, found in studied(seeds=4 if quick else SEEDS, quick=quick):
        by_rule = {row.rule: row for row in found}
        guarantee, oracle = by_rule.pop("guarantee"), by_rule.pop("oracle")
        worst = max(row.failures for row in by_rule.values())
        what = f"{library}, {ranker} order"
        below = f"{what}: stops below the target"
        rows += [
            most(STOPS, below, guarantee.failures, ALPHA),
            shown(f"{below}, worst rule of thumb", worst, STOPS),
            shown(f"{what}: share read", guarantee.read, STOPS),
            shown(f"{what}: share read, oracle", oracle.read, STOPS),
        ]
    return [*rows, _certificate(500 if quick else 2000)]


def _certificate(records: int) -> Row:
    """Processor time of a check, in times of reading library and label logs."""
    with tempfile.TemporaryDirectory() as name:
        library = site(Path(name), records, records * 3 // 20, target=TARGET)
        asyncio.run(screened(library))
        path = asyncio.run(certified(library)).path
        shutil.copy(Path(name) / "library.ris", path.parent)
        settings = ScreeningSettings(library=(path.parent / "library.ris",))

        def read() -> None:
            open_library(load(settings))
            read_copies(path.parent / LABELS)

        def checked() -> None:
            if problems := check_certificate(path).problems:
                raise RuntimeError(problems[0])

        pairs = [(_seconds(checked), _seconds(read)) for _ in range(15)]
    check, reading = (min(seconds) for seconds in zip(*pairs, strict=True))
    what = "check of a certificate, in times of reading library and label logs"
    return most("certificate", what, check / reading, 2.0)


def _seconds(action: Callable[[], None]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


def studied(*, seeds: int, quick: bool) -> Iterator[tuple[str, Ranker, list[StudyRow]]]:
    """Studies of all kinds of libraries; real ones where they are at hand."""
    groups: dict[str, list[StudyLibrary]] = {}
    for library in real_libraries(REALDATA):
        kind = "Cochrane reviews" if library.scores is not None else "drug reviews"
        groups.setdefault(kind, []).append(library)
    for records, prevalence in SIMULATED[:1] if quick else SIMULATED:
        name = f"simulated, {records:,} records, {prevalence:.0%} relevant"
        groups[name] = [simulated_library(records, prevalence, 7)]
    for name, libraries in groups.items():
        for ranker in RANKERS if libraries[0].texts else WITHOUT_TEXT:
            yield name, ranker, study(libraries, ranker, seeds)


def main() -> None:
    """Print the table, a study a line."""
    for library, ranker, rows in studied(seeds=SEEDS, quick="--quick" in sys.argv):
        cells = []
        for row in rows:
            failed = sum(stop.misses for stop in row.stops)
            ends = wilson(failed, len(row.stops))
            cell = f"{row.failures:.1%}"
            if row.rule == "guarantee":
                cell += f" ({100 * (ends.lo or 0):.1f} to {100 * (ends.hi or 0):.1f})"
            cells.append(f"{cell}, {row.read:.2f}")
        stops = len(rows[0].stops)
        print("|", " | ".join([library, ranker, f"{stops:,}", *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
