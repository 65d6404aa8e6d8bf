"""The requests of a run as they were sent, read from its log.

A request is stored as its parameters, with the hash of each text; the texts are stored
once. Here they are put together again.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from store.events import AttemptStarted
from store.read.tasks import events, parts
from store.tables import last_started, payload, tasks_numbered
from store.task import TaskRow

PAGE: Final = 1_000
"""Events read at a time."""

_KEPT: Final = 256
"""Texts kept decoded: a paper is asked about many times in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """A request with its texts."""

    kind: str  #: chat, embed or rerank
    messages: tuple[tuple[str, str], ...] = ()  #: of a chat: role and text
    schema: str | None = None  #: of a chat: the JSON schema of the reply
    texts: tuple[str, ...] = ()  #: of other kinds: what vectors or an order are of
    query: str | None = None  #: of a rerank

    @property
    def json(self) -> str:
        """What the model reads, as JSON: a list of messages, or the texts."""
        if self.kind == "chat":
            spoken: Any = [{"role": role, "content": t} for role, t in self.messages]
        elif self.query is None:
            spoken = list(self.texts)
        else:
            spoken = {"query": self.query, "documents": list(self.texts)}
        return json.dumps(spoken, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One of the requests that a stage sent alike, and how many there were."""

    stage: str
    key: str
    task: int
    model: str
    request_sha256: str
    requests: int
    request: SentRequest


class Requests:
    """Reads requests from a log; a text that comes again is decoded once."""

    def __init__(self, reader: sqlite3.Connection) -> None:
        self._reader = reader
        self._text: Callable[[str], str] = lru_cache(_KEPT)(self._read_text)

    def of_task(self, task: int) -> tuple[str, SentRequest] | None:
        """Hash and content of the last request of a task; None where none was sent."""
        found = last_started(self._reader, task)
        if found is None:
            return None
        seq, started = found
        request = self._read(seq)
        return None if request is None else (started.request_sha256, request)

    def examples(self) -> list[Example]:
        """The first request of each form that a stage sent, by the task's number.

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
        found = []
        for form, (row, seq, sha256) in first.items():
            request = self._read(seq)
            if request is not None:
                found.append(
                    Example(
                        stage=row.stage,
                        key=row.key,
                        task=row.task,
                        model=row.model,
                        request_sha256=sha256,
                        requests=counts[form],
                        request=request,
                    )
                )
        return sorted(found, key=lambda each: each.task)

    def _sent(self) -> Iterator[tuple[TaskRow, int, str]]:
        """Every started attempt: its task, the event and the request's hash."""
        after = 0
        while page := events(
            self._reader, after=after, limit=PAGE, kinds=["attempt_started"]
        ):
            after = page[-1].seq
            started = [
                (each.seq, each.event)
                for each in page
                if isinstance(each.event, AttemptStarted)
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
                (each["role"], "".join(self._texts(each["parts"])))
                for each in facts["messages"]
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
        return parts(self._reader, [key]).get(key, b"").decode(errors="replace")


def _form(facts: Mapping[str, Any]) -> str:
    """What requests of one form have in common."""
    messages = facts.get("messages", [])
    system = [each["parts"] for each in messages if each["role"] == "system"]
    roles = [each["role"] for each in messages]
    return json.dumps([facts.get("kind"), system, roles, facts.get("schema")])
