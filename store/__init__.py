"""The event log of siftlog: append, read, fold, verify. It knows no other package.

The public surface is the modules named here; the others are how they work. Nothing is
imported by this one, so that a program which only looks loads only what it looks with.
"""

__all__ = [
    "asked",
    "cache",
    "cache_thread",
    "clock",
    "commands",
    "connect",
    "courses",
    "errors",
    "estimates",
    "event_query",
    "events",
    "expected",
    "forecast",
    "limit_words",
    "lock",
    "log",
    "manifest",
    "milestone",
    "moment",
    "prefix",
    "present",
    "printable",
    "query",
    "runs",
    "scope",
    "spending",
    "sqlite",
    "stakes",
    "statements",
    "sums",
    "task",
    "testing",
    "verdicts",
    "verify",
    "views",
]
