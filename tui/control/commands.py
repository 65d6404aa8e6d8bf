"""Sends commands to a run, and follows their outcome.

It appends lines to `control.jsonl`, and starts the command that records a scoring. If
no commands are allowed, there is no `CommandSender`, so no key, palette command or
later screen can send one by mistake.

Nothing waits for the outcome: a run may be slow, or not alive.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from store.clock import Clock
from store.control import (
    OPEN,
    Command,
    CommandOutcome,
    CommandPreview,
    CommandRecord,
    Payload,
    outcome_sentence,
    send_command,
)
from store.fold_state import US_PER_S
from store.runs import RunFolder
from tui.render.format import duration
from tui.sources.command import ChildProcess
from tui.sources.command_log import CommandRequests
from tui.sources.run_snapshot import RunSnapshot


class CommandSender(Protocol):
    """Sends commands to one run."""

    def ask(self, kind: str, payload: Payload, expected_state: str | None) -> str:
        """Append one command; return the id that its answers will have.

        Args:
            kind: a kind of `runner.run.control`.
            payload: its parameters.
            expected_state: refuse it if the run is in another state by then.

        Raises:
            OSError: the file cannot be written.
        """
        ...

    async def score(self) -> str:
        """Score the stored answers again; return the result in a few words.

        Raises:
            CommandFailed: the scoring failed; the message says why.
        """
        ...

    def close(self) -> None:
        """Stop a running scoring."""
        ...


class FolderCommandSender:
    """Sends commands by writing to the run's folder."""

    def __init__(self, folder: RunFolder, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._child = ChildProcess()

    def ask(self, kind: str, payload: Payload, expected_state: str | None) -> str:
        """Append one command; return the id that its answers will have."""
        command = Command.new(
            kind,
            payload,
            at_us=self._clock.now_us(),
            expected_state=expected_state,
        )
        send_command(self._folder, command)
        return command.id

    async def score(self) -> str:
        """Score the stored answers again, in a separate process."""
        (scored,) = await self._child.records("score", str(self._folder.path), "--json")
        return f"recorded as scoring {scored['scoring']}"

    def close(self) -> None:
        """Stop a running scoring."""
        self._child.close()


def control_of(
    folder: RunFolder, clock: Clock, *, is_read_only: bool = False
) -> CommandSender | None:
    """Return the sender of a run; None if commands are unwanted or not allowed."""
    if is_read_only or not os.access(folder.path, os.W_OK):
        return None
    return FolderCommandSender(folder, clock)


FREE_USD = 10.0
"""A retry that costs more must be confirmed with the run's name."""
FREE_TASKS = 1000
"""The same number of tasks if the cost is unknown."""


def expected_state(seen: RunSnapshot) -> str:
    """Return the state that the run must be in for a command of now.

    A process with a late heartbeat is live when it reads the command.
    """
    is_slow = seen.state == "quiet" or (seen.state == "lost" and seen.is_alive)
    return "live" if is_slow else seen.state


def requires_name(kind: str, preview: CommandPreview) -> bool:
    """Return whether the run's name must be typed: the effect is irreversible."""
    if kind == "retry":
        if preview.usd is None:
            return preview.tasks > FREE_TASKS
        return preview.usd > FREE_USD
    return kind == "cancel"


def is_futile(kind: str, preview: CommandPreview) -> bool:
    """Return whether the command would have no effect."""
    return kind == "retry" and not preview.tasks


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
"""Fields in which None is a value: no limit."""


def command_line(kind: str, payload: Payload, run_id: str) -> str:
    """Return the equivalent shell command.

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


TIMEOUT_S = 5.0
"""After this time a run without an answer is reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandNotice:
    """A notice about a command."""

    sentence: str  #: without a full stop
    is_bad: bool = False
    is_passing: bool = False  #: another notice follows soon


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedCommand:
    """A command, and the part of its outcome that was shown."""

    id: str
    words: str
    run_id: str
    requested_us: int
    answer: CommandOutcome = CommandOutcome.WAITING  #: the last one shown
    is_missed: bool = False  #: the missing answer was shown

    @property
    def is_over(self) -> bool:
        """Whether no further notice will follow."""
        return self.answer not in OPEN

    def see(
        self, requests: CommandRequests, now_us: int
    ) -> tuple[FollowedCommand, CommandNotice | None]:
        """Return the updated command, and a notice if there is news."""
        request = next(
            (record for record in requests.records if record.id == self.id), None
        )
        if request is not None and request.answer is not self.answer:
            return replace(self, answer=request.answer), _outcome_notice(self, request)
        if self.answer is CommandOutcome.WAITING and not self.is_missed:
            news = self._missing(requests, now_us)
            return replace(self, is_missed=news is not None), news
        return self, None

    def _missing(self, requests: CommandRequests, now_us: int) -> CommandNotice | None:
        if not requests.is_alive:
            return CommandNotice(
                sentence=f"Waiting: {self.words}: no process works on {self.run_id}; "
                f"'siftlog resume {self.run_id}' applies it"
            )
        if now_us - self.requested_us < TIMEOUT_S * US_PER_S:
            return None
        heartbeat_us = requests.heartbeat_us
        age = (
            None
            if heartbeat_us is None
            else max(0.0, (now_us - heartbeat_us) / US_PER_S)
        )
        return CommandNotice(
            sentence=f"Waiting: {self.words}: the run has not answered (heartbeat "
            f"{duration(age)} ago); a opens the commands log, W withdraws it there",
            is_bad=True,
        )


def _outcome_notice(followed: FollowedCommand, request: CommandRecord) -> CommandNotice:
    return CommandNotice(
        sentence=outcome_sentence(request.answer, followed.words, request.said),
        is_bad=request.answer is CommandOutcome.REJECTED,
        is_passing=request.answer in OPEN,
    )
