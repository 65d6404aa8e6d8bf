"""Starts a run or takes one up again: from a folder and a job to a driver at work.

Everything that can be wrong is found before the first event is written, so bad input
leaves no half-made run behind.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack

from runner.control.cancelling import REASON
from runner.control.effects import lifts
from runner.control.ending import Ended
from runner.control.listen import waiting
from runner.deciding import load_decide
from runner.engine.abandoned import abandoned, abandoned_text
from runner.errors import RunnerError, UsageError
from runner.estimating.preview import expected
from runner.launching.batching import carried
from runner.launching.changes import (
    changed_inputs,
    check_inputs,
    check_requests,
    reads_differently,
)
from runner.launching.company import Company
from runner.launching.connecting import connect
from runner.launching.creation import create, owner
from runner.launching.group import held
from runner.launching.shell import Shell
from runner.launching.undertaking import TakenUp, Undertaking
from runner.money.prices import prices_of
from runner.options import RunOptions
from runner.records.front import check
from runner.roles import assigned, remarks
from runner.shards.part import Part
from runner.work import Work
from store.database import open_reader
from store.events import RunResumed
from store.log.integrity import check_end
from store.log.sqlite import SqliteLog
from store.read.status import liveness, run_started, status
from store.read.usage import spending
from store.runs import RunFolder


async def start(
    folder: RunFolder,
    work: Work,
    options: RunOptions,
    shell: Shell,
    *,
    company: Company | None = None,
    group: str | None = None,
    part: Part | None = None,
) -> Ended:
    """Run a new run until it ends or is interrupted.

    Args:
        folder: the run's.
        work: its job, settings and data.
        options: how calls are sent.
        shell: what surrounds it.
        company: the runs that share endpoints and budget with it; None: it is alone,
            and obeys the process's signals itself.
        group: the name under which it was started with others, if it was.
        part: the shard that *folder* is of; None: the run is not split.
    """
    prices = prices_of(assigned(work.job, options).all_models, options)
    connections = connect(work, options, shell)
    if options.stopping is not None:
        check(work, options.model, options.stopping, load_decide())
    expects = expected(work, options, shell.runs_dir, shell.clock, tell=shell.tell)
    for said in remarks(work, options):
        shell.tell(said)
    async with create(
        folder,
        work,
        options,
        shell.clock,
        expects=expects,
        group=group,
        shard=None if part is None else part.shard,
    ) as log:
        undertaking = Undertaking(
            folder=folder,
            log=log,
            work=work,
            options=options,
            shell=shell,
            connections=connections,
            prices=prices,
            taken_up=TakenUp(stopping=options.stopping, part=part),
        )
        return await undertaking.carry_out(company)


async def resume(
    folder: RunFolder,
    work: Work,
    options: RunOptions,
    shell: Shell,
    *,
    accept_changes: bool,
    accept_loss: bool = False,
    own: Collection[str] = (),
    company: Company | None = None,
    part: Part | None = None,
) -> Ended:
    """Take a run up where its last writer left it.

    Args:
        folder: the run's.
        work: its job, settings and data as they are now.
        options: how calls are sent.
        shell: what surrounds it.
        accept_changes: whether inputs and prompts may differ from what they were.
        accept_loss: whether it goes on although acknowledged events are missing.
        own: names of the limits that were given for this process; what was asked of
            earlier ones about them does not hold for it.
        company: as for `start`.
        part: as for `start`.

    Raises:
        UsageError: there is nothing to go on with.
        RunChanged: inputs or prompts differ.
        EventsLost: acknowledged events are missing, and that was not accepted.
    """
    end = check_end(folder.log, accept_loss=accept_loss)
    if end.is_lost or end.acknowledged is None:
        shell.tell(f"{end.sentence}.")
    with open_reader(folder.log) as reader:
        first = run_started(reader)
        if options.budget is None:
            cap_usd = spending(reader).cap_usd
            options = options.model_copy(update={"budget": cap_usd})
        before = status(reader)
    found = liveness(before.signs, shell.clock.now_us(), is_alive=False)
    if first.imported:
        raise UsageError(
            f"Run {folder.run_id} was imported: its answers were made elsewhere and "
            f"nothing is sent for it; score it with siftlog score {folder.run_id}."
        )
    check_cancelled(folder, found)
    if not accept_changes:
        check_inputs(first, work)
    prices = prices_of(assigned(work.job, options).all_models, options)
    connections = connect(work, options, shell, before.refused)
    async with AsyncExitStack() as stack:
        if company is None and first.group is not None:
            stack.enter_context(held(shell.runs_dir, first.group))
        log = await stack.enter_async_context(
            await SqliteLog.open(
                folder.log,
                clock=shell.clock,
                owner=owner(),
                accept_loss=accept_loss,
            )
        )
        if not accept_changes:
            await check_requests(log, work, options)
        must_catch_up = await reads_differently(log, work)
        starts = carried(folder, options)
        unknown = await abandoned(log, hold=options.unknown == "hold", carried=starts)
        if unknown is not None:
            await log.append(unknown)
            shell.tell(abandoned_text(folder.run_id, unknown))
        await log.append(
            RunResumed(
                code_sha256=work.code_sha256,
                settings=work.settings_json,
                unknown=len(unknown.attempts) if unknown is not None else 0,
                budget_usd=options.budget,
                lost=log.lost,
                changed=changed_inputs(first, work),
            ),
            *lifts(before.pauses, by="resume"),
        )
        if before.pauses:
            paused = ", ".join(map(str, before.pauses))
            shell.tell(f"Paused was {paused}; resuming has lifted it.")
        undertaking = Undertaking(
            folder=folder,
            log=log,
            work=work,
            options=options,
            shell=shell,
            connections=connections,
            prices=prices,
            taken_up=TakenUp(
                must_catch_up=must_catch_up,
                group=first.group,
                found=found,
                own=own,
                stopping=first.stopping,
                part=part,
                carried=starts,
            ),
        )
        return await undertaking.carry_out(company)


def check_alive(folder: RunFolder) -> None:
    """Raise where another process is writing the run."""
    if folder.is_alive():
        raise RunnerError(
            f"Run {folder.run_id} is being written by another process; "
            f"watch it with siftlog status {folder.run_id}."
        )


def check_cancelled(folder: RunFolder, found: str | None) -> None:
    """Raise where a run was cancelled, and nobody has asked for its tasks since."""
    if found == "cancelled" and "retry" not in {c.kind for c in waiting(folder)}:
        raise UsageError(
            f"Run {folder.run_id} was cancelled; bring its tasks back with siftlog "
            f"retry {folder.run_id} --reason {REASON}, then resume it."
        )
