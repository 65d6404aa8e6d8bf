"""The event log of siftlog: append, read, fold, verify. It knows no other package.

What the engine needs stands here; what looks at a run from outside has modules of its
own: `store.views` (reading), `store.query` (filters), `store.estimates` (states),
`store.commands` (requests), `store.printable` (text made harmless), `store.verify`.
"""

from __future__ import annotations

from store.clock import Clock, SystemClock
from store.errors import (
    AmbiguousRun,
    CorruptLog,
    Fenced,
    IllegalMove,
    LogBehind,
    LogBusy,
    LogClosed,
    NewerLog,
    NoSuchRun,
    NotALog,
    QueryError,
    RunExists,
    StoreError,
)
from store.events import Blob, Entry, Event, PlannedTask, Recorded, Unknown
from store.log import Log, LogStatistics, Planning, StoredReply
from store.manifest import manifest_bytes, planned_tasks
from store.runs import RunFolder, list_runs, resolve
from store.sqlite import SqliteLog
from store.task import TaskRow, TaskState

__all__ = [
    "AmbiguousRun",
    "Blob",
    "Clock",
    "CorruptLog",
    "Entry",
    "Event",
    "Fenced",
    "IllegalMove",
    "Log",
    "LogBehind",
    "LogBusy",
    "LogClosed",
    "LogStatistics",
    "NewerLog",
    "NoSuchRun",
    "NotALog",
    "PlannedTask",
    "Planning",
    "QueryError",
    "Recorded",
    "RunExists",
    "RunFolder",
    "SqliteLog",
    "StoreError",
    "StoredReply",
    "SystemClock",
    "TaskRow",
    "TaskState",
    "Unknown",
    "list_runs",
    "manifest_bytes",
    "planned_tasks",
    "resolve",
]
