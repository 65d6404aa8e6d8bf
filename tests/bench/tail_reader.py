"""A reader in a process of its own: `python -m tests.bench.tail_reader LOG SECONDS`.

Polls the log every 20 ms as the monitor does, and prints how late each event was seen,
and how old the oldest event was that task states did not show.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from store.clock import SystemClock
from store.database import open_reader, read_transaction
from store.read.tasks import events
from store.tables import visible_seq

POLL_S = 0.02


def main() -> None:
    """Follow the log and print the delays and ages in ms, and the gaps, as JSON."""
    path, seconds = Path(sys.argv[1]), float(sys.argv[2])
    clock = SystemClock()
    delays: list[float] = []
    ages: list[float] = []
    gaps = 0
    with open_reader(path) as reader:
        after = len(events(reader, limit=1_000_000))
        print("ready", flush=True)
        end = clock.monotonic() + seconds
        while clock.monotonic() < end:
            with read_transaction(reader):
                page = events(reader, after=after, limit=2000)
                hidden = events(reader, after=visible_seq(reader), limit=1)
            now_us = clock.now_us()
            ages += [(now_us - row.ts_us) / 1000 for row in hidden]
            for row in page:
                gaps += row.seq != after + 1
                after = row.seq
                delays.append((now_us - row.ts_us) / 1000)
            time.sleep(POLL_S)
    print(json.dumps({"delays": delays, "ages": ages, "gaps": gaps}))


if __name__ == "__main__":
    main()
