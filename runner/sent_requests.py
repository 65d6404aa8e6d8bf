"""Reads the requests of a run from its log, and the texts of replies."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, assert_never

from runner.job import Dataset, Job
from runner.messages import AnyReply, ChatRequest, Ranking, Reply, Vectors
from runner.plan import task_of
from store.events import AttemptStarted
from store.read.tasks import events, part_text, parts
from store.scoring import families
from store.tables import last_started, payload, tasks_numbered
from store.task import TaskRow

PAGE: Final = 1_000
"""Events read at a time."""

_PARAMETERS: Final = ("temperature", "max_tokens", "dimensions", "top_n")
"""Parameters that a stored request has beside those that the user set."""

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
    request_sha256: str | None  #: None: the reply was imported
    requests: int
    request: SentRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class SentParameter:
    """A parameter that requests of a stage to a model have with one value."""

    stage: str
    model: str
    name: str  #: field of the request, such as "temperature"
    value: str  #: JSON
    requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSurvey:
    """Common parts of a run's requests."""

    examples: tuple[RequestExample, ...]
    """The first request of each form in each stage, by task number. Requests of one
    form have the same stage, system message, roles of messages and schema."""
    parameters: tuple[SentParameter, ...]
    """Values in all requests, most frequent first. A parameter that a request leaves
    out has no value; texts, formats of replies and headers are no parameters."""


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

    def survey(self) -> RequestSurvey:
        """Read all requests once."""
        first: dict[tuple[str, str], tuple[TaskRow, int, str]] = {}
        forms: Counter[tuple[str, str]] = Counter()
        values: dict[tuple[str, str, str], Counter[str]] = {}
        for row, seq, sha256 in self._sent():
            facts = self._facts(seq)
            form = (row.stage, _form(facts))
            forms[form] += 1
            if form not in first or row.task < first[form][0].task:
                first[form] = (row, seq, sha256)
            for name, value in _parameters(facts):
                key = (row.stage, row.model, name)
                values.setdefault(key, Counter())[value] += 1
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
                        requests=forms[form],
                        request=request,
                    )
                )
        return RequestSurvey(
            examples=tuple(sorted(examples, key=lambda example: example.task)),
            parameters=tuple(
                SentParameter(
                    stage=stage, model=model, name=name, value=value, requests=n
                )
                for (stage, model, name), tally in sorted(values.items())
                for value, n in tally.most_common()
            ),
        )

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


def prompt_in_data(job: Job, dataset: Dataset, row: TaskRow) -> SentRequest | None:
    """Return the prompt of an imported reply, which its log does not hold.

    None unless the data of the job are the imported files.
    """
    request = job.request(dataset, task_of(row)) if job.holds_foreign else None
    if not isinstance(request, ChatRequest):
        return None
    messages = tuple((message.role, message.text) for message in request.messages)
    return SentRequest(kind="chat", messages=messages)


def imported_examples(
    reader: sqlite3.Connection, job: Job, dataset: Dataset
) -> tuple[RequestExample, ...]:
    """Return the first of the prompts of each form that imported replies are to."""
    first: dict[tuple[str, str], RequestExample] = {}
    for row, _ in families(reader):
        prompt = prompt_in_data(job, dataset, row)
        if prompt is None:
            continue
        system = [text for role, text in prompt.messages if role == "system"]
        form = row.stage, json.dumps([system, [role for role, _ in prompt.messages]])
        example = first.get(form) or RequestExample(
            stage=row.stage,
            key=row.key,
            task=row.task,
            model=row.model,
            request_sha256=None,
            requests=0,
            request=prompt,
        )
        first[form] = replace(example, requests=example.requests + 1)
    return tuple(first.values())


def _form(facts: Mapping[str, Any]) -> str:
    """Return what requests of one form have in common."""
    messages = facts.get("messages", [])
    system = [message["parts"] for message in messages if message["role"] == "system"]
    roles = [message["role"] for message in messages]
    return json.dumps([facts.get("kind"), system, roles, facts.get("schema")])


def _parameters(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a request, with their values as JSON."""
    values = {name: facts.get(name) for name in _PARAMETERS}
    values |= facts.get("parameters") or {}
    for name, value in values.items():
        if value is not None and name != "headers":
            yield name, json.dumps(value)


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
