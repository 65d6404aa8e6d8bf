"""Merges the answers about one item: chunks of its text, follow-ups and checks.

`jobs.kit.fields.merge` has the rules for chunks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeAlias

from jobs.ask.recipe import Recipe
from jobs.kit.fields.merge import merged_fields
from jobs.kit.fields.parsing import FieldAnswer, FieldCheck, ParsedCheck, ParsedReply
from jobs.kit.fields.results import MergedReplies
from runner.job import Answer, Answers, Task
from runner.messages import ParseFailure

ASK: Final = "ask"
CHUNK: Final = "chunk"
THEN: Final = "then"
CHECK: Final = "check"
JUDGE: Final = "judge"

_THEN: Final = re.compile(
    r"(?P<item>.*)/then(?P<then>\d+)(?:#(?P<chunk>\d+))?", re.DOTALL
)
_CHECK: Final = re.compile(
    r"(?P<item>.*?)(?:/then(?P<then>\d+))?/check(?P<check>\d+)", re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlace:
    """The item of a task, and its part of the recipe."""

    item: str
    chunk: int = 0  #: from 1; 0: the whole text
    then: int = 0  #: number of the follow-up, from 1; 0: the first request
    check: int = 0  #: number of the check, from 1; 0: none

    @property
    def key(self) -> str:
        """Key of the task."""
        then = f"/then{self.then}" if self.then else ""
        check = f"/check{self.check}" if self.check else ""
        chunk = f"#{self.chunk}" if self.chunk else ""
        return f"{self.item}{then}{check}{chunk}"


def place_of(task: Task) -> TaskPlace:
    """Return the item and part of a task, from its stage and key."""
    key = task.key
    if task.stage == CHUNK:
        item, _, number = key.rpartition("#")
        return TaskPlace(item=item, chunk=int(number))
    pattern = {THEN: _THEN, CHECK: _CHECK, JUDGE: _CHECK}.get(task.stage)
    match = pattern.fullmatch(key) if pattern else None
    if match is None:
        return TaskPlace(item=key)
    groups = match.groupdict("0").items()
    numbers = {name: int(text) for name, text in groups if name != "item"}
    return TaskPlace(item=match["item"], **numbers)


_PARTS = re.compile(r"(/then\d+)?(/check\d+)?(#\d+)?\Z", re.ASCII)


def item_of_key(key: str) -> str:
    """Return the item of a task's key if the stage is unknown."""
    return _PARTS.sub("", key, count=1)


Parse: TypeAlias = Callable[[Answer], ParsedReply | ParsedCheck | ParseFailure | None]
"""Parses the reply of an answer; None without a reply."""


def item_answers(
    recipe: Recipe, answers: Answers, parse: Parse
) -> Iterator[MergedReplies]:
    """Yield the merged answers of a run, item by item, in constant memory.

    The models of an item are consecutive, as are the replicates of a model.

    Args:
        recipe: recipe of the run.
        answers: answers of the run.
        parse: parses a reply, with positions of quotes; `plan.parser_of` returns one.
    """
    order = {model: number for number, model in enumerate(answers.models)}
    by_item = groupby(answers.families(), key=lambda f: place_of(f[0].task).item)
    for _, families in by_item:
        sources: dict[tuple[str, int], list[Answer]] = {}
        for family in families:
            source = family[0].task.model, family[0].task.replicate
            sources.setdefault(source, []).extend(family)
        for source in sorted(sources, key=lambda s: (order.get(s[0], len(order)), s)):
            yield merged_item(recipe, sources[source], parse)


def merged_item(
    recipe: Recipe, answers: Sequence[Answer], parse: Parse
) -> MergedReplies:
    """Merge the answers of one model about one item in one replicate."""
    first = answers[0].task
    requests: dict[int, list[Answer]] = {}
    verdicts: dict[str, list[FieldCheck]] = {}
    for answer in answers:
        place = place_of(answer.task)
        if not place.check:
            requests.setdefault(place.then, []).append(answer)
        elif isinstance(check := parse(answer), ParsedCheck):
            for name, verdict in check.verdicts.items():
                verdicts.setdefault(name, []).append(verdict)
    fields: dict[str, FieldAnswer] = {}
    failed: dict[str, str] = {}
    reasoning = ""
    for number, of_request in sorted(requests.items()):
        specs = recipe.requested(number) if number <= len(recipe.then) else {}
        parsed = [parse(answer) for answer in of_request]
        replies = [reply for reply in parsed if isinstance(reply, ParsedReply)]
        if replies:
            fields |= merged_fields(replies, specs)
            reasoning = reasoning or replies[0].reasoning
        elif reason := _failure(of_request, parsed):
            failed |= dict.fromkeys(specs, reason)
    costs = [answer.cost_usd for answer in answers if answer.cost_usd is not None]
    return MergedReplies(
        item=place_of(first).item,
        model=first.model,
        replicate=first.replicate,
        fields=fields,
        failed=failed,
        checks={name: tuple(of_field) for name, of_field in verdicts.items()},
        reasoning=reasoning,
        chunks=len(requests.get(0, ())) or 1,
        is_open=any(answer.is_open for answer in answers),
        cost_usd=math.fsum(costs) if costs else None,
        tasks=tuple(answer.task.number for answer in answers),
    )


def _failure(answers: Sequence[Answer], parsed: Sequence[object]) -> str:
    """Return why no answer of a request has fields; "" if one is still open."""
    for answer, result in zip(answers, parsed, strict=True):
        if isinstance(result, ParseFailure):
            return result.reason
        if answer.error or answer.skip:
            return answer.error or answer.skip or ""
    return ""
