"""All benches: `make bench`, or `python -m tests.bench [--quick] [NAME...]`.

Runs the modules here that are called `calls_*`, `estimates_*`, `forecast_*`,
`limits_*`, `log_*`, `papers_*`, `plan_*`, `score_*`, `screening_*`, `start_*` or
`tui_*`, in that order, and prints one table. A full run keeps it in
`tests/bench/RESULTS.md`, between the two markers; `--quick`, or
naming some modules, only prints.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.bench.measuring import measured
from tests.bench.row import Row

HERE = Path(__file__).resolve().parent
KEPT = HERE / "RESULTS.md"
PREFIXES = (
    *("calls_", "estimates_", "forecast_", "limits_", "log_", "papers_", "plan_"),
    *("score_", "screening_", "start_", "tui_"),
)
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def main() -> None:
    """Run what was asked for; a missed target is shown, and is no failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--quick", action="store_true", help="small, and not kept")
    parser.add_argument("names", nargs="*", help="modules to run; none: all of them")
    given = parser.parse_args()
    names = sorted(
        path.stem for path in HERE.glob("*.py") if path.stem.startswith(PREFIXES)
    )
    if unknown := sorted(set(given.names) - set(names)):
        parser.error(f"no bench is called {unknown[0]}; there are {', '.join(names)}")
    rows: list[Row] = []
    # a process each: a child's peak memory begins at that of who forked it
    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        for name in given.names or names:
            print(f"{name} ...", file=sys.stderr, flush=True)
            rows += pool.submit(measured, name, quick=given.quick).result()
    table = markdown(rows)
    print(table)
    if not given.quick and not given.names:
        keep(KEPT, f"{machine()}\n\n{table}")


def markdown(rows: list[Row]) -> str:
    """The table; a row without a goal is there for orientation."""
    lines = ["| target | what | value | goal | |", "|---|---|---|---|---|"]
    for row in rows:
        verdict = "" if not row.goal else "met" if row.met else "**missed**"
        lines.append(
            f"| {row.target} | {row.what} | {_figure(row.value)} | {row.goal} "
            f"| {verdict} |"
        )
    return "\n".join(lines)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def machine() -> str:
    """What the figures depend on, without saying whose machine it is."""
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()} ({platform.python_build()[1]}, "
        f"{platform.python_compiler()}), SQLite {sqlite3.sqlite_version}."
    )


def keep(path: Path, text: str) -> None:
    """Put *text* between the markers of the file at *path*."""
    content = path.read_text("utf-8")
    before, found, rest = content.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise SystemExit(f"{path.name} has lost its markers {BEGIN} and {END}.")
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
