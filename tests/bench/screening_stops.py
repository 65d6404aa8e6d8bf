"""How often the rule of a screening stops too early, and how much reading it saves.

`python -m tests.bench.screening_stops` prints the table of
`design/estimates-from-labels.md`: each kind of library with each ranking and rule.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from jobs.kit.metrics.intervals import wilson
from tests.bench.row import Row
from tests.bench.verdict import most, shown
from tests.jobs.screening.stop_study import (
    ALPHA,
    RANKERS,
    Ranker,
    StudyLibrary,
    StudyRow,
    real_libraries,
    simulated_library,
    study,
)

ROOT = Path(__file__).resolve().parents[2]
REALDATA = Path(os.environ.get("SIFTLOG_REALDATA", ROOT.parent / "shared" / "realdata"))
SEEDS = 50
SIMULATED = (
    *((1000, 0.01), (1000, 0.05), (3000, 0.05)),
    *((3000, 0.1), (10_000, 0.05), (10_000, 0.1)),
)
WITHOUT_TEXT: tuple[Ranker, ...] = ("model", "random")


def measure(quick: bool) -> list[Row]:
    """A row a kind of library, ranking and rule."""
    rows = []
    for library, ranker, found in studied(seeds=4 if quick else SEEDS, quick=quick):
        for row in found:
            what = f"{library}, {ranker} order, {row.rule}: stops below the target"
            bound = ALPHA if row.rule == "guarantee" else None
            rows += [
                most("stop rule", what, row.failures, bound),
                shown(f"{library}, {ranker} order, {row.rule}: share read", row.read),
            ]
    return rows


def studied(
    *, seeds: int, quick: bool
) -> Iterator[tuple[str, Ranker, list[StudyRow]]]:
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
