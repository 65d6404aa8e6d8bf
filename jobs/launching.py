"""Starts and resumes runs from Python: `siftlog.run`, `siftlog.arun`, `Run.resume`.

A run is launched as by the command line, in this process. Its event loop is that of
the main thread if that is free. Where another loop runs already, as in a notebook, and
for `arun`, it is a loop in a separate thread, which the caller's interrupt or
cancellation reaches: the first drains the run, the second stops it. Either way the run
can be resumed.

Notes and progress are printed on stderr; in a notebook the progress is one line of the
cell's output.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import BaseModel

from runner import roles
from runner.added_stages import job_in
from runner.cli import run_steps
from runner.cli.console import print_note
from runner.cli.progress import progress
from runner.cli.request import (
    OutputOptions,
    PlacementOptions,
    RunRequest,
    SettingsSource,
    ShardOptions,
    TypedOptions,
)
from runner.engine.background import Interruptible, obey_signals
from runner.errors import RunnerError, UsageError
from runner.job import Job
from runner.options import RunOptions, read_toml
from runner.registry import choose_job, job_from
from runner.run import launch
from runner.run.context import RunContext
from runner.run.end import RunOutcome
from runner.score.scoring import settings_in
from runner.workload import Workload, list_settings, load_workload, validated
from runner.workload import resolve as resolve_settings
from store.database import open_reader
from store.errors import StoreError
from store.read.status import run_started
from store.runs import RunFolder

T = TypeVar("T")

JobSource: TypeAlias = str | Path | Job | type[Job]
"""A job's name, a file of a job or a recipe, or a job."""

Obey: TypeAlias = Callable[[Interruptible, Callable[[str], None]], None]

RUNS_DIR: Final = "runs"

WAKE_S: Final = 0.2
"""Seconds until a cancellation is noticed in a loop that nothing else wakes."""


class PreparedRun:
    """A run that is ready to be started or resumed; its data are loaded."""

    def __init__(
        self,
        folder: RunFolder,
        work: Workload,
        request: RunRequest,
        carry_out: Callable[[RunContext], Coroutine[Any, Any, RunOutcome]],
        *,
        scores: bool,
    ) -> None:
        self.folder = folder
        self._work = work
        self._request = request
        self._carry_out = carry_out
        self._scores = scores

    @property
    def next_step(self) -> str:
        """What to do after an interrupt."""
        run = self.folder.run_id
        return f"run {run} was interrupted; resume it with: siftlog resume {run}"

    async def work(self, obey: Obey) -> None:
        """Run to the end and score; *obey* connects what interrupts the run."""
        context = run_steps.run_context(self._request, self.folder, self._work)
        watch = progress(run_steps.CLOCK, notebook_line())
        ended = await self._carry_out(replace(context, obey=obey, watch=watch))
        if ended.reason is not None:
            print_note(ended.reason)
        if not self._scores:
            return
        output = self._request.output
        try:
            scoring = await run_steps.score_ended(
                self.folder, self._work, ended, output
            )
        except (RunnerError, StoreError) as error:
            print_note(f"siftlog: the answers are kept, but not scored: {error}")
            return
        for finding in () if scoring is None else scoring.findings:
            print_note(f"{finding.severity}: {finding.line}")


def new_run(
    source: JobSource,
    *,
    model: str | Iterable[str] = (),
    run_id: str | None = None,
    runs_dir: str | Path = RUNS_DIR,
    score: bool = True,
    report: bool = True,
    values: Mapping[str, Any],
) -> PreparedRun:
    """Prepare a new run: load the job and its data, and check all options.

    Args:
        source: the job.
        model: models to call; by default the job's offline baseline.
        run_id: id of the run; None: the time and the job.
        runs_dir: folder of runs.
        score: score the run at its end.
        report: draw figures and a report with the scoring.
        values: options of `siftlog run`, such as `budget`, and settings of the job, by
            name. Paths are relative to the current folder.

    Raises:
        UsageError: an option or setting is unknown or has an invalid value.
        DatasetError: an input is invalid.
    """
    job, implied = _job(source)
    options = {name: v for name, v in values.items() if name in RunOptions.model_fields}
    models = (model,) if isinstance(model, str) else tuple(model)
    if models:
        options["model"] = models
    typed = TypedOptions(values={k: v for k, v in options.items() if v is not None})
    plain = {name: value for name, value in values.items() if name not in options}
    if "temperature" in options and "temperature" in job.Settings.model_fields:
        plain["temperature"] = options["temperature"]
    settings = resolve_settings(
        job,
        typed={},
        environment={},
        file={**run_steps.implied(job, typed, {}), **implied, **_plain(job, plain)},
    )
    work, run_options = run_steps.new_run(job, settings, typed, {})
    run_steps.print_findings(work)
    request = request_of(
        Path(runs_dir), typed, run_id=run_id, output=OutputOptions(no_report=not report)
    )
    folder = run_steps.new_folder(request.runs_dir, run_id, job)

    def carry_out(context: RunContext) -> Coroutine[Any, Any, RunOutcome]:
        return launch.start(folder, work, run_options, context)

    return PreparedRun(folder, work, request, carry_out, scores=score)


def resumed_run(
    folder: RunFolder,
    *,
    accept_changes: bool = False,
    score: bool = True,
    report: bool = True,
    values: Mapping[str, Any],
) -> PreparedRun:
    """Prepare a run's resume: its job, data and options as recorded.

    Args:
        folder: the run's folder.
        accept_changes: continue although inputs or prompts have changed.
        score: score the run at its end.
        report: draw figures and a report with the scoring.
        values: options that differ from those of the run, such as a higher `budget`.

    Raises:
        UsageError: the run is split or alive, or an option is unknown.
    """
    with open_reader(folder.log) as reader:
        first = run_started(reader)
        job = job_in(reader)
        settings = settings_in(job, reader, {})
    if first.shard is not None:
        raise UsageError(
            f"Run {folder.run_id} is split; resume it with: siftlog resume "
            f"{folder.run_id}"
        )
    launch.check_alive(folder)
    if unknown := sorted(values.keys() - RunOptions.model_fields.keys()):
        raise UsageError(
            f"A resume has no option {unknown[0]!r}; it takes the options of siftlog "
            "run, and settings of the job are those of the run."
        )
    file = read_toml(folder.config) if folder.config.exists() else {}
    # the budget may have been raised since; the log has the current one
    file.pop("budget", None)
    typed = TypedOptions(values=dict(values))
    options = run_steps.engine_options(
        typed, file, replicates=first.replicates, **roles.fixed(first.models)
    )
    work = load_workload(job, settings)
    request = request_of(
        folder.path.parent, typed, output=OutputOptions(no_report=not report)
    )

    def carry_out(context: RunContext) -> Coroutine[Any, Any, RunOutcome]:
        return launch.resume(
            folder,
            work,
            options,
            context,
            accept_changes=accept_changes,
            startup_limits=run_steps.startup_limits(typed),
        )

    return PreparedRun(folder, work, request, carry_out, scores=score)


def request_of(
    runs_dir: Path,
    typed: TypedOptions,
    *,
    run_id: str | None = None,
    output: OutputOptions,
) -> RunRequest:
    """Return the request of a run that is not placed and not a part of another."""
    return RunRequest(
        runs_dir=runs_dir,
        run_id=run_id,
        source=SettingsSource(),
        options=typed,
        part=ShardOptions(),
        placing=PlacementOptions(),
        output=output,
    )


def _job(source: JobSource) -> tuple[Job, Mapping[str, str]]:
    if isinstance(source, str | Path):
        choice = choose_job(str(source))
        return choice.job, choice.settings
    return job_from(source), {}


def changed_settings(
    job: Job, settings: BaseModel, changes: Mapping[str, Any]
) -> BaseModel:
    """Return settings with some values changed; paths are relative to this folder.

    A changed profile applies all its settings.
    """
    before: Mapping[str, Any] = settings.model_dump(mode="json")
    if "profile" in changes and "profile" in before:
        usual = validated(job, {"profile": before["profile"]}).model_dump(mode="json")
        before = {k: v for k, v in before.items() if usual.get(k) != v}
    return resolve_settings(
        job, typed={}, environment={}, file={**before, **_plain(job, changes)}
    )


def _plain(job: Job, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as a configuration file has them.

    Models become objects, and one value of a list becomes a list, as in a flag.
    """
    lists = list_settings(job)
    plain: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, BaseModel):
            plain[name] = value.model_dump(mode="json")
        elif name in lists and isinstance(value, str | Path | int | float):
            plain[name] = [value]
        else:
            plain[name] = list(value) if isinstance(value, tuple) else value
    return plain


class Interrupts:
    """Passes interrupts of one thread to a run whose loop is in another.

    An interrupt that comes before the run's first call drains it as soon as it starts.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: Interruptible | None = None
        self._notify: Callable[[str], None] = print_note

    def obey(self, worker: Interruptible, notify: Callable[[str], None]) -> None:
        """Connect the run; called in its loop."""
        with self._lock:
            self._loop = asyncio.get_running_loop()
            self._worker, self._notify = worker, notify
            missed = self._count
        if missed:
            self._act(1)

    def interrupt(self) -> None:
        """Drain the run at the first call, stop it at the second."""
        with self._lock:
            self._count += 1
            loop, count = self._loop, self._count
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._act, count)

    def _act(self, count: int) -> None:
        if self._worker is None:
            return
        if count == 1:
            self._notify("Finishing the calls in flight; interrupt again to stop now.")
            self._worker.drain()
        else:
            self._worker.stop()


class _Noted:
    """Notes that a run was interrupted by a signal."""

    def __init__(self, worker: Interruptible, note: Callable[[], None]) -> None:
        self._worker, self._note = worker, note

    def drain(self) -> None:
        """Drain the run."""
        self._note()
        self._worker.drain()

    def stop(self) -> None:
        """Stop the run."""
        self._worker.stop()


def carry_out(prepared: PreparedRun) -> None:
    """Run to the end, whether or not this thread has a running event loop.

    Raises:
        KeyboardInterrupt: it was interrupted, and has ended since; it can be resumed.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and not _has_loop():
        signals: list[bool] = []

        def obey(worker: Interruptible, notify: Callable[[str], None]) -> None:
            obey_signals(_Noted(worker, lambda: signals.append(True)), notify)

        asyncio.run(prepared.work(obey))
        if signals:
            raise KeyboardInterrupt(prepared.next_step)
        return
    interrupts = Interrupts()
    with ThreadPoolExecutor(1, thread_name_prefix="siftlog") as pool:
        future = pool.submit(asyncio.run, prepared.work(interrupts.obey))
        if _was_interrupted(future, interrupts):
            raise KeyboardInterrupt(prepared.next_step)


def _was_interrupted(future: Future[None], interrupts: Interrupts) -> bool:
    """Wait for a run in another thread; Ctrl-C and a notebook's stop interrupt it."""
    was_interrupted = False
    while True:
        try:
            future.result()
        except KeyboardInterrupt:
            if future.done():
                raise
            was_interrupted = True
            interrupts.interrupt()
            continue
        return was_interrupted


async def carry_out_async(prepared: PreparedRun) -> None:
    """Run to the end in another thread, so that the caller's loop stays free.

    A cancelled caller drains the run, and waits until it has ended.
    """
    interrupts = Interrupts()
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, thread_name_prefix="siftlog") as pool:
        future = loop.run_in_executor(pool, asyncio.run, prepared.work(interrupts.obey))
        cancelled: asyncio.CancelledError | None = None
        while not future.done():
            try:
                # a notebook's kernel cancels without waking a loop that has nothing
                # else to do, so this one wakes by itself
                await asyncio.wait([future], timeout=WAKE_S)
            except asyncio.CancelledError as error:
                cancelled = error
                interrupts.interrupt()
        future.result()
    if cancelled is not None:
        raise cancelled


def in_free_thread(function: Callable[[], T]) -> T:
    """Call a function that starts an event loop of its own.

    In a notebook the main thread has a running loop already, so it gets another thread.
    """
    if not _has_loop():
        return function()
    with ThreadPoolExecutor(1, thread_name_prefix="siftlog") as pool:
        return pool.submit(function).result()


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def notebook_line() -> Callable[[str], None] | None:
    """Return what shows a changing line in the current cell; None: no notebook."""
    library: Any = sys.modules.get("IPython")
    shell = None if library is None else library.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    handle = library.display.display({"text/plain": ""}, raw=True, display_id=True)

    def show(line: str) -> None:
        handle.update({"text/plain": line}, raw=True)

    return show
