"""Counts what passes through a client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from runner.clients.client import ClientStatistics
from runner.errors import AttemptError


@dataclass(slots=True)
class Tally:
    """The figures behind `ModelClient.statistics`."""

    in_flight: int = 0
    answered: int = 0
    failed: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Count one attempt, however it ends; a cancelled one is neither."""
        self.in_flight += 1
        try:
            yield
            self.answered += 1
        except AttemptError:
            self.failed += 1
            raise
        finally:
            self.in_flight -= 1

    def statistics(self) -> ClientStatistics:
        """The figures as a value."""
        return ClientStatistics(
            in_flight=self.in_flight,
            answered=self.answered,
            failed=self.failed,
            bytes_sent=self.bytes_sent,
            bytes_received=self.bytes_received,
        )
