"""Finds the concurrency that earlier runs reached at the same endpoints.

A run that starts where another one ended, minutes ago, saves the slow start. Limits of
a rate are not taken over: at a known rate few slots are enough, and they fill quickly.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Final

from runner.errors import UsageError
from runner.options import RunOptions, options_from, read_toml
from store.database import open_reader
from store.errors import StoreError
from store.fold_state import US_PER_S
from store.read.status import status
from store.runs import RunFolder, list_runs

RECENT_S: Final = 3600.0
"""Endpoints change: what was reached longer ago is not taken over."""
MOST_RUNS: Final = 8
"""Runs that are looked at, the latest first."""


def reached_concurrency(
    folder: RunFolder, endpoints: Mapping[str, str], now_us: int
) -> dict[str, int]:
    """Return the calls at a time that models last reached at the same endpoints.

    The run's own earlier process counts, and other runs beside it that have ended. A
    model that no recent run used, or whose rate was limited, is left out.

    Args:
        folder: the run, whose log this process may already write.
        endpoints: the endpoint of each model, as `RunOptions.endpoint_of` names it.
        now_us: microseconds since 1970 UTC.
    """
    reached: dict[str, int] = {}
    for run in _recent_runs(folder, now_us):
        wanted = {m: name for m, name in endpoints.items() if m not in reached}
        if not wanted:
            break
        reached |= _reached_in(run, wanted, now_us)
    return reached


def _recent_runs(folder: RunFolder, now_us: int) -> Iterator[RunFolder]:
    """Yield the run itself, then those beside it, the latest first."""
    yield folder
    written_s = {
        run: _written_s(run)
        for run in list_runs(folder.path.parent)
        if run.run_id != folder.run_id
    }
    since_s = now_us / US_PER_S - RECENT_S
    recent = [run for run, at_s in written_s.items() if at_s >= since_s]
    recent.sort(key=lambda run: (-written_s[run], run.run_id))
    yield from (run for run in recent[:MOST_RUNS] if not run.is_alive())


def _written_s(run: RunFolder) -> float:
    """Return when its log was last written; 0 if that is unknown."""
    wal = run.log.with_name(f"{run.log.name}-wal")
    times = [file.stat().st_mtime for file in (run.log, wal) if file.is_file()]
    return max(times, default=0.0)


def _reached_in(
    run: RunFolder, endpoints: Mapping[str, str], now_us: int
) -> dict[str, int]:
    """Return what *run* reached; nothing if that is old or cannot be read."""
    try:
        options = _options_of(run)
        with open_reader(run.log) as reader:
            run_status = status(reader)
    except (StoreError, UsageError, OSError, sqlite3.Error):
        return {}  # it only saves seconds, so it is worth no message
    heartbeat = run_status.heartbeat
    if heartbeat is None or now_us - heartbeat.at_us > RECENT_S * US_PER_S:
        return {}
    return {
        seen.model: seen.concurrency
        for seen in run_status.limits
        if seen.rpm is None
        and seen.model in endpoints
        and options.endpoint_of(seen.model) == endpoints[seen.model]
    }


def _options_of(run: RunFolder) -> RunOptions:
    values = read_toml(run.config)
    return options_from(
        {k: v for k, v in values.items() if k not in {"job", "settings"}}
    )
