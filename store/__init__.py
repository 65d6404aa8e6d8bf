"""The event log of siftlog: append, read, fold, verify. It knows no other package.

The public surface is the modules named here; the others are how they work. Nothing is
imported by this one, so that a program which only looks loads only what it looks with.
"""

__all__ = [
    "cache",
    "clock",
    "control",
    "database",
    "errors",
    "events",
    "filesystem",
    "fold_state",
    "log",
    "printable",
    "query",
    "read",
    "results",
    "runs",
    "scoring",
    "segments",
    "served",
    "slices",
    "tables",
    "task",
    "testing",
    "time_travel",
    "union",
    "verify",
]
