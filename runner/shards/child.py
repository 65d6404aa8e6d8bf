"""Runs the command `siftlog` tied to the process that started it.

`python -m runner.shards.child SIGNAL WORDS...` runs `siftlog WORDS...`. Its standard
input is a pipe without writes: it closes when the parent dies for any reason, and then
this process sends itself SIGNAL: SIGTERM to finish its calls, SIGKILL to die with its
parent.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from runner.cli.main import main


def _heed(number: signal.Signals) -> None:
    """Wait for the end of standard input."""
    os.read(0, 1)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    ending = signal.Signals[sys.argv.pop(1)]
    threading.Thread(target=_heed, args=(ending,), daemon=True).start()
    main()
