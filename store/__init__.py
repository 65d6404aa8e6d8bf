"""The event log of siftlog: append, read, fold, verify. It knows no other package.

What others may import is declared here; import contracts hold them to it. Nothing is
imported by this module, so that a program which only reads loads only what it reads
with.

For authors of jobs:

- `printable`: text from outside, made harmless for a terminal
- `document`: blocks of a page, rendered as terminal text, Markdown or JSON
- `results`: parts of an item and their scores, as comparisons read them
- `statements`: SQL statements by name, for a job with a database of its own

For what jobs share, besides:

- `runs`, `database`, `errors`: folders of runs, and opening their logs
- `events`, `task`: what a log records
- `tables`, `scoring`: rows of a log, and the verdicts of its scorings
- `read.status`, `read.live`, `read.tasks`, `read.usage`: what a log says of its run
- `clock`: the one clock

For the monitor:

- `runs`, `database`, `errors`, `clock`, `printable`: as above
- `events`, `fold_state`, `task`, `tables`, `results`, `scoring`: what a log holds
- `read.status`, `read.live`, `read.tasks`, `read.usage`, `read.history`,
  `read.forecast`: what a log says of its run
- `query`, `time_travel`: filters, and a log as it was at an earlier moment
- `control`: requests to a run, and their answers

The runner may use all but how the log is folded, written and merged: `fold`,
`log.opening`, `log.writer`, `union.folding`, `union.parts`.
"""

__all__ = [
    "cache",
    "clock",
    "control",
    "database",
    "document",
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
    "served_by",
    "slices",
    "statements",
    "tables",
    "task",
    "time_travel",
    "union",
    "verify",
]
