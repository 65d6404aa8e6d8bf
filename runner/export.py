"""Lists the tables of a run: tasks, answers, requests, metrics, verdicts."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, assert_never

from runner.errors import RunnerError
from runner.messages import AnyReply, Ranking, Reply, Vectors
from runner.plan import reply_of
from runner.score.repeat import rescorer
from runner.scorecard import Metric, Scorecard, StreamedRow, Verdict
from runner.table_files import ExportTable, Kind, Record, RowBuffer, columns
from store.events import AttemptStarted, ScoringRecorded
from store.read.tasks import events, part_text, parts
from store.runs import RunFolder
from store.scoring import families, task_families
from store.served_by import SERVED_UNKNOWN, with_headers
from store.tables import last_started, payload, tasks_numbered
from store.task import TaskRow, TaskState

PAGE: Final = 1_000
"""Events read at a time."""

_CACHED_TEXTS: Final = 256
"""Number of decoded texts kept: consecutive requests are about the same paper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """A request with its texts."""

    kind: str  #: chat, embed or rerank
    messages: tuple[tuple[str, str], ...] = ()  #: role and text of a chat's messages
    schema: str | None = None  #: JSON schema of a chat's reply
    texts: tuple[str, ...] = ()  #: texts to embed or rank
    query: str | None = None  #: query of a rerank

    @property
    def json(self) -> str:
        """Return the model's input as JSON: a list of messages, or the texts."""
        if self.kind == "chat":
            content: Any = [{"role": role, "content": t} for role, t in self.messages]
        elif self.query is None:
            content = list(self.texts)
        else:
            content = {"query": self.query, "documents": list(self.texts)}
        return json.dumps(content, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestExample:
    """One of several similar requests of a stage, and their number."""

    stage: str
    key: str
    task: int
    model: str
    request_sha256: str
    requests: int
    request: SentRequest


class SentRequests:
    """Reads requests from a log; caches decoded texts."""

    def __init__(self, reader: sqlite3.Connection) -> None:
        self._reader = reader
        self._text: Callable[[str], str] = lru_cache(_CACHED_TEXTS)(self._read_text)

    def of_task(self, task: int) -> tuple[str, SentRequest] | None:
        """Return hash and content of a task's last request; None if none was sent."""
        last_attempt = last_started(self._reader, task)
        if last_attempt is None:
            return None
        seq, started = last_attempt
        request = self._read(seq)
        return None if request is None else (started.request_sha256, request)

    def examples(self) -> list[RequestExample]:
        """Return the first request of each form in each stage, by task number.

        Requests of one form have the same stage, system message, roles of messages and
        schema.
        """
        first: dict[tuple[str, str], tuple[TaskRow, int, str]] = {}
        counts: Counter[tuple[str, str]] = Counter()
        for row, seq, sha256 in self._sent():
            form = (row.stage, _form(self._facts(seq)))
            counts[form] += 1
            if form not in first or row.task < first[form][0].task:
                first[form] = (row, seq, sha256)
        examples = []
        for form, (row, seq, sha256) in first.items():
            request = self._read(seq)
            if request is not None:
                examples.append(
                    RequestExample(
                        stage=row.stage,
                        key=row.key,
                        task=row.task,
                        model=row.model,
                        request_sha256=sha256,
                        requests=counts[form],
                        request=request,
                    )
                )
        return sorted(examples, key=lambda example: example.task)

    def _sent(self) -> Iterator[tuple[TaskRow, int, str]]:
        """Yield every started attempt: its task, the event and the request's hash."""
        after = 0
        while page := events(
            self._reader, after=after, limit=PAGE, kinds=["attempt_started"]
        ):
            after = page[-1].seq
            started = [
                (recorded.seq, recorded.event)
                for recorded in page
                if isinstance(recorded.event, AttemptStarted)
            ]
            numbers = sorted({event.task for _, event in started})
            rows = {row.task: row for row in tasks_numbered(self._reader, numbers)}
            for seq, event in started:
                yield rows[event.task], seq, event.request_sha256

    def _read(self, seq: int) -> SentRequest | None:
        facts = self._facts(seq)
        kind = facts.get("kind", "chat")
        if kind == "embed":
            return SentRequest(kind=kind, texts=self._texts(facts["texts"]))
        if kind == "rerank":
            return SentRequest(
                kind=kind,
                texts=self._texts(facts["documents"]),
                query=self._text(facts["query"]),
            )
        if "messages" not in facts:
            return None
        schema = facts.get("schema")
        return SentRequest(
            kind=kind,
            messages=tuple(
                (message["role"], "".join(self._texts(message["parts"])))
                for message in facts["messages"]
            ),
            schema=self._text(schema["sha256"]) if schema else None,
        )

    def _facts(self, seq: int) -> dict[str, Any]:
        body = payload(self._reader, seq)
        return json.loads(body) if body else {}

    def _texts(self, hashes: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(self._text, hashes))

    def _read_text(self, sha256: str) -> str:
        key = bytes.fromhex(sha256)
        return part_text(key, parts(self._reader, [key]).get(key, b""))


def _form(facts: Mapping[str, Any]) -> str:
    """Return what requests of one form have in common."""
    messages = facts.get("messages", [])
    system = [message["parts"] for message in messages if message["role"] == "system"]
    roles = [message["role"] for message in messages]
    return json.dumps([facts.get("kind"), system, roles, facts.get("schema")])


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
        # older logs did not record it: read it from body and headers
        served = answered.served or with_headers(reply.served, answered.headers or {})
        served = served or SERVED_UNKNOWN
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


def reply_text(reply: AnyReply) -> str:
    """Return a reply as one cell: its text, or its numbers as JSON."""
    match reply:
        case Reply():
            return reply.text
        case Vectors():
            return json.dumps(reply.numbers())
        case Ranking():
            return json.dumps(
                [[document.index, document.score] for document in reply.results]
            )
        case _:
            assert_never(reply)


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
def scores(
    folder: RunFolder, recorded: ScoringRecorded
) -> Iterator[tuple[ExportTable, ...]]:
    """Yield the tables of a scoring; their rows are deleted on exit.

    Args:
        folder: the run's folder.
        recorded: the scoring.

    Raises:
        DatasetError: an input file is missing or invalid.
        RunnerError: the replay gives other numbers than the scoring.
    """
    with rescorer(folder) as run, ExitStack() as leaving:
        scoring = run.repeated(recorded)
        if scoring.digest != recorded.digest:
            raise RunnerError(
                f"Scoring {recorded.number} of {folder.run_id} cannot be "
                "repeated: the code or the inputs have changed since, and "
                "a replay gives other numbers; siftlog score "
                f"{folder.run_id} makes a new scoring."
            )
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
