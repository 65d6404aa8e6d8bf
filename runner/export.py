"""Lists the tables of a run: tasks, answers, requests, metrics, verdicts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from runner.errors import RunnerError
from runner.plan import reply_of, served_by
from runner.score.repeat import rescorer
from runner.score.scoring import Scoring
from runner.scorecard import Metric, Scorecard, StreamedRow, Verdict
from runner.sent_requests import SentRequests, reply_text
from runner.table_files import ExportTable, Kind, Record, RowBuffer, columns
from store.events import ScoringRecorded
from store.runs import RunFolder
from store.scoring import families, task_families
from store.served_by import SERVED_UNKNOWN
from store.tables import last_started
from store.task import TaskRow, TaskState

_ID: Final = {
    "task": Kind.INTEGER,
    "stage": Kind.TEXT,
    "key": Kind.TEXT,
    "model": Kind.TEXT,
    "replicate": Kind.INTEGER,
}
"""Columns that identify a task: the first ones of every table about tasks."""


def _id(row: TaskRow) -> Record:
    return row.task, row.stage, row.key, row.model, row.replicate


def tasks(reader: sqlite3.Connection, through_seq: int) -> ExportTable:
    """Return a table with a row per task: identity and state at event *through_seq*.

    Costs include all attempts; the latency is that of the last ended one.
    """
    return ExportTable(
        name="tasks",
        columns=columns(
            **_ID,
            root=Kind.INTEGER,
            group=Kind.TEXT,
            state=Kind.TEXT,
            attempts=Kind.INTEGER,
            abandoned=Kind.INTEGER,
            error=Kind.TEXT,
            reason=Kind.TEXT,
            latency_ms=Kind.NUMBER,
            cost_usd=Kind.NUMBER,
        ),
        rows=(
            (
                *_id(row),
                row.root,
                row.group,
                row.state.name.lower(),
                row.attempts,
                row.abandoned,
                row.error,
                row.reason,
                row.latency_ms,
                row.cost_usd,
            )
            for row in task_families(reader, through_seq)
        ),
    )


def answers(
    reader: sqlite3.Connection, through_seq: int, *, prompts: bool = False
) -> ExportTable:
    """Return a table with a row per completed task: its reply and usage.

    `unparsed` is the reason if the job's parser could not read the reply. Tokens and
    costs are those of the reply's attempt; a reply from the response cache has
    `cached`, and cost nothing. Columns from `served_model` on describe the server of
    the reply, from its body and headers. `request_sha256` and `prompt` are the request
    of the reply: its messages as JSON, unchanged.

    Args:
        reader: a reader of the log.
        through_seq: the last event to read.
        prompts: include a column `prompt`, which repeats a paper for each question
            about it.
    """
    prompt = {"prompt": Kind.TEXT} if prompts else {}
    return ExportTable(
        name="answers",
        columns=columns(
            **_ID,
            finish_reason=Kind.TEXT,
            unparsed=Kind.TEXT,
            tokens_in=Kind.INTEGER,
            tokens_out=Kind.INTEGER,
            tokens_cached=Kind.INTEGER,
            latency_ms=Kind.NUMBER,
            cost_usd=Kind.NUMBER,
            cached=Kind.BOOLEAN,
            reply=Kind.TEXT,
            tokens_reasoning=Kind.INTEGER,
            charged_usd=Kind.NUMBER,
            served_model=Kind.TEXT,
            fingerprint=Kind.TEXT,
            provider=Kind.TEXT,
            region=Kind.TEXT,
            tier=Kind.TEXT,
            request_id=Kind.TEXT,
            request_sha256=Kind.TEXT,
            **prompt,
        ),
        rows=_answers(reader, through_seq, prompts=prompts),
    )


def _answers(
    reader: sqlite3.Connection, through_seq: int, *, prompts: bool
) -> Iterator[Record]:
    requests = SentRequests(reader)
    for row, stored in families(reader, through_seq):
        if row.state is not TaskState.COMPLETED or stored is None:
            continue
        answered, reply = stored.answered, reply_of(stored)
        served = served_by(stored) or SERVED_UNKNOWN
        yield (
            *_id(row),
            answered.finish_reason,
            row.reason,
            answered.tokens_in,
            answered.tokens_out,
            answered.tokens_cached,
            answered.latency_ms,
            answered.cost_usd,
            answered.cached,
            reply_text(reply),
            answered.tokens_reasoning,
            answered.charged_usd,
            served.model,
            served.fingerprint,
            served.provider,
            served.region,
            served.tier,
            served.request_id,
            *_request_cells(reader, requests, row.task, prompts=prompts),
        )


def _request_cells(
    reader: sqlite3.Connection, requests: SentRequests, task: int, *, prompts: bool
) -> Record:
    """Return the last cells of an answer: hash and content of its request."""
    if not prompts:
        return (_hash(reader, task),)
    sent = requests.of_task(task)
    return (None, None) if sent is None else (sent[0], sent[1].json)


def _hash(reader: sqlite3.Connection, task: int) -> str | None:
    last_attempt = last_started(reader, task)
    return None if last_attempt is None else last_attempt[1].request_sha256


_VERDICT: Final = columns(
    task=Kind.INTEGER,
    stage=Kind.TEXT,
    key=Kind.TEXT,
    model=Kind.TEXT,
    value=Kind.TEXT,
    expected=Kind.TEXT,
    correct=Kind.BOOLEAN,
    rule=Kind.TEXT,
)


@contextmanager
def repeated_scoring(folder: RunFolder, recorded: ScoringRecorded) -> Iterator[Scoring]:
    """Yield a scoring again; the details of its scorecard can be read until exit.

    Args:
        folder: the run's folder.
        recorded: the scoring.

    Raises:
        DatasetError: an input file is missing or invalid.
        RunnerError: the replay gives other numbers than the scoring.
    """
    with rescorer(folder) as run:
        scoring = run.repeated(recorded)
        if scoring.digest != recorded.digest:
            raise RunnerError(
                f"Scoring {recorded.number} of {folder.run_id} cannot be "
                "repeated: the code or the inputs have changed since, and "
                "a replay gives other numbers; siftlog score "
                f"{folder.run_id} makes a new scoring."
            )
        yield scoring


@contextmanager
def scores(
    folder: RunFolder, recorded: ScoringRecorded
) -> Iterator[tuple[ExportTable, ...]]:
    """Yield the tables of a scoring; their rows are deleted on exit.

    Raises as `repeated_scoring` does.
    """
    with repeated_scoring(folder, recorded) as scoring, ExitStack() as leaving:
        yield card_tables(scoring.scorecard, f"scores/{recorded.number}", leaving)


def card_tables(
    card: Scorecard, prefix: str, leaving: ExitStack
) -> tuple[ExportTable, ...]:
    """Return the tables of a scorecard; their rows are deleted with *leaving*.

    The log that the scorecard is made from must be open: its details are read here.
    """
    verdicts = RowBuffer([column.name for column in _VERDICT], leaving)
    tables = {table.name: RowBuffer(table.columns, leaving) for table in card.tables}
    for table in card.tables:
        for cells in table.rows:
            tables[table.name].add(cells)
    for detail in card.details:
        match detail:
            case StreamedRow():
                tables[detail.table].add(detail.cells)
            case Verdict():
                verdicts.add(_verdict(detail))
            case _:
                pass  # a line of a job's artifact, which is not a table
    return (
        metrics(card, prefix),
        ExportTable(name=f"{prefix}/verdicts", columns=_VERDICT, rows=verdicts),
        *(
            ExportTable(name=f"{prefix}/tables/{name}", columns=rows.columns, rows=rows)
            for name, rows in tables.items()
        ),
    )


def _verdict(verdict: Verdict) -> Record:
    return (
        verdict.task,
        verdict.stage,
        verdict.key,
        verdict.model,
        verdict.value,
        verdict.expected,
        verdict.correct,
        verdict.rule,
    )


def metrics(card: Scorecard, prefix: str) -> ExportTable:
    """Return a table with a row per metric and model, in reading order."""
    return ExportTable(
        name=f"{prefix}/metrics",
        columns=columns(
            model=Kind.TEXT,
            metric=Kind.TEXT,
            value=Kind.NUMBER,
            n=Kind.INTEGER,
            n_defined=Kind.INTEGER,
            lo=Kind.NUMBER,
            hi=Kind.NUMBER,
            subset=Kind.TEXT,
            definition=Kind.TEXT,
            note=Kind.TEXT,
        ),
        rows=[
            _metric(model, metric)
            for model, model_metrics in card.models.items()
            for metric in model_metrics
        ],
    )


def _metric(model: str, metric: Metric) -> Record:
    return (
        model,
        metric.path,
        metric.value,
        metric.n,
        metric.n_defined,
        metric.lo,
        metric.hi,
        metric.subset or None,
        metric.definition,
        metric.note,
    )
