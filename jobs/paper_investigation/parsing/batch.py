"""One reply that answers several numbered questions, cut into one reply for each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from jobs.json_scan import Object, objects
from runner.messages import Reply

# More digits number no question, and Python refuses to read thousands of them.
_NUMBER = re.compile(r"\d{1,9}")

# A digit behind the dot makes it a decimal that happens to start a line.
_NUMBERED_LINE = re.compile(rf"^[ \t*_]*({_NUMBER.pattern})[.):](?!\d)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchedAnswers:
    """The answers in a batched reply, by the number of their question."""

    answers: tuple[Reply | None, ...]  #: None: the reply has none under that number
    stray: int  #: answers under a number that no question has


def number_answers(numbered: Iterable[tuple[int, Reply]], count: int) -> BatchedAnswers:
    """Sort answers to the *count* questions; of a repeated number the last counts."""
    answers: list[Reply | None] = [None] * count
    stray = 0
    for number, answer in numbered:
        if 1 <= number <= count:
            answers[number - 1] = answer
        else:
            stray += 1
    return BatchedAnswers(answers=tuple(answers), stray=stray)


def split_batch(reply: Reply, count: int) -> BatchedAnswers:
    """The JSON answers by their `n`; where there are none, the numbered blocks."""
    batch = number_answers(_json_answers(reply), count)
    if any(batch.answers):
        return batch
    return number_answers(_blocks(reply), count)


def _json_answers(reply: Reply) -> Iterable[tuple[int, Reply]]:
    for answer in objects(reply.text, _is_numbered):
        yield int(answer["n"]), Reply(text=json.dumps(answer, ensure_ascii=False))


def _is_numbered(value: Object) -> bool:
    number = value.get("n")
    return (
        isinstance(number, str)
        and _NUMBER.fullmatch(number) is not None
        and ("answer" in value or "p_value" in value)
    )


def _blocks(reply: Reply) -> Iterable[tuple[int, Reply]]:
    """From each numbered line to the next, so that JSON over several lines survives.

    Only the last block can have been cut.
    """
    lines = list(_NUMBERED_LINE.finditer(reply.text))
    ends = [line.start() for line in lines[1:]]
    for line, end in zip(lines, [*ends, None], strict=False):
        text = reply.text[line.end() : end]
        how = "stop" if end else reply.finish_reason
        yield int(line[1]), Reply(text=text, finish_reason=how)
