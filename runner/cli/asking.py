"""How a verb asks something of a run: one line written, the answer waited for."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runner.cli.speech import DONE, ERROR, record, tell
from runner.cli.stand import state_of
from runner.errors import RunnerError, UsageError
from store.clock import SystemClock
from store.control import (
    Command,
    CommandPreview,
    Payload,
    preview_sentence,
    recorded_outcomes,
    send_command,
)
from store.database import open_reader
from store.events import CommandAccepted, CommandApplied, CommandRejected
from store.read.status import status
from store.runs import RunFolder, places_in, resolve
from store.tables import last_seq

CLOCK = SystemClock()

PATIENCE_S = 5.0
LOOK_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How to ask; the options that all verbs of control share."""

    folder: RunFolder
    dry_run: bool
    if_state: str | None
    waits: bool
    as_json: bool


def manner(given: Mapping[str, Any]) -> Manner:
    """The manner from a verb's options."""
    return Manner(
        folder=resolve(Path(given["runs_dir"]), given["run_name"]),
        dry_run=given["dry_run"],
        if_state=given["if_state"],
        waits=given["wait"],
        as_json=given["as_json"],
    )


def show_dry(
    manner: Manner, kind: str, payload: Payload, stakes: CommandPreview
) -> int:
    """Say what would happen."""
    run_id = manner.folder.run_id
    if manner.as_json:
        record({"run": run_id, "kind": kind, "dry_run": True, **asdict(stakes)})
    tell(preview_sentence(kind, payload, stakes, run_id))
    return DONE


def lift(
    folder: RunFolder, stage: str | None, model: str | None, *, as_json: bool
) -> int:
    """Let a live run go on that was paused, or the part of it that is named."""
    how = Manner(
        folder=folder, dry_run=False, if_state=None, waits=True, as_json=as_json
    )
    return ask(how, "resume", {"stage": stage, "model": model})


def ask_live(manner: Manner, kind: str, payload: Payload) -> int:
    """Ask what only a live process can do."""
    folder = manner.folder
    if not folder.is_alive() and _is_elsewhere(folder):
        raise UsageError(
            f"No process of run {folder.run_id} is at work in {folder.path}, and "
            f"shards elsewhere do not hear what is asked here: {kind} them where they "
            "are; a signal (SIGTERM, scancel) drains a shard."
        )
    if not folder.is_alive():
        raise UsageError(
            f"Run {folder.run_id} is not alive; there is nothing to {kind}."
        )
    return ask(manner, kind, payload)


def ask(manner: Manner, kind: str, payload: Payload, **figures: object) -> int:
    """Write the request and, unless told not to, wait for what becomes of it."""
    folder = manner.folder
    _check_state(manner)
    with open_reader(folder.log) as reader:
        before = last_seq(reader)
    command = Command.new(
        kind, payload, at_us=CLOCK.now_us(), expected_state=manner.if_state
    )
    is_alive = folder.is_alive()
    send_command(folder, command)
    tell(f"Asked {folder.run_id}: {kind}{_counted(figures)}.")
    answer, said = "queued", None
    if not is_alive:
        here = "The run is not alive"
        if _is_elsewhere(folder):
            here = "Shards elsewhere do not hear of it, and none is at work here"
        tell(f"{here}: siftlog resume {folder.run_id} takes it up.")
    elif manner.waits:
        answer, said = _wait(folder, command.id, before)
    if manner.as_json:
        shown = {"run": folder.run_id, "command": command.id, "kind": kind}
        record({**shown, **figures, "answer": answer, "said": said})
    return ERROR if answer == "rejected" else DONE


def _is_elsewhere(folder: RunFolder) -> bool:
    """Whether logs of the run may be written in other folders, on any machine."""
    return bool(places_in(folder.places))


def _counted(figures: Mapping[str, object]) -> str:
    return f" of {figures['tasks']} tasks" if "tasks" in figures else ""


def _check_state(manner: Manner) -> None:
    """Refuse at once what was decided on another state than the run is in."""
    if manner.if_state is None:
        return
    with open_reader(manner.folder.log) as reader:
        state = state_of(status(reader), manner.folder, CLOCK)
    if state != manner.if_state:
        raise RunnerError(
            f"Run {manner.folder.run_id} is now {state}, not {manner.if_state}; "
            "nothing was asked."
        )


def _wait(folder: RunFolder, command: str, before: int) -> tuple[str, str | None]:
    """The answer that came in time, and what it says; shows it as it comes."""
    answer = "queued"
    until = CLOCK.monotonic() + PATIENCE_S
    while CLOCK.monotonic() < until:
        is_alive = folder.is_alive()
        folder.refresh()
        with open_reader(folder.log) as reader:
            rows = recorded_outcomes(reader, before)
        for event in (row.event for row in rows):
            match event:
                case CommandRejected(command=of, reason=reason) if of == command:
                    tell(f"siftlog: Refused: {reason}.")
                    return "rejected", reason
                case CommandApplied(command=of, effect=effect) if of == command:
                    tell(f"Applied: {effect}.")
                    return "applied", effect
                case CommandAccepted(command=of) if of == command:
                    if answer == "queued":
                        tell("Accepted.")
                    answer = "accepted"
                case _:
                    pass
        if not is_alive:
            break
        time.sleep(LOOK_S)
    tell(_unanswered(folder, answer))
    return answer, None


def _unanswered(folder: RunFolder, answer: str) -> str:
    run = folder.run_id
    if answer == "accepted":
        return f"It takes its time; see: siftlog status {run}"
    if not folder.is_alive():
        return f"The run ended before it answered; see: siftlog status {run}"
    with open_reader(folder.log) as reader:
        beat = status(reader).heartbeat
    age = (
        "never" if beat is None else f"{(CLOCK.now_us() - beat.at_us) / 1e6:.0f} s ago"
    )
    return (
        f"The run has not answered (heartbeat {age}); the command stays queued: "
        f"siftlog commands {run} lists and withdraws what waits."
    )
