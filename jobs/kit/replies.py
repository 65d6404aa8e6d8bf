"""Reads replies: their text, the JSON in them, and subsets of a run's answers.

JSON values inside free text are found by decoding, and never by repairing.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from runner.job import Answer, Answers, Task
from runner.messages import ParseFailure, Reply

Object: TypeAlias = dict[str, Any]

# At the end of a text: nothing more, or the beginning of a literal or an escape.
_BEGUN_TOKEN = re.compile(r"[\s\w\\+-]*")

_ARRAYS = json.JSONDecoder()

# A number keeps the text it was written with: 0.030 and 1e-05 are shown as stated.
_OBJECTS = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)


def arrays(text: str, *, as_written: bool = False) -> Iterator[list[Any]]:
    """Every JSON array in *text* by its place, nested ones included.

    An array that the end of the text cuts off ends the search: what follows its bracket
    are its own remains, not arrays in their own right.

    Args:
        text: with arrays in it.
        as_written: numbers are texts, with the digits that stand there.
    """
    decoder = _OBJECTS if as_written else _ARRAYS
    start = text.find("[")
    while start >= 0:
        try:
            yield decoder.raw_decode(text, start)[0]
        except json.JSONDecodeError as error:
            if _runs_off_the_end(text, error):
                return
        except (ValueError, RecursionError):  # thousands of digits, or of levels
            return
        start = text.find("[", start + 1)


def objects(text: str, is_wanted: Callable[[Object], bool]) -> Iterator[Object]:
    """Every *is_wanted* JSON object in *text* by its place; numbers in it are texts.

    What stands inside a wanted object is a part of it and not looked at.
    """
    start = text.find("{")
    while start >= 0:
        end = start + 1
        try:
            value, after = _OBJECTS.raw_decode(text, start)
        except json.JSONDecodeError:
            pass
        except RecursionError:
            return
        else:
            if is_wanted(value):
                yield value
                end = after
        start = text.find("{", end)


def whole_object(text: str) -> Object | None:
    """The JSON object that *text* is from end to end, if it is one."""
    try:
        value = _OBJECTS.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def last_object(text: str, is_wanted: Callable[[Object], bool]) -> Object | None:
    """The last of `objects`."""
    last = deque(objects(text, is_wanted), maxlen=1)
    return last.pop() if last else None


def is_cut(text: str, start: int) -> bool:
    """Whether the end of the text cuts off the JSON value that begins at *start*."""
    try:
        _OBJECTS.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return _runs_off_the_end(text, error)
    except RecursionError:
        pass
    return False


def _runs_off_the_end(text: str, error: json.JSONDecodeError) -> bool:
    return error.msg.startswith("Unterminated string") or bool(
        _BEGUN_TOKEN.fullmatch(text, error.pos)
    )


def reply_content(reply: Reply) -> str | ParseFailure:
    """The text of a reply, or why there is none: `empty`, `refusal`, `truncated`."""
    if reply.is_refused:
        return ParseFailure(reason="refusal")
    text = reply.text.lstrip("\ufeff").strip()
    if not text:
        return ParseFailure(reason="truncated" if reply.is_truncated else "empty")
    return text


def first_object_with(name: str, text: str) -> Object | None:
    """The first JSON object with a field; a fence or prose around it is passed over."""
    return next(objects(text, lambda value: name in value), None)


def parse_failure(reply: Reply, reason: str) -> ParseFailure:
    """A reply without what was asked for; one that was cut off says so."""
    return ParseFailure(reason="truncated" if reply.is_truncated else reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSubset:
    """A few families of a run; a `runner.job.Answers`."""

    held: tuple[tuple[Answer, ...], ...]  #: by family
    models: tuple[str, ...]
    replicates: int = 1
    imported: bool = False

    @classmethod
    def matching(
        cls, answers: Answers, is_wanted: Callable[[Task], bool]
    ) -> AnswerSubset:
        """The families whose first task is wanted, in one pass."""
        return cls(
            held=tuple(f for f in answers.families() if is_wanted(f[0].task)),
            models=answers.models,
            replicates=answers.replicates,
            imported=answers.imported,
        )

    def families(self) -> Iterator[tuple[Answer, ...]]:
        """Each first-stage answer with all that descend from it."""
        return iter(self.held)
