"""Commands that control a live run: pause, drain, cancel, retry, commands.

A command appends one line to the run's control log and waits for the run's answer.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import arguments
from runner.cli.console import DONE, ERROR, print_json, print_note, print_text
from runner.errors import RunnerError, UsageError
from store.clock import SystemClock
from store.control import (
    Command,
    CommandOutcome,
    CommandPreview,
    Payload,
    outcome_sentence,
    preview_sentence,
    recorded_outcomes,
    send_command,
    words_of,
)
from store.database import open_reader
from store.document import plural
from store.events import CommandAccepted, CommandApplied, CommandRejected
from store.read.status import STATES, Status, liveness, status
from store.runs import RunFolder, places_in, resolve
from store.tables import last_seq

if TYPE_CHECKING:
    from store.control import CommandRecord


control_options = arguments.options_of(
    click.option(
        "--dry-run", is_flag=True, help="Show what would happen, without doing it."
    ),
    click.option(
        "--if-state",
        type=click.Choice(STATES),
        metavar="STATE",
        help=f"Only if the run is in this state: {', '.join(STATES)}.",
    ),
    click.option(
        "--wait/--no-wait", default=True, help="Wait up to 5 s for the run to respond."
    ),
    arguments.runs_dir,
    arguments.as_json,
)
"""Options of every command that is sent to a run."""


@click.command()
@arguments.run_argument
@click.option("--stage", help="Only this stage.")
@click.option("--model", help="Only this model.")
@control_options
def pause(*, stage: str | None, model: str | None, **shared: Any) -> int:
    """Pause RUN, or one of its stages or models: start no further call.

    Calls in flight finish, and the process stays alive. Continue with siftlog resume
    RUN.
    """
    from store.control import preview_open_tasks
    from store.database import open_reader

    manner = control_request(**shared)
    scope = {"stage": stage, "model": model}
    if not manner.dry_run:
        return ask_live(manner, "pause", scope)
    with open_reader(manner.folder.log) as reader:
        preview = preview_open_tasks(reader, stage, model)
    return show_dry(manner, "pause", scope, preview)


@click.command()
@arguments.run_argument
@control_options
def drain(**shared: Any) -> int:
    """Let RUN finish its calls in flight and stop; it can be resumed."""
    from store.control import preview_open_tasks
    from store.database import open_reader

    manner = control_request(**shared)
    if not manner.dry_run:
        return ask_live(manner, "drain", {})
    with open_reader(manner.folder.log) as reader:
        preview = preview_open_tasks(reader)
    return show_dry(manner, "drain", {}, preview)


@click.command()
@arguments.run_argument
@click.option("--now", is_flag=True, help="Also abort calls in flight.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@control_options
def cancel(*, now: bool, yes: bool, **shared: Any) -> int:
    """End RUN and skip its open tasks, with the reason cancelled.

    Calls in flight finish within the grace period; aborted calls may still be billed.
    Recorded answers can be scored. siftlog retry RUN --reason cancelled reopens the
    tasks.
    """
    from runner.errors import UsageError
    from store.control import preview_open_tasks, preview_sentence
    from store.database import open_reader
    from store.read.status import status

    manner = control_request(**shared)
    with open_reader(manner.folder.log) as reader:
        state = _state_of(status(reader), manner.folder)
        preview = preview_open_tasks(reader)
    if state in {"finished", "cancelled"}:
        raise UsageError(
            f"Run {manner.folder.run_id} is {state}; there is nothing to cancel."
        )
    payload = {"now": now}
    if manner.dry_run:
        return show_dry(manner, "cancel", payload, preview)
    if sys.stdin.isatty() and not yes:
        print_note(preview_sentence("cancel", payload, preview, manner.folder.run_id))
        click.confirm("Cancel the run?", abort=True, err=True)
    return ask(manner, "cancel", payload)


@click.command()
@arguments.run_argument
@arguments.filter_
@click.option(
    "--reason",
    help="Only tasks that failed, were skipped or could not be parsed for this reason.",
)
@control_options
def retry(*, expression: str, reason: str | None, **shared: Any) -> int:
    """Retry tasks of RUN: the failed ones, or those that a filter selects.

    A live run starts them at once; otherwise the next siftlog resume does.
    """
    from runner.errors import UsageError
    from store.control import preview_retry
    from store.database import open_reader
    from store.read.status import run_started

    manner = control_request(**shared)
    if reason is not None:
        expression = f'{expression} reason:"{reason}"'.strip()
    with open_reader(manner.folder.log) as reader:
        if run_started(reader).imported:
            raise UsageError(
                f"Run {manner.folder.run_id} was imported: its answers were "
                "made by other tools and cannot be retried."
            )
        preview = preview_retry(reader, expression)
    payload = {"filter": expression}
    if manner.dry_run or not preview.tasks:
        return show_dry(manner, "retry", payload, preview)
    return ask(manner, "retry", payload, tasks=preview.tasks)


@click.command()
@arguments.run_argument
@click.option("--withdraw", "name", metavar="ID", help="Withdraw a pending request.")
@control_options
def commands(*, name: str | None, **shared: Any) -> int:
    """List control commands sent to RUN with their outcome, or withdraw a pending one.

    A live run responds within a second. Without a process, a command waits for the
    next siftlog resume. ID may be a prefix.
    """
    from runner.errors import UsageError
    from store.control import CommandTail, command_log
    from store.database import open_reader

    manner = control_request(**shared)
    with open_reader(manner.folder.log) as reader:
        requests = command_log(reader, CommandTail(manner.folder.control).read())
    if name is None:
        for request in requests:
            _show(request, as_json=manner.as_json)
        return DONE
    waiting = [
        request for request in requests if request.answer is CommandOutcome.WAITING
    ]
    matches = [request for request in waiting if request.id.startswith(name)]
    if len(matches) != 1:
        raise UsageError(
            f"{len(matches) or 'No'} pending commands of "
            f"{manner.folder.run_id} match {name!r}: siftlog commands "
            f"{manner.folder.run_id} lists them."
        )
    if manner.dry_run:
        if manner.as_json:
            _print_preview(manner, "withdraw", CommandPreview(tasks=0, in_flight=0))
        print_note(f"{matches[0].words} (by {matches[0].author}) would be withdrawn.")
        return DONE
    return ask(manner, "withdraw", {"id": matches[0].id})


def _show(request: CommandRecord, *, as_json: bool) -> None:
    """Print one request as a line."""
    if as_json:
        print_json(
            "siftlog.command/1", {**asdict(request), "answer": request.answer.value}
        )
        return
    began = datetime.fromtimestamp(request.began_us // 1_000_000, UTC)
    author = (
        request.author if request.host is None else f"{request.author}@{request.host}"
    )
    detail = "" if request.said is None else f": {request.said}"
    print_text(
        f"{request.id[:8]}  {began:%Y-%m-%dT%H:%M:%SZ}  {author}  {request.words}  "
        f"{request.answer.value}{detail}"
    )


CLOCK = SystemClock()

TIMEOUT_S = 5.0
POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRequest:
    """The options that all control commands share."""

    folder: RunFolder
    dry_run: bool
    if_state: str | None
    waits: bool
    as_json: bool


def control_request(
    *,
    run_name: str,
    runs_dir: Path,
    dry_run: bool,
    if_state: str | None,
    wait: bool,
    as_json: bool,
) -> ControlRequest:
    """Build the request from the options that all control commands share."""
    return ControlRequest(
        folder=resolve(runs_dir, run_name),
        dry_run=dry_run,
        if_state=if_state,
        waits=wait,
        as_json=as_json,
    )


def show_dry(
    manner: ControlRequest, kind: str, payload: Payload, preview: CommandPreview
) -> int:
    """Print a preview of a command without sending it."""
    if manner.as_json:
        _print_preview(manner, kind, preview)
    print_note(preview_sentence(kind, payload, preview, manner.folder.run_id))
    return DONE


def _print_preview(manner: ControlRequest, kind: str, preview: CommandPreview) -> None:
    fields = {"run": manner.folder.run_id, "kind": kind, "dry_run": True}
    print_json("siftlog.command-preview/1", {**fields, **asdict(preview)})


def lift(
    folder: RunFolder, stage: str | None, model: str | None, *, as_json: bool
) -> int:
    """Resume a paused live run, or one stage or model of it."""
    manner = ControlRequest(
        folder=folder, dry_run=False, if_state=None, waits=True, as_json=as_json
    )
    return ask(manner, "resume", {"stage": stage, "model": model})


def ask_live(manner: ControlRequest, kind: str, payload: Payload) -> int:
    """Send a command that only a live process can apply."""
    folder = manner.folder
    if not folder.is_alive() and _is_elsewhere(folder):
        raise UsageError(
            f"No process of run {folder.run_id} is working in "
            f"{folder.path}, and shards on other machines do not "
            f"receive commands from here: {kind} them where they run; a "
            "signal (SIGTERM, scancel) drains a shard."
        )
    if not folder.is_alive():
        raise UsageError(
            f"Run {folder.run_id} is not alive; there is nothing to {kind}."
        )
    return ask(manner, kind, payload)


def ask(manner: ControlRequest, kind: str, payload: Payload, **figures: int) -> int:
    """Send a command and, unless `--no-wait` is set, wait for its outcome."""
    folder = manner.folder
    _check_state(manner)
    with open_reader(folder.log) as reader:
        before = last_seq(reader)
    command = Command.new(
        kind, payload, at_us=CLOCK.now_us(), expected_state=manner.if_state
    )
    is_alive = folder.is_alive()
    send_command(folder, command)
    print_note(f"Sent to {folder.run_id}: {kind}{_counted(figures)}.")
    answer, detail = "queued", None
    if not is_alive:
        here = "The run is not alive"
        if _is_elsewhere(folder):
            here = (
                "Shards on other machines do not receive it, and none is running here"
            )
        print_note(f"{here}: `siftlog resume {folder.run_id}` applies the command.")
    elif manner.waits:
        answer, detail = _wait(folder, command, before)
    if manner.as_json:
        fields = {"run": folder.run_id, "command": command.id, "kind": kind}
        print_json(
            "siftlog.command-result/1",
            {**fields, **figures, "answer": answer, "said": detail},
        )
    return ERROR if answer == "rejected" else DONE


def _is_elsewhere(folder: RunFolder) -> bool:
    """Return whether shard logs may be written in other folders or machines."""
    return bool(places_in(folder.places))


def _counted(figures: Mapping[str, int]) -> str:
    return f" of {plural(figures['tasks'], 'task')}" if "tasks" in figures else ""


def _state_of(status: Status, folder: RunFolder) -> str:
    """Return the run's state in one word."""
    return liveness(status.signs, CLOCK.now_us(), is_alive=folder.is_alive())


def _check_state(manner: ControlRequest) -> None:
    """Refuse the command if the run is not in the state of `--if-state`."""
    if manner.if_state is None:
        return
    with open_reader(manner.folder.log) as reader:
        state = _state_of(status(reader), manner.folder)
    if state != manner.if_state:
        raise RunnerError(
            f"Run {manner.folder.run_id} is now {state}, not "
            f"{manner.if_state}; no command was sent."
        )


def _wait(folder: RunFolder, sent: Command, before: int) -> tuple[str, str | None]:
    """Return the outcome within the timeout and its message, printing each answer."""
    answer, command = "queued", sent.id
    words = words_of(sent.kind, sent.payload)
    until = CLOCK.monotonic() + TIMEOUT_S
    while CLOCK.monotonic() < until:
        is_alive = folder.is_alive()
        folder.refresh()
        with open_reader(folder.log) as reader:
            rows = recorded_outcomes(reader, before)
        for event in (row.event for row in rows):
            match event:
                case CommandRejected(command=of, reason=reason) if of == command:
                    sentence = outcome_sentence(CommandOutcome.REJECTED, words, reason)
                    print_note(f"siftlog: {sentence}.")
                    return "rejected", reason
                case CommandApplied(command=of, effect=effect) if of == command:
                    sentence = outcome_sentence(CommandOutcome.APPLIED, words, effect)
                    print_note(f"{sentence}.")
                    return "applied", effect
                case CommandAccepted(command=of) if of == command:
                    if answer == "queued":
                        sentence = outcome_sentence(CommandOutcome.ACCEPTED, words)
                        print_note(f"{sentence}.")
                    answer = "accepted"
                case _:
                    pass
        if not is_alive:
            break
        time.sleep(POLL_S)
    print_note(_unanswered(folder, answer))
    return answer, None


def _unanswered(folder: RunFolder, answer: str) -> str:
    run = folder.run_id
    if answer == "accepted":
        return f"It takes its time; see: siftlog status {run}"
    if not folder.is_alive():
        return f"The run ended before it answered; see: siftlog status {run}"
    with open_reader(folder.log) as reader:
        heartbeat = status(reader).heartbeat
    age = (
        "never"
        if heartbeat is None
        else f"{(CLOCK.now_us() - heartbeat.at_us) / 1e6:.0f} s ago"
    )
    return (
        f"The run has not answered (heartbeat {age}); the command stays queued: "
        f"siftlog commands {run} lists and withdraws what waits."
    )
