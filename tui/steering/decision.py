"""What a decision amounts to: how grave it is, and what says it on a command line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from store.commands import Payload
from store.stakes import Stakes
from tui.sources.sight import Snapshot

FREE_USD = 10.0
"""A retry that costs more is confirmed by the run's name: the price of a slip."""
FREE_TASKS = 1000
"""The same where its cost is not known."""


def expected_state(seen: Snapshot) -> str:
    """The state that the run must be in for a decision of now to count.

    A process that is only slow to say so is live by the time that it reads the request.
    """
    is_slow = seen.state == "quiet" or (seen.state == "lost" and seen.is_alive)
    return "live" if is_slow else seen.state


def is_named(kind: str, stakes: Stakes) -> bool:
    """Whether the run's name must be typed: what it does cannot be taken back."""
    if kind == "retry":
        if stakes.usd is None:
            return stakes.tasks > FREE_TASKS
        return stakes.usd > FREE_USD
    return kind == "cancel"


def is_futile(kind: str, stakes: Stakes) -> bool:
    """Whether nothing would happen."""
    return kind == "retry" and not stakes.tasks


_VERBS: Mapping[str, str] = {"withdraw": "commands"}
_FLAGS: Mapping[str, str] = {
    "stage": "--stage",
    "model": "--model",
    "concurrency": "--concurrency",
    "rpm": "--rpm",
    "tpm": "--tpm",
    "add_usd": "--add",
    "filter": "--filter",
    "now": "--now",
    "id": "--withdraw",
}
_NONE = frozenset({"rpm", "tpm"})
"""Where nothing is a value: no limit."""


def command_line(kind: str, payload: Payload, run_id: str) -> str:
    """What does the same without the monitor.

    >>> command_line("limits", {"model": "m", "rpm": None}, "r1")
    'siftlog limits r1 --model m --rpm none'
    """
    words = ["siftlog", _VERBS.get(kind, kind), run_id]
    for key, value in payload.items():
        if value is True:
            words.append(_FLAGS[key])
        elif value is None and key in _NONE:
            words += [_FLAGS[key], "none"]
        elif value is not None and value is not False:
            number = f"{value:.10g}" if isinstance(value, float) else str(value)
            words += [_FLAGS[key], number]
    return shlex.join(words)
