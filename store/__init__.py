"""The event log of siftlog: append, read, fold, verify. It knows no other package.

The modules below are the public interface; import contracts enforce it. Nothing is
imported by this module, so a program that only reads a log loads nothing else.

For authors of jobs:

- `printable`: text from outside, made harmless for a terminal
- `document`: blocks of a page, rendered as terminal text, Markdown or JSON
- `results`: parts of an item and their scores, as comparisons read them
- `statements`: SQL statements by name, for a job with a database of its own

For the code that jobs share, in addition:

- `runs`, `database`, `errors`: folders of runs, and opening their logs
- `events`, `lineage`, `task`: what a log records
- `labels.events`, `labels.fold`, `labels.folder`, `labels.writer`: labels of people
- `tables`, `scoring`, `verdicts`: rows of a log, and the verdicts of its scorings
- `time_travel`: earlier states of a log
- `read.status`, `read.live`, `read.tasks`, `read.usage`, `read.course`: what a log
  reports about its run
- `clock`: the one clock
- `nearest`: names like a misspelt one

For the monitor:

- `runs`, `database`, `errors`, `clock`, `printable`, `document`: as above
- `json_text`: JSON of a reply, rendered for people
- `events`, `lineage`, `fold_state`, `task`, `tables`, `results`, `verdicts`: what a
  log holds, and what its scorings say of it
- `labels.events`: what a label log holds
- `titles`: titles of a run's items
- `read.status`, `read.live`, `read.tasks`, `read.usage`, `read.history`, `read.course`,
  `read.forecast`, `read.limits`, `read.next_steps`: what a log reports about its run
- `query`, `time_travel`: filters, and the state of a log at an earlier moment
- `control`: requests to a run, and their answers

The runner may use everything except the modules that fold, write and merge logs:
`fold`, `log.committer`, `log.opening`, `log.writer`, `union.folding`, `union.parts`.
"""

__all__ = [
    "cache",
    "clock",
    "code_fingerprint",
    "control",
    "database",
    "document",
    "errors",
    "events",
    "filesystem",
    "fold_state",
    "forked",
    "json_text",
    "labels",
    "lineage",
    "log",
    "nearest",
    "notable",
    "outcomes",
    "printable",
    "query",
    "read",
    "redacted_log",
    "removal",
    "results",
    "runs",
    "scoring",
    "segments",
    "served_by",
    "shadowing",
    "slices",
    "statements",
    "tables",
    "task",
    "time_travel",
    "titles",
    "union",
    "verdicts",
    "verify",
]
