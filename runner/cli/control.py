"""Verbs that ask something of a run from outside: drain, retry.

They write one line into the run's `control.jsonl`; whoever writes the log carries it
out and answers with events.
"""

from __future__ import annotations

import getpass
import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import choices
from runner.cli.speech import DONE, record, tell

if TYPE_CHECKING:
    from store.runs import RunFolder


@click.command()
@choices.run_argument
@choices.runs_dir
@choices.as_json
def drain(run_name: str, runs_dir: Path, as_json: bool) -> int:
    """Let RUN finish its calls in flight and end; it can be resumed."""
    from runner.errors import UsageError
    from store.runs import resolve

    folder = resolve(runs_dir, run_name)
    if not folder.is_alive():
        raise UsageError(f"Run {folder.run_id} is not alive; nothing to drain.")
    _ask(folder, "drain", {}, as_json=as_json)
    return DONE


@click.command()
@choices.run_argument
@choices.filter_
@click.option(
    "--reason", help="Tasks that failed, were skipped or unreadable for this reason."
)
@click.option("--dry-run", is_flag=True, help="Only say how many tasks it is about.")
@choices.runs_dir
@choices.as_json
def retry(
    run_name: str,
    expression: str,
    reason: str | None,
    dry_run: bool,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Ask final tasks of RUN again: the failed ones, or those that a filter names.

    A live run takes them up at once; otherwise the next siftlog resume does.
    """
    from runner.errors import UsageError
    from runner.listen import retriable
    from store.runs import resolve
    from store.views import open_reader, run_started

    folder = resolve(runs_dir, run_name)
    with open_reader(folder.log) as reader:
        if run_started(reader).imported:
            raise UsageError(
                f"Run {folder.run_id} was imported: its answers were made elsewhere "
                "and cannot be asked for again here."
            )
    if reason is not None:
        expression = f"{expression} reason:{reason}".strip()
    count = len(retriable(folder, expression))
    if dry_run or count == 0:
        if as_json:
            record({"run": folder.run_id, "tasks": count})
        tell(f"{count} tasks of {folder.run_id} would be asked again.")
        return DONE
    _ask(folder, "retry", {"filter": expression}, as_json=as_json, tasks=count)
    if not folder.is_alive():
        tell(f"The run is not alive: siftlog resume {folder.run_id} takes them up.")
    return DONE


def _ask(
    folder: RunFolder,
    kind: str,
    payload: dict[str, Any],
    *,
    as_json: bool,
    **said: object,
) -> None:
    """Write one request, and show what was asked."""
    from runner.cli.session import CLOCK
    from store.commands import Command, write

    command = Command(
        id=uuid.uuid4().hex,
        author=_author(),
        host=os.uname().nodename,
        at_us=CLOCK.now_us(),
        kind=kind,
        payload=payload,
        expected_state=None,
    )
    write(folder, command)
    if as_json:
        record({"run": folder.run_id, "command": command.id, "kind": kind, **said})
    else:
        count = f" of {said['tasks']} tasks" if "tasks" in said else ""
        tell(f"Asked {folder.run_id}: {kind}{count}.")


def _author() -> str:
    """Who asks; a container may know nobody by that number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
