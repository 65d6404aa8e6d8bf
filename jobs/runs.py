"""Runs as Python objects: started, opened, and read.

`siftlog` offers what is here under its own name.
"""

from __future__ import annotations

import asyncio
import html
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from jobs import launching
from jobs.launching import RUNS_DIR, JobSource
from runner import export
from runner.added_stages import job_in
from runner.errors import UsageError
from runner.fingerprint import input_hashes
from runner.job import Answer, Job
from runner.messages import ParseFailure, Reply
from runner.plan import parsed_answer
from runner.registry import job_of
from runner.reply_labels import scoring_inputs
from runner.score.scoring import replayed, score_run, settings_in
from runner.scorecard import Scorecard
from runner.workload import validated
from store.clock import SystemClock
from store.database import LogReader, open_reader
from store.events import RecordedEvent
from store.read.live import LiveStatus, live_status
from store.read.status import Status, run_started, scorings
from store.read.tasks import events
from store.read.usage import dollars
from store.runs import RunFolder, resolve
from store.scoring import families
from store.tables import visible_seq

if TYPE_CHECKING:
    import pandas as pd

ANSWERS: Final = "answers"
"""The table of a job that has its answers, one row an item and model."""

ANSWER_COLUMNS: Final = (
    *("item", "stage", "model", "replicate", "value", "unparsed", "reply", "error"),
    "cost_usd",
)
"""Columns of that table for a job that has none."""

TASKS: Final = "tasks"
REPLIES: Final = "replies"
PAGE: Final = 1000

_CLOCK: Final = SystemClock()


class Run:
    """A run in its folder, alive or ended; it is read again at each call.

    `siftlog.run` returns one, and `siftlog.open` finds one::

        run = siftlog.open("last")
        run.table()                       # the answers, as a data frame
        run.score(level=0.9).models       # metrics by model
        run.compare("another-run")
    """

    def __init__(self, folder: Path | RunFolder) -> None:
        self._folder = folder if isinstance(folder, RunFolder) else RunFolder(folder)

    @property
    def id(self) -> str:
        """The run's id."""
        return self._folder.run_id

    @property
    def folder(self) -> Path:
        """The folder with the run's log, scorings and reports."""
        return self._folder.path

    @property
    def status(self) -> Status:
        """Counts of tasks and attempts, tokens and costs, as of now."""
        return self._live().status

    @property
    def state(self) -> str:
        """The run's state in one word, such as `running` or `finished`."""
        return self._live().state

    def _live(self) -> LiveStatus:
        self._folder.refresh()
        # checked before reading, so that the last commit of a dying writer is not
        # missed
        is_held = self._folder.is_alive()
        with open_reader(self._folder.log) as reader:
            return live_status(reader, _CLOCK.now_us(), is_held=is_held)

    def events(self) -> Iterator[RecordedEvent]:
        """Yield every event of the log, oldest first."""
        with open_reader(self._folder.log) as reader:
            after = 0
            while page := events(reader, after=after, limit=PAGE):
                yield from page
                after = page[-1].seq

    def answers(self) -> Iterator[Answer]:
        """Yield every task with its answer; `parsed` is the value in the reply.

        `parsed` is a `ParseFailure` if the reply has no value. A task without a reply
        has an `error`, a reason to `skip` it, or is open.
        """
        with open_reader(self._folder.log) as reader:
            job = job_in(reader)
            yield from self._answers(reader, job, self._settings(reader, job))

    @staticmethod
    def _answers(reader: LogReader, job: Job, settings: BaseModel) -> Iterator[Answer]:
        dataset = job.load(settings)
        stages = {stage.name: stage for stage in job.stages}
        for row, stored in families(reader, visible_seq(reader)):
            yield parsed_answer(stages, dataset, row, stored)

    def table(self, name: str = ANSWERS) -> pd.DataFrame:
        """Return a table as a data frame, made from the log without a call.

        Args:
            name: one of

                - `answers`: the job's table of answers; without one, a row a task with
                  the value that was read from the reply
                - `tasks`, `replies`: those of `siftlog export`, which load no job
                - `metrics`, `verdicts`, or a table of the job's scorings

        Raises:
            UsageError: there is no such table.
        """
        from jobs.kit.frames import frame  # noqa: PLC0415 - pandas takes half a second

        with ExitStack() as leaving:
            reader = leaving.enter_context(open_reader(self._folder.log))
            if name == TASKS:
                return frame(export.tasks(reader, visible_seq(reader)))
            if name == REPLIES:
                return frame(export.answers(reader, visible_seq(reader)))
            job = job_of(run_started(reader))
            settings = self._settings(reader, job)
            scoring = replayed(
                job,
                reader,
                settings,
                input_hashes(scoring_inputs(job, settings)),
                through_seq=visible_seq(reader),
            )
            tables = {
                table.name.removeprefix("/tables/").removeprefix("/"): table
                for table in export.card_tables(scoring.scorecard, "", leaving)
            }
            if name in tables:
                return frame(tables[name])
            if name == ANSWERS:
                return self._answer_frame(reader, job_in(reader), settings)
        choices = ", ".join(sorted({ANSWERS, REPLIES, TASKS, *tables}))
        raise UsageError(f"Run {self.id} has no table {name!r}; it has {choices}.")

    def _answer_frame(
        self, reader: LogReader, job: Job, settings: BaseModel
    ) -> pd.DataFrame:
        import pandas as pd  # noqa: PLC0415 - as above

        rows = [
            _answer_cells(answer) for answer in self._answers(reader, job, settings)
        ]
        # as objects: numbers stay whole where others are missing
        frame = pd.DataFrame(rows, columns=[*ANSWER_COLUMNS], dtype="object")
        return frame.astype({"replicate": "int64", "cost_usd": "float64"})

    def score(
        self, *, record: bool = True, report: bool = True, **settings: Any
    ) -> Scorecard:
        """Score the answers, without a call; return metrics, tables and findings.

        Args:
            record: write the scoring's files and record it in the log.
            report: draw figures and a report too.
            settings: settings of the job that differ from the run's, such as a file
                with the truth.
        """
        with open_reader(self._folder.log) as reader:
            job = job_of(run_started(reader))
            chosen = self._settings(reader, job, settings)

        def score() -> Scorecard:
            scoring = asyncio.run(
                score_run(
                    job,
                    self._folder,
                    chosen,
                    clock=_CLOCK,
                    record=record,
                    report=report,
                )
            )
            return scoring.scorecard

        return launching.in_free_thread(score)

    def compare(
        self, other: Run | str | Path, *, metrics: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Compare the models of two runs of a job on the items that they share.

        Args:
            other: the second run, as an object or as `siftlog.open` finds it.
            metrics: paths of metrics, or of groups of metrics; empty: all.

        Returns:
            One row a metric: B minus A with interval, test and verdict; B is *other*.
        """
        import pandas as pd  # noqa: PLC0415 - as above

        from jobs.kit.comparison import models, rescoring  # noqa: PLC0415 - likewise
        from jobs.kit.comparison.rendering import metric_rows  # noqa: PLC0415
        from jobs.kit.comparison.sides import ModelReference  # noqa: PLC0415

        second = (
            other if isinstance(other, Run) else open_run(other, self.folder.parent)
        )
        references = [ModelReference.of(str(run.folder)) for run in (self, second)]

        def rows() -> list[tuple[Any, ...]]:
            runs = rescoring.rescored_runs(
                [reference.source for reference in references],
                self.folder.parent,
                {},
                _CLOCK,
            )
            matches = models.compare_models(
                rescoring.side_pairs(references, runs),
                metrics,
                models.ComparisonOptions(),
            )
            return list(metric_rows(matches))

        header, *lines = launching.in_free_thread(rows)
        return pd.DataFrame(lines, columns=list(header))

    def resume(
        self,
        *,
        accept_changes: bool = False,
        score: bool = True,
        report: bool = True,
        **options: Any,
    ) -> Run:
        """Continue an interrupted run; recorded answers are never requested again.

        Args:
            accept_changes: continue although inputs or prompts have changed.
            score: score the run at its end.
            report: draw figures and a report with the scoring.
            options: options of `siftlog run` that differ, such as a higher `budget`.
        """
        launching.carry_out(
            launching.resumed_run(
                self._folder,
                accept_changes=accept_changes,
                score=score,
                report=report,
                values=options,
            )
        )
        return self

    def _settings(
        self, reader: LogReader, job: Job, changes: Mapping[str, Any] | None = None
    ) -> BaseModel:
        """Return the settings of the newest scoring, or else of the run."""
        scored = scorings(reader)
        settings = (
            validated(job, json.loads(scored[-1].settings))
            if scored
            else settings_in(job, reader, {})
        )
        if not changes:
            return settings
        return launching.changed_settings(job, settings, changes)

    def __repr__(self) -> str:
        live = self._live()
        tasks = live.status.tasks
        ended = tasks.completed + tasks.failed
        return (
            f"<Run {self.id} of {live.status.job}: {live.state}, {ended:,} of "
            f"{tasks.planned - tasks.skipped:,} tasks>"
        )

    def _repr_html_(self) -> str:
        """The run as a small table, for notebooks."""
        live = self._live()
        tasks = live.status.tasks
        counts = f"{tasks.completed:,} completed, {tasks.failed:,} failed"
        rows = {
            "run": self.id,
            "job": f"{live.status.job} {live.status.job_version}",
            "state": live.state,
            "tasks": f"{counts}, {tasks.open:,} open",
            "cost": dollars(live.status.cost_usd),
        }
        with open_reader(self._folder.log) as reader:
            scored = scorings(reader)
        for model, value in chain(*(one.reached.items() for one in scored[-1:])):
            text = "n/a" if value is None else f"{value:.3f}"
            rows[f"{scored[-1].headline}, {model}"] = text
        report = self._folder.scores / str(len(scored)) / "report.html"
        if report.exists():
            rows["report"] = str(report)
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in rows.items()
        )
        return f"<table>{cells}</table>"


def open_run(run: str | Path = "last", runs_dir: str | Path = RUNS_DIR) -> Run:
    """Open a run by its id, the beginning of one, its folder, or `last`.

    Raises:
        NoSuchRun: no run has the name.
    """
    return Run(resolve(Path(runs_dir), str(run)))


def run(
    job: JobSource,
    *,
    model: str | Iterable[str] = (),
    run_id: str | None = None,
    runs_dir: str | Path = RUNS_DIR,
    score: bool = True,
    report: bool = True,
    **values: Any,
) -> Run:
    """Run a job and score its answers.

        siftlog.run("screening", model="openai/gpt-4o-mini", budget=1, limit=50)
        siftlog.run("recipe.toml", model=["openai/gpt-4o-mini", "openai/gpt-4o"])
        siftlog.run("my_job.py", rows="trials.csv")

    Works in a notebook too. Ctrl-C, or the notebook's stop, finishes the calls in
    flight and raises `KeyboardInterrupt`; `siftlog.open("last").resume()` continues.

    Args:
        job: the name of an installed job, the path of a recipe or of a Python file with
            a job, or a job.
        model: one model or several; by default the job's offline baseline.
        run_id: id of the run; None: the time and the job.
        runs_dir: folder of runs.
        score: score the run at its end.
        report: draw figures and a report with the scoring.
        values: options of `siftlog run`, such as `budget`, and settings of the job, by
            name. Paths are relative to the current folder.

    Raises:
        UsageError: an option or setting is unknown or has an invalid value.
        DatasetError: an input is invalid; names file, row and column.
    """
    prepared = launching.new_run(
        job,
        model=model,
        run_id=run_id,
        runs_dir=runs_dir,
        score=score,
        report=report,
        values=values,
    )
    launching.carry_out(prepared)
    return Run(prepared.folder)


async def arun(
    job: JobSource,
    *,
    model: str | Iterable[str] = (),
    run_id: str | None = None,
    runs_dir: str | Path = RUNS_DIR,
    score: bool = True,
    report: bool = True,
    **values: Any,
) -> Run:
    """Run a job while the caller's event loop stays free; otherwise like `run`.

    If the caller is cancelled, the calls in flight are finished first.
    """
    prepared = launching.new_run(
        job,
        model=model,
        run_id=run_id,
        runs_dir=runs_dir,
        score=score,
        report=report,
        values=values,
    )
    await launching.carry_out_async(prepared)
    return Run(prepared.folder)


def _answer_cells(answer: Answer) -> tuple[object, ...]:
    """Return an answer's row."""
    task, parsed, reply = answer.task, answer.parsed, answer.reply
    failure = parsed if isinstance(parsed, ParseFailure) else None
    value = None if failure is not None else parsed
    return (
        task.key,
        task.stage,
        task.model,
        task.replicate,
        value.model_dump(mode="json") if isinstance(value, BaseModel) else value,
        None if failure is None else failure.reason,
        reply.text if isinstance(reply, Reply) else None,
        answer.error or answer.skip,
        answer.cost_usd,
    )
