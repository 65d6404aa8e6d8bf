"""Looking back from the command line: a run's log as it was, and the words for when."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from runner.cli.pace import paced
from store.clock import Clock
from store.database import LogReader, open_reader
from store.runs import RunFolder
from store.time_travel import LogPrefix, Moment, moment_named


@contextmanager
def looking_back(
    folder: RunFolder, name: str, clock: Clock
) -> Iterator[tuple[Moment, LogReader]]:
    """The moment that *name* means, and a reader of the log as it was then.

    Raises:
        NoSuchMoment: it cannot be read, or lies outside of the run.
        StoreError: the log cannot be read.
    """
    is_held = folder.is_alive()
    with open_reader(folder.log) as whole:
        moment = moment_named(whole, name, clock.now_us(), is_held=is_held)
    with LogPrefix(folder.log) as prefix:
        with paced(clock) as show:

            def tell(seq: int) -> bool:
                show(f"read {seq:,} of {moment.seq:,} events")
                return True

            prefix.move_to(moment, is_wanted=tell)
        with prefix.open_reader() as reader:
            yield moment, reader


def moment_json(moment: Moment) -> dict[str, Any]:
    """What is looked back on, for programs."""
    return {"at": {"seq": moment.seq, "time": _time(moment)}}


def moment_text(moment: Moment) -> str:
    """The same for people."""
    return f"after event {moment.seq:,}, at {_time(moment)}"


def _time(moment: Moment) -> str:
    when = datetime.fromtimestamp(moment.at_us // 1_000_000, UTC)
    micros = moment.at_us % 1_000_000
    return when.replace(microsecond=micros).isoformat(timespec="microseconds")
