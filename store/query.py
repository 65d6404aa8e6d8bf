"""Parses the filter language of tasks and events into bound SQL parameters.

state:failed stage:judge -model:m-large latency>5s parse:truncated "some title"

Terms are separated by blanks and must all match; a leading minus negates a term. Values
with blanks go in double quotes. A term without a key is searched in the item's key and
compared with the task's number, 12 or T-0000012. `state:done` selects the completed and
the failed tasks, `state:unparsed` the completed ones whose reply could not be parsed.
`err:` and `reason:` match any attempt, also of a task that a later one completed;
`err:*` is any error. `outcome:wrong`, `outcome:right` and `outcome:ungrounded` are by
the newest scoring; any other outcome is a reason.
User input becomes parameters and never SQL: the conditions themselves are the fragments
`where_*` of `queries.sql`.

kind:attempt_failed err:RateLimited model:m-large -stage:judge "too many"

A term without a key is searched in the event's kind and in the values of its facts, not
in their names, and compared with the number of its task. Error classes and reasons have
the same names as in the language of tasks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import TypeAlias

from store.database import SQL
from store.errors import QueryError
from store.events import KINDS
from store.nearest import did_you_mean, nearest
from store.task import PICO_PER_USD, TaskState
from store.verdicts import OUTCOMES

Parameter: TypeAlias = str | int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One condition."""

    fragment: str  #: name of its fragment, without `where_`
    parameters: tuple[Parameter, ...] = ()
    is_negated: bool = False


TermReader: TypeAlias = Callable[[str, str, int], Term]
"""Reads a key's operator and value; given their position too, for errors."""


@dataclass(frozen=True, slots=True)
class Query:
    """A filter: every term must match; without terms everything passes."""

    terms: tuple[Term, ...] = ()

    def condition(self) -> str:
        """The filter as an SQL condition over the view `tasks`."""
        if not self.terms:
            return SQL["where_all"]
        return " AND ".join(_term_sql(term) for term in self.terms)

    def parameters(self) -> tuple[Parameter, ...]:
        """The values of the condition's placeholders, in order."""
        return tuple(value for term in self.terms for value in term.parameters)

    @property
    def failure(self) -> str | None:
        """The error or reason that it asks for; empty: any; None: it asks for none."""
        return next(
            (
                str(term.parameters[0]) if term.parameters else ""
                for term in self.terms
                if term.fragment in _FAILURES and not term.is_negated
            ),
            None,
        )


_OF_ANY_ATTEMPT = frozenset({"err", "err_any", "reason", "reason_any"})
"""Fragments about any attempt: of the end of a task, and of an event before it."""
_FAILURES = _OF_ANY_ATTEMPT | {"parse", "parse_any"}


def _term_sql(term: Term) -> str:
    if term.fragment in _OF_ANY_ATTEMPT:
        ended, event = (SQL[f"where_{of}_{term.fragment}"] for of in ("ended", "event"))
        sql = SQL["where_any_attempt"].format(ended, event)
        if term.fragment == "err":
            sql = SQL["where_known_err"].format(sql)
    else:
        sql = SQL[f"where_{term.fragment}"]
    # a comparison with NULL is NULL, which does not match, so its negation does
    return SQL["where_not"].format(sql) if term.is_negated else f"({sql})"


_TERM = re.compile(
    r"""\s*(?P<minus>-?)
    (?:(?P<key>[A-Za-z_]+)(?P<op>[:<>]))?
    (?:"(?P<quoted>[^"]*)"|(?P<bare>[^\s"]+))?(?P<rest>\S*)""",
    re.VERBOSE,
)
_STATES = {state.name.lower(): int(state) for state in TaskState}
#: Words for several states, or for a part of one, with their fragments.
_STATE_GROUPS = {
    "done": "done",
    "unparsed": "parse_any",
    "open": "open",
    "final": "final",
    "held": "held",
}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)")
_MS = {"ms": 1.0, "s": 1000.0, "": 1000.0, "m": 60_000.0, "h": 3_600_000.0}
_MONEY = re.compile(r"\$?(\d+(?:\.\d+)?)")
_TASK_NUMBER = re.compile(r"(?:[Tt]-)?(\d{1,18})")
#: No task has this number: non-numeric text is compared with it.
_NO_TASK = 0


def parse_query(expression: str) -> Query:
    """Read a filter.

    >>> parse_query("attempts>2 -stage:judge").terms[0].parameters
    (2,)

    Raises:
        QueryError: a term cannot be read; carries its position.
    """
    return Query(parse_terms(expression, KEYS, _text))


def with_keys(expression: str) -> str:
    """Return a filter whose words that are states or outcomes have their key.

    >>> with_keys("failed stage:judge wrong")
    'state:failed stage:judge outcome:wrong'
    """
    keys = dict.fromkeys(OUTCOMES, "outcome:")
    keys |= dict.fromkeys([*_STATES, *_STATE_GROUPS], "state:")
    return re.sub(
        r"\S+", lambda word: keys.get(word[0].lower(), "") + word[0], expression
    )


def parse_terms(
    expression: str, keys: Mapping[str, TermReader], text: Callable[[str], Term]
) -> tuple[Term, ...]:
    """Parse a filter in a language of terms.

    Args:
        expression: the typed text.
        keys: parser for the values of each key.
        text: parser for a term without a key.

    Raises:
        QueryError: a term cannot be read; carries its position.
    """
    try:
        expression.encode()
    except UnicodeEncodeError as error:
        raise QueryError("this character is no text", error.start) from error
    matches = _TERM.finditer(expression.rstrip())
    return tuple(_term(match, keys, text) for match in matches if match[0])


def _term(
    match: re.Match[str], keys: Mapping[str, TermReader], text: Callable[[str], Term]
) -> Term:
    key, operator = match["key"], match["op"]
    value = match["bare"] if match["quoted"] is None else match["quoted"]
    if match["rest"]:
        raise QueryError(
            'a quote is not closed, or something follows it: write key:"two words"',
            match.start("rest"),
        )
    if not value:
        raise QueryError("a value is missing here", match.end())
    if key is None:
        return _negate(text(value), match)
    read = keys.get(_ALIASES.get(key.lower(), key.lower()))
    if read is None:
        raise QueryError(
            f"there is no key {key!r}: "
            + did_you_mean(
                key,
                keys,
                f"use {', '.join(keys)}, or put the text in double quotes",
            ),
            match.start("minus"),
        )
    return _negate(read(operator, value, match.end("op")), match)


_ALIASES = {"error": "err", "try": "attempts"}
"""Other names of keys: that of a panel, and that of a column."""


def final_tasks_query(expression: str) -> Query:
    """The final tasks that a filter names; the failed ones if it is empty.

    An error or reason is that of the task's end: a retry asks nothing again that a
    later attempt has answered.

    Raises:
        QueryError: the filter cannot be read.
    """
    query = parse_query(expression or "state:failed")
    return Query((*parse_query("state:final").terms, *map(_of_end, query.terms)))


def _of_end(term: Term) -> Term:
    """Return a term about any attempt as one about the end of a task."""
    if term.fragment not in _OF_ANY_ATTEMPT:
        return term
    return Term(
        fragment=f"ended_{term.fragment}",
        parameters=term.parameters[:1],
        is_negated=term.is_negated,
    )


def _negate(term: Term, match: re.Match[str]) -> Term:
    return Term(
        fragment=term.fragment,
        parameters=term.parameters,
        is_negated=bool(match["minus"]),
    )


def like_pattern(value: str) -> str:
    """The pattern of texts with *value* in them, where a backslash escapes."""
    escaped = re.sub(r"([\\%_])", r"\\\1", value)
    return f"%{escaped}%"


def task_number(value: str) -> int | None:
    """Return the number in a name of a task, such as `41882` or `T-0041882`."""
    number = _TASK_NUMBER.fullmatch(value)
    return None if number is None else int(number[1])


def _text(value: str) -> Term:
    task = task_number(value) or _NO_TASK
    return Term(fragment="text", parameters=(like_pattern(value), task))


def only_colon(key: str, operator: str, at: int) -> None:
    """Refuse to compare a value that is not a number.

    Raises:
        QueryError: with its position.
    """
    if operator != ":":
        raise QueryError(f"{key} is no number: write {key}:VALUE", at - 1)


def _state(operator: str, value: str, at: int) -> Term:
    only_colon("state", operator, at)
    word = value.lower()
    if word in _STATE_GROUPS:
        return Term(fragment=_STATE_GROUPS[word])
    if word not in _STATES:
        known_states = ", ".join([*_STATES, *_STATE_GROUPS])
        hint = did_you_mean(value, [*_STATES, *_STATE_GROUPS], f"use {known_states}")
        raise QueryError(f"there is no state {value!r}: {hint}", at)
    return Term(fragment="state", parameters=(_STATES[word],))


def _item(operator: str, value: str, at: int) -> Term:
    only_colon("item", operator, at)
    return Term(fragment="item", parameters=(like_pattern(value),))


def _name(key: str, operator: str, value: str, at: int) -> Term:
    """Return the term of a key with names as values; `*` matches any."""
    only_colon(key, operator, at)
    if value == "*":
        return Term(fragment=f"{key}_any")
    return Term(fragment=key, parameters=(value,) * _TIMES.get(key, 1))


_TIMES = {"err": 3, "reason": 2}
"""Number of times that the condition of a key uses its value."""


def _latency(operator: str, value: str, at: int) -> Term:
    match = _DURATION.fullmatch(value)
    if match is None or operator == ":":
        raise QueryError("write latency>5s or latency<200ms (ms, s, m, h)", at)
    return Term(
        fragment="latency_above" if operator == ">" else "latency_below",
        parameters=(float(match[1]) * _MS[match[2]],),
    )


def _cost(operator: str, value: str, at: int) -> Term:
    match = _MONEY.fullmatch(value)
    if match is None or operator == ":":
        raise QueryError("write cost>0.01 or cost<0.5 (US dollars)", at)
    return Term(
        fragment="cost_above" if operator == ">" else "cost_below",
        parameters=(float(match[1]) * PICO_PER_USD,),
    )


def _task(operator: str, value: str, at: int) -> Term:
    only_colon("task", operator, at)
    number = task_number(value)
    if number is None:
        raise QueryError("write task:12", at)
    return Term(fragment="task", parameters=(number,))


def _outcome(operator: str, value: str, at: int) -> Term:
    only_colon("outcome", operator, at)
    word = value.lower()
    if word in OUTCOMES:
        return Term(fragment="outcome", parameters=(word,))
    if word in _OTHER_OUTCOMES:
        return _state(operator, word, at)
    known = [*OUTCOMES, *_OTHER_OUTCOMES]
    if nearest(value, known):
        hint = did_you_mean(value, known, "")
        raise QueryError(f"there is no outcome {value!r}: {hint}", at)
    return _name("reason", operator, value, at)  # as the column shows them


_OTHER_OUTCOMES = ("unparsed", "failed")
"""Outcomes that need no scoring."""
_ATTEMPTS = {":": "attempts", ">": "attempts_above", "<": "attempts_below"}


def _attempts(operator: str, value: str, at: int) -> Term:
    if re.fullmatch(r"\d{1,18}", value, re.ASCII) is None:
        raise QueryError("write attempts:3, attempts>2 or attempts<2", at)
    return Term(fragment=_ATTEMPTS[operator], parameters=(int(value),))


KEYS: Mapping[str, TermReader] = {
    "state": _state,
    "stage": partial(_name, "stage"),
    "model": partial(_name, "model"),
    "item": _item,
    "err": partial(_name, "err"),
    "parse": partial(_name, "parse"),
    "reason": partial(_name, "reason"),
    "outcome": _outcome,
    "latency": _latency,
    "cost": _cost,
    "attempts": _attempts,
    "task": _task,
}
"""Every key of the language, with the parser of its values."""


REJECTED = Query((Term(fragment="rejected"),))
"""Tasks with a reply that could not be used, even if a later one could.

It reads all events: not for a list that is watched.
"""


@dataclass(frozen=True, slots=True)
class EventQuery(Query):
    """A filter of events: every term must match; without terms everything passes."""

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds that match; if none is named: all."""
        kinds = frozenset(KINDS)
        for term in self._required("event_kind"):
            kinds &= frozenset(json.loads(str(term.parameters[0])))
        return kinds

    @property
    def task(self) -> int | None:
        """The one task whose events match, if one is named."""
        return next(
            (int(term.parameters[0]) for term in self._required("event_task")), None
        )

    def _required(self, fragment: str) -> Iterator[Term]:
        return (
            term
            for term in self.terms
            if term.fragment == fragment and not term.is_negated
        )


def parse_event_query(expression: str) -> EventQuery:
    """Read a filter of events.

    >>> sorted(parse_event_query("kind:run_* -kind:run_started").kinds)[:2]
    ['run_cancelled', 'run_drained']

    Raises:
        QueryError: a term cannot be read; carries its position.
    """
    return EventQuery(parse_terms(expression, EVENT_KEYS, _event_text))


def _event_text(value: str) -> Term:
    as_stored = json.dumps(value, ensure_ascii=False)[1:-1]
    return Term(
        fragment="event_text",
        parameters=(
            task_number(value) or _NO_TASK,
            like_pattern(value),
            like_pattern(as_stored),
            like_pattern(value),
        ),
    )


def _kind(operator: str, value: str, at: int) -> Term:
    only_colon("kind", operator, at)
    kinds = [kind for kind in KINDS if fnmatchcase(kind, value.lower())]
    if not kinds:
        raise QueryError(
            f"there is no kind {value!r}: "
            + did_you_mean(
                value,
                KINDS,
                f"use {', '.join(KINDS)}, or a prefix with an asterisk, such as run_*",
            ),
            at,
        )
    return Term(fragment="event_kind", parameters=(json.dumps(kinds),))


def _event_task(operator: str, value: str, at: int) -> Term:
    only_colon("task", operator, at)
    number = task_number(value)
    if number is None:
        raise QueryError("write task:41882", at)
    return Term(fragment="event_task", parameters=(number,))


def _event_name(
    key: str, operator: str, value: str, at: int, *, times: int = 1
) -> Term:
    """The term of a key with names as values."""
    only_colon(key, operator, at)
    return Term(fragment=f"event_{key}", parameters=(value,) * times)


def _err(operator: str, value: str, at: int) -> Term:
    only_colon("err", operator, at)
    if value == "*":
        return Term(fragment="event_err_any")
    return Term(fragment="event_err", parameters=(value,))


def _event_item(operator: str, value: str, at: int) -> Term:
    only_colon("item", operator, at)
    return Term(fragment="event_item", parameters=(like_pattern(value),))


EVENT_KEYS: Mapping[str, TermReader] = {
    "kind": _kind,
    "task": _event_task,
    "stage": partial(_event_name, "stage"),
    "model": partial(_event_name, "model", times=2),
    "item": _event_item,
    "err": _err,
    "reason": partial(_event_name, "reason"),
}
"""Every key of the language, with the parser of its values."""
