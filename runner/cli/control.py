"""Verbs that steer a run from outside: pause, drain, cancel, retry, commands.

They write one line into the run's `control.jsonl`; whoever writes the log carries it
out and answers with events. With `--dry-run` they only say what it would come to.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from runner.cli import choices
from runner.cli.speech import DONE, record, tell, text

if TYPE_CHECKING:
    from store.control import CommandRecord


@click.command()
@choices.run_argument
@click.option("--stage", help="Only this stage.")
@click.option("--model", help="Only this model.")
@choices.asking
def pause(**given: Any) -> int:
    """Start no further call of RUN, or of a stage or model; it stays alive.

    Calls in flight finish. siftlog resume RUN lifts it.
    """
    from runner.cli.asking import ask_live, manner, show_dry
    from store.control import preview_open_tasks
    from store.database import open_reader

    how = manner(given)
    scope = {"stage": given["stage"], "model": given["model"]}
    if not how.dry_run:
        return ask_live(how, "pause", scope)
    with open_reader(how.folder.log) as reader:
        stakes = preview_open_tasks(reader, **scope)
    return show_dry(how, "pause", scope, stakes)


@click.command()
@choices.run_argument
@choices.asking
def drain(**given: Any) -> int:
    """Let RUN finish its calls in flight and end; it can be resumed."""
    from runner.cli.asking import ask_live, manner, show_dry
    from store.control import preview_open_tasks
    from store.database import open_reader

    how = manner(given)
    if not how.dry_run:
        return ask_live(how, "drain", {})
    with open_reader(how.folder.log) as reader:
        stakes = preview_open_tasks(reader)
    return show_dry(how, "drain", {}, stakes)


@click.command()
@choices.run_argument
@click.option("--now", is_flag=True, help="Cut the calls in flight, too.")
@click.option("--yes", is_flag=True, help="Do not ask whether it is meant.")
@choices.asking
def cancel(*, now: bool, yes: bool, **given: Any) -> int:
    """End RUN for good: its open tasks are skipped, with the reason cancelled.

    Calls in flight finish within the grace time; a call that is cut may have to be
    paid for. What is there can be scored; siftlog retry RUN --reason cancelled brings
    the tasks back.
    """
    from runner.cli.asking import CLOCK, ask, manner, show_dry
    from runner.cli.stand import state_of
    from runner.errors import UsageError
    from store.control import preview_open_tasks, preview_sentence
    from store.database import open_reader
    from store.read.status import status

    how = manner(given)
    with open_reader(how.folder.log) as reader:
        state = state_of(status(reader), how.folder, CLOCK)
        stakes = preview_open_tasks(reader)
    if state in {"finished", "cancelled"}:
        raise UsageError(
            f"Run {how.folder.run_id} is {state}; there is nothing to cancel."
        )
    payload = {"now": now}
    if how.dry_run:
        return show_dry(how, "cancel", payload, stakes)
    if sys.stdin.isatty() and not yes:
        tell(preview_sentence("cancel", payload, stakes, how.folder.run_id))
        click.confirm("Cancel the run?", abort=True, err=True)
    return ask(how, "cancel", payload)


@click.command()
@choices.run_argument
@choices.filter_
@click.option(
    "--reason", help="Tasks that failed, were skipped or unreadable for this reason."
)
@choices.asking
def retry(*, expression: str, reason: str | None, **given: Any) -> int:
    """Ask final tasks of RUN again: the failed ones, or those that a filter names.

    A live run takes them up at once; otherwise the next siftlog resume does.
    """
    from runner.cli.asking import ask, manner, show_dry
    from runner.errors import UsageError
    from store.control import preview_retry
    from store.database import open_reader
    from store.read.status import run_started

    how = manner(given)
    if reason is not None:
        expression = f'{expression} reason:"{reason}"'.strip()
    with open_reader(how.folder.log) as reader:
        if run_started(reader).imported:
            raise UsageError(
                f"Run {how.folder.run_id} was imported: its answers were made "
                "elsewhere and cannot be asked for again here."
            )
        stakes = preview_retry(reader, expression)
    payload = {"filter": expression}
    if how.dry_run or not stakes.tasks:
        return show_dry(how, "retry", payload, stakes)
    return ask(how, "retry", payload, tasks=stakes.tasks)


@click.command()
@choices.run_argument
@click.option(
    "--withdraw", "name", metavar="ID", help="Take back a request that still waits."
)
@choices.asking
def commands(*, name: str | None, **given: Any) -> int:
    """Show what was asked of RUN and what became of it, or take a request back.

    A live run answers within a second. Where no process works on it, a request waits
    for the next siftlog resume. ID may be the beginning of one.
    """
    from runner.cli.asking import ask, manner
    from runner.errors import UsageError
    from store.control import CommandOutcome, CommandTail, command_log
    from store.database import open_reader

    how = manner(given)
    with open_reader(how.folder.log) as reader:
        found = command_log(reader, CommandTail(how.folder.control).read())
    if name is None:
        for request in found:
            _show(request, as_json=how.as_json)
        return DONE
    waiting = [request for request in found if request.answer is CommandOutcome.WAITING]
    named = [request for request in waiting if request.id.startswith(name)]
    if len(named) != 1:
        raise UsageError(
            f"{len(named) or 'No'} waiting requests of {how.folder.run_id} begin with "
            f"{name!r}: siftlog commands {how.folder.run_id} lists them."
        )
    if how.dry_run:
        tell(f"{named[0].words} (by {named[0].author}) would be taken back.")
        return DONE
    return ask(how, "withdraw", {"id": named[0].id})


def _show(request: CommandRecord, *, as_json: bool) -> None:
    """One request as a line."""
    if as_json:
        record({**asdict(request), "answer": request.answer.value})
        return
    began = datetime.fromtimestamp(request.began_us // 1_000_000, UTC)
    who = request.author if request.host is None else f"{request.author}@{request.host}"
    said = "" if request.said is None else f": {request.said}"
    text(
        f"{request.id[:8]}  {began:%Y-%m-%dT%H:%M:%SZ}  {who}  {request.words}  "
        f"{request.answer.value}{said}"
    )
