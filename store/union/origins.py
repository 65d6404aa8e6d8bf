"""Translates the numbers of events between a union and its logs.

The numbers of a union depend on the order of merging, those of a log never change. A
reference that must last, such as that of a fork, names a log and the number there.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from typing import NamedTuple

from store.statements import queries


class Origin(NamedTuple):
    """An event of one of the logs."""

    log: str  #: hex id of its first writer
    seq: int


class Origins:
    """The events of a union, by their number there and by their number in their log.

    It has those that were merged when it was made.
    """

    def __init__(self, union: sqlite3.Connection) -> None:
        """Read which events are of which log; in memory by the number of merges."""
        self._seqs: list[int] = []
        self._origins: list[Origin] = []
        self._of_log: dict[str, tuple[list[int], list[int]]] = {}
        for seq, log_seq, log in union.execute(
            queries("union")["stretches"]
        ).fetchall():
            self._seqs.append(seq)
            self._origins.append(Origin(log, log_seq))
            log_seqs, seqs = self._of_log.setdefault(log, ([], []))
            log_seqs.append(log_seq)
            seqs.append(seq)

    def origin(self, seq: int) -> Origin:
        """Return which event of which log an event of the union is."""
        at = bisect_right(self._seqs, seq) - 1
        log, log_seq = self._origins[at]
        return Origin(log, log_seq + seq - self._seqs[at])

    def seq(self, log: str, log_seq: int) -> int | None:
        """Return the number of a log's event in the union; None: it is not there."""
        log_seqs, seqs = self._of_log.get(log, ([], []))
        at = bisect_right(log_seqs, log_seq) - 1
        if at < 0:
            return None
        seq = seqs[at] + log_seq - log_seqs[at]
        return seq if self.origin(seq) == (log, log_seq) else None
