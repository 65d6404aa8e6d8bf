"""Errors of the store, split by what the caller can do.

    StoreError
      NotALog        the file is something else: name another run
      NewerLog       written by a later siftlog: upgrade, or read only
      CorruptLog     damaged: restore a copy; `siftlog verify` says where
        EventsLost   acknowledged events are gone: restore them, or --accept-loss
      LogBusy        another process writes it: wait, or look with `watch`
      Fenced         another writer took the log over: stop at once
      Unwritable     no file can be written there: free space, or another folder
      LogClosed      a commit failed and the writer stopped: mend, then resume
        CommitRefused  ... because the disk refused it; also Unwritable
      LogBehind      too much waits to be written: await an append
      RunExists      a run of that id is there: resume it, or choose another id
      NoSuchRun      nothing under that name: list them with `siftlog runs`
      AmbiguousRun   several runs begin like that: type more of the name
      PlaceAway      where segments are kept cannot be used now: go on, try again
      Unshipped      too much waits to be carried there: mend the place, then resume
      CacheUnusable  the response cache cannot be used: a run goes on without it
      NoSuchName     a run has no stage or model of that name: use one of its own
      NoSuchMoment   a run has no such moment to be looked back on: name another
      QueryError     a filter could not be read; carries the position
      IllegalMove    a bug: an event that the task's state does not allow

Every message is one sentence with the next step.
"""

from __future__ import annotations


class StoreError(Exception):
    """Base class of the store's errors; the message says what to do next."""


class NotALog(StoreError):
    """The file or folder is not a siftlog run."""


class NewerLog(StoreError):
    """The log was written by a later siftlog than this one."""


class CorruptLog(StoreError):
    """The log is damaged."""


class EventsLost(CorruptLog):
    """Acknowledged events are missing or changed."""


class LogBusy(StoreError):
    """Another process is writing the log."""


class Fenced(StoreError):
    """Another writer has taken the log over; nothing more can be appended."""


class Unwritable(StoreError):
    """A file cannot be written where it is: no space, no right, or not such a file."""


class LogClosed(StoreError):
    """A commit failed, so the writer stopped; acknowledged events are safe."""


class CommitRefused(LogClosed, Unwritable):
    """The disk refused a commit, so the writer stopped."""


class LogBehind(StoreError):
    """More waits to be written than may; only `append_nowait` raises it."""


class RunExists(StoreError):
    """There is a run where a new one was to be made."""


class NoSuchRun(StoreError):
    """No run has that id, prefix or folder."""


class AmbiguousRun(StoreError):
    """Several runs have that prefix."""


class NoSuchName(StoreError):
    """The run has no stage or model of that name."""


class NoSuchMoment(StoreError):
    """The moment could not be parsed, or is outside the run."""


class IllegalMove(StoreError):
    """An event does not fit the state of its task."""


class CacheUnusable(StoreError):
    """The response cache is damaged, of a later version, foreign, or out of reach."""


class PlaceAway(StoreError):
    """The place for segments cannot be read or written now."""


class Unshipped(StoreError):
    """More data waits to be shipped than may be lost with this machine."""


class QueryError(StoreError):
    """A filter expression could not be read."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position  #: index of the offending character


def ignore_progress(line: str) -> None:
    """Ignores progress."""
    del line
