"""The filter language of events: the terms of `store.query`, with keys of their own.

    kind:attempt_failed err:RateLimited model:m-large -stage:judge "too many"

A term without a key is looked for in the event's kind and in the values of its facts,
not in their names, and as the number of its task. What the error classes and reasons
of tasks are called, those of events are called too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial

from store.errors import QueryError
from store.events import KINDS
from store.query import Query, Reader, Term, like, only_colon, parse_terms, task_number

#: No task has it: what a text that is no number is compared with.
_NO_TASK = 0


@dataclass(frozen=True, slots=True)
class EventQuery(Query):
    """A filter of events: every term must hold; without terms everything passes."""

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds that an event must be of to fit; where none is named: all."""
        kinds = frozenset(KINDS)
        for term in self._required("event_kind"):
            kinds &= frozenset(json.loads(str(term.parameters[0])))
        return kinds

    @property
    def task(self) -> int | None:
        """The one task whose events fit, if one is named."""
        return next(
            (int(term.parameters[0]) for term in self._required("event_task")), None
        )

    def _required(self, condition: str) -> Iterator[Term]:
        return (
            term
            for term in self.terms
            if term.condition == condition and not term.is_negated
        )


def parse_event_query(expression: str) -> EventQuery:
    """Read a filter of events.

    >>> sorted(parse_event_query("kind:run_* -kind:run_started").kinds)[:2]
    ['run_cancelled', 'run_drained']

    Raises:
        QueryError: a term cannot be read; carries its position.
    """
    return EventQuery(parse_terms(expression, EVENT_KEYS, _text))


def _text(value: str) -> Term:
    as_stored = json.dumps(value, ensure_ascii=False)[1:-1]
    return Term(
        condition="event_text",
        parameters=(
            task_number(value) or _NO_TASK,
            like(value),
            like(as_stored),
            like(value),
        ),
    )


def _kind(operator: str, value: str, at: int) -> Term:
    only_colon("kind", operator, at)
    named = [kind for kind in KINDS if fnmatchcase(kind, value.lower())]
    if not named:
        raise QueryError(
            f"there is no kind {value!r}: use {', '.join(KINDS)}, or a beginning with "
            "an asterisk, such as run_*",
            at,
        )
    return Term(condition="event_kind", parameters=(json.dumps(named),))


def _task(operator: str, value: str, at: int) -> Term:
    only_colon("task", operator, at)
    number = task_number(value)
    if number is None:
        raise QueryError("write task:41882 or task:T-0041882", at)
    return Term(condition="event_task", parameters=(number,))


def _name(key: str, operator: str, value: str, at: int, *, times: int = 1) -> Term:
    """The term of a key with names as values."""
    only_colon(key, operator, at)
    return Term(condition=f"event_{key}", parameters=(value,) * times)


def _err(operator: str, value: str, at: int) -> Term:
    only_colon("err", operator, at)
    if value == "*":
        return Term(condition="event_err_any")
    return Term(condition="event_err", parameters=(value,))


def _item(operator: str, value: str, at: int) -> Term:
    only_colon("item", operator, at)
    return Term(condition="event_item", parameters=(like(value),))


EVENT_KEYS: Mapping[str, Reader] = {
    "kind": _kind,
    "task": _task,
    "stage": partial(_name, "stage"),
    "model": partial(_name, "model", times=2),
    "item": _item,
    "err": _err,
    "reason": partial(_name, "reason"),
}
"""Every key of the language, with what reads its values."""
