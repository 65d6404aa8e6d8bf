"""Names the commands that make sense for a run now, the same on every display."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from store.read.live import LiveStatus
from store.read.status import Status


@dataclass(frozen=True, slots=True)
class NextCommand:
    """A command line, and what it is for."""

    line: str
    about: str = ""  #: in a few words; empty: the line says it

    def __str__(self) -> str:
        """Return the line, with its purpose as a shell's comment."""
        return f"{self.line}  # {self.about}" if self.about else self.line


def next_commands(
    present: LiveStatus, run: str, explain: str = ""
) -> list[NextCommand]:
    """Return the commands, the most useful one first.

    Args:
        present: the run.
        run: the name of its folder, which commands take.
        explain: the item that the newest scoring explains first; empty: none.
    """
    run = shlex.quote(run)
    if present.state == "finished":
        return list(_at_end(present.status, run, explain))
    resume = NextCommand(
        f"siftlog resume {run}", "continue; stored answers are not paid again"
    )
    score = NextCommand(f"siftlog score {run}", "the answers so far")
    watch = NextCommand(f"siftlog watch {run}", "the monitor")
    stopped = [resume, score]
    if present.status.tasks.unparsed:
        stopped.append(_unparsed(run))
    raised = NextCommand(f"siftlog resume {run} --budget USD", "raise it")
    reopened = NextCommand(
        f"siftlog retry {run} --reason cancelled", "reopen its tasks"
    )
    lifted = NextCommand(f"siftlog resume {run}", "lift the pause")
    by_state = {
        "lost": stopped,
        "drained": stopped,
        "budget_stop": [raised, score],
        "cancelled": [score, reopened],
        "paused": [lifted, watch],
    }
    return by_state.get(present.state, [watch])


def _unparsed(run: str) -> NextCommand:
    return NextCommand(f"siftlog tasks {run} --filter state:unparsed")


def _at_end(status: Status, run: str, explain: str) -> Iterator[NextCommand]:
    if not status.scorings:
        yield NextCommand(f"siftlog score {run}")
    if status.tasks.failed and not status.imported:
        retry = f"siftlog retry {run} && siftlog resume {run}"
        yield NextCommand(retry, "the failed tasks")
    if status.tasks.unparsed:
        yield _unparsed(run)
    if explain:
        # an item's name comes from the data
        line = f"siftlog explain {run} {shlex.quote(explain)}"
        yield NextCommand(line, "how an item was judged")
    if len(status.models.get("subject", ())) > 1:
        yield NextCommand(f"siftlog compare {run}", "which model is better?")
    yield NextCommand(f"siftlog watch {run}", "every task, prompt and reply")
