"""The sheets of what a log holds: its tasks, and the answers among them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Final, assert_never

from runner.exporting.kinds import Kind
from runner.exporting.sheet import Record, Sheet, columns
from runner.reading import reply_of
from runner.records.requests import Requests
from runner.reply import AnyReply, Ranking, Reply, Vectors
from store.scoring import families, task_families
from store.served import SERVED_UNKNOWN, with_headers
from store.tables import last_started
from store.task import TaskRow, TaskState

_ID: Final = {
    "task": Kind.INTEGER,
    "stage": Kind.TEXT,
    "key": Kind.TEXT,
    "model": Kind.TEXT,
    "replicate": Kind.INTEGER,
}
"""Which task it is: the first columns of every sheet about tasks."""


def _id(row: TaskRow) -> Record:
    return row.task, row.stage, row.key, row.model, row.replicate


def tasks(reader: sqlite3.Connection, upto: int) -> Sheet:
    """A row a task: who it is, and what had become of it by event *upto*.

    Costs are of all its attempts, the latency is of the last one that came to an end.
    """
    return Sheet(
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
            for row in task_families(reader, upto)
        ),
    )


def answers(reader: sqlite3.Connection, upto: int, *, prompts: bool = False) -> Sheet:
    """A row a completed task: its reply, and what that reply took.

    `unparsed` is the reason where the job's parser could not read the reply. Tokens and
    costs are of the reply's own attempt; one that came from the response cache has
    `cached`, and cost nothing. From `served_model` on a row says what served the reply,
    as its body and headers do. `request_sha256` and `prompt` are the request that the
    reply answers: its messages as JSON, word for word.

    Args:
        reader: of the log.
        upto: the last event to be seen.
        prompts: whether there is a column `prompt`; it repeats a paper for each
            question about it.
    """
    prompt = {"prompt": Kind.TEXT} if prompts else {}
    return Sheet(
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
        rows=_answers(reader, upto, prompts=prompts),
    )


def _answers(
    reader: sqlite3.Connection, upto: int, *, prompts: bool
) -> Iterator[Record]:
    requests = Requests(reader)
    for row, stored in families(reader, upto):
        if row.state is not TaskState.COMPLETED or stored is None:
            continue
        answered, reply = stored.answered, reply_of(stored)
        # older logs did not record it: their bodies and headers say it
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
            _shown(reply),
            answered.tokens_reasoning,
            answered.charged_usd,
            served.model,
            served.fingerprint,
            served.provider,
            served.region,
            served.tier,
            served.request_id,
            *_asked(reader, requests, row.task, prompts=prompts),
        )


def _asked(
    reader: sqlite3.Connection, requests: Requests, task: int, *, prompts: bool
) -> Record:
    """The last cells of an answer: the hash of its request, and the request."""
    if not prompts:
        return (_hash(reader, task),)
    sent = requests.of_task(task)
    return (None, None) if sent is None else (sent[0], sent[1].json)


def _hash(reader: sqlite3.Connection, task: int) -> str | None:
    found = last_started(reader, task)
    return None if found is None else found[1].request_sha256


def _shown(reply: AnyReply) -> str:
    """A reply in one cell: its text, or its numbers as JSON."""
    match reply:
        case Reply():
            return reply.text
        case Vectors():
            return json.dumps(reply.numbers())
        case Ranking():
            return json.dumps([[each.index, each.score] for each in reply.results])
        case _:
            assert_never(reply)
