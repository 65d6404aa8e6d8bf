"""Plans the tasks of ask, builds their requests and parses their replies.

Stages: `ask` requests all fields of an item; `chunk` requests them for each chunk of a
text that is longer than the recipe's chunks; `then` has follow-ups for items whose
answers meet a condition; `check` (the same model) and `judge` (a second one) verify
values against their quotes. Items have a task per request; checks carry the values as
their context, because a request depends on its task and the data alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from msgspec import structs

from jobs.ask.inputs import AskDataset
from jobs.ask.merge import ASK, CHECK, CHUNK, JUDGE, THEN, Parse, TaskPlace, place_of
from jobs.kit.chat import chat_request, data_block, is_longer_than
from jobs.kit.fields.conditions import Condition
from jobs.kit.fields.merge import merged_fields
from jobs.kit.fields.parsing import (
    FieldAnswer,
    ParsedCheck,
    ParsedReply,
    read_check,
    read_fields,
)
from jobs.kit.fields.prompts import check_form, check_schema, definition, json_text
from jobs.kit.grounding import GroundingLevel
from runner.errors import DatasetError
from runner.job import Answer, Stage, Task, TaskSpec
from runner.job_faults import guarded
from runner.messages import ChatRequest, ParseFailure, Reply
from runner.money.tokens import prompt_tokens, text_tokens

LEAST_CHUNK: Final = 50
"""Tokens of the smallest chunk that a recipe may have."""


def plan(dataset: AskDataset) -> Iterator[TaskSpec]:
    """Yield a task for each item, or for each chunk of a long one."""
    for key in dataset.items:
        chunks = dataset.chunks(key) if dataset.chunking else ()
        if len(chunks) < 2:  # noqa: PLR2004 - one chunk is the whole text
            skip = "no_text" if dataset.is_blank(key) else None
            yield TaskSpec(stage=ASK, key=key, skip=skip)
            continue
        for chunk in chunks:
            place = TaskPlace(item=key, chunk=chunk.number)
            yield TaskSpec(stage=CHUNK, key=place.key, group=key)


def titles(dataset: AskDataset) -> Iterator[tuple[str, str]]:
    """Yield the items that have a title, with it."""
    for key, item in dataset.items.items():
        yield key, item.fields.get("title", "")


def item(dataset: AskDataset, spec: TaskSpec) -> str:
    """Return the item of a first-stage spec."""
    del dataset
    return spec.key if spec.group is None else spec.group


def reaches(dataset: AskDataset) -> list[str]:
    """Return the stages that the recipe has."""
    recipe = dataset.recipe
    checks = {check.by for check in recipe.check}
    stages = [ASK]
    stages += [CHUNK] if dataset.chunking else []
    stages += [THEN] if recipe.then else []
    stages += [CHECK] if "same" in checks else []
    return stages + ([JUDGE] if "judge" in checks else [])


def request(dataset: AskDataset, task: Task) -> ChatRequest:
    """Build the request of a task; raise `KeyError` if the data lost its item."""
    place = place_of(task)
    if place.check:
        return _check_request(dataset, task)
    return _field_request(dataset, place)


def _field_request(dataset: AskDataset, place: TaskPlace) -> ChatRequest:
    text, span = dataset.items[place.item].document.text, None
    if place.chunk:
        span = dataset.chunks(place.item)[place.chunk - 1].span
        text = text[span.start : span.end]
    prompt = dataset.constants[place.then]
    messages = dataset.prompts.messages(
        "ask", text=data_block("text", text, seed=place.key), **prompt.values
    )
    if images := dataset.images(place.item, span):
        *before, user = messages
        seen = structs.replace(user, parts=(*user.parts, *images))
        messages = (*before, seen)
    return chat_request(dataset.settings, messages, prompt.schema)


def _check_request(dataset: AskDataset, task: Task) -> ChatRequest:
    entries: dict[str, dict[str, object]] = json.loads(task.context or "{}")
    fields = dataset.recipe.every_field
    lines = [
        json_text(
            {"field": name, "question": spec.ask, "type": definition(spec), **entry}
        )
        for name, entry in entries.items()
        if (spec := fields.get(name))
    ]
    messages = dataset.prompts.messages(
        "check",
        form=check_form(entries),
        values=data_block("values", "\n".join(lines), seed=task.key),
    )
    return chat_request(dataset.settings, messages, check_schema(entries))


def admit(dataset: AskDataset) -> None:
    """Refuse texts that are longer than the context of a model."""
    limit = dataset.settings.context_tokens
    if limit is None:
        return
    for spec in plan(dataset):
        place = place_of(_task_of(spec))
        if spec.skip is not None:
            continue
        planned = _field_request(dataset, place)
        if is_longer_than(planned, limit):
            where = dataset.items[place.item].where
            raise DatasetError(
                f"{where}: the text of {place.item!r} makes a prompt longer than the "
                f"model's context of {limit:,} tokens ({_advice(planned, limit)})."
            )


def _advice(planned: ChatRequest, limit: int) -> str:
    """Describe how a text would fit, with a tenth to spare for the estimate's error."""
    text = planned.messages[-1].text
    room = (limit - prompt_tokens(planned) + text_tokens(text)) * 9 // 10
    if room < LEAST_CHUNK:
        return "the questions leave no room for a text: ask fewer of them at once"
    return (
        f"split it: chunk = {{ tokens = {room}, overlap = {room // 10} }} in the "
        f"recipe, or --chunk {room}"
    )


def _task_of(spec: TaskSpec) -> Task:
    return Task(number=0, stage=spec.stage, key=spec.key, model="", replicate=1)


# Replies


def parsed(
    dataset: AskDataset, task: Task, reply: Reply
) -> ParsedReply | ParsedCheck | ParseFailure:
    """Parse a reply of any stage, and locate its quotes."""
    place = place_of(task)
    if place.check:
        return read_check(reply, json.loads(task.context or "{}"))
    recipe = dataset.recipe
    specs = recipe.requested(place.then) if place.then <= len(recipe.then) else {}
    read = read_fields(reply, specs)
    if isinstance(read, ParseFailure) or place.item not in dataset.items:
        return read
    return replace(
        read,
        fields={
            name: _located(dataset, place, answer)
            for name, answer in read.fields.items()
        },
    )


def _located(dataset: AskDataset, place: TaskPlace, answer: FieldAnswer) -> FieldAnswer:
    quotes = tuple(dataset.located(place.item, quote) for quote in answer.quotes)
    return replace(answer, quotes=quotes, chunk=place.chunk)


_parse = guarded(parsed)


def parser_of(dataset: AskDataset) -> Parse:
    """Return the parser of a data set, for `merge.item_answers`."""

    def parse(answer: Answer) -> ParsedReply | ParsedCheck | ParseFailure | None:
        if answer.chat is None:
            return None
        return _parse(dataset, answer.task, answer.chat)

    return parse


STAGES = (
    Stage(name=ASK, parse=_parse),
    Stage(name=CHUNK, parse=_parse, gathers=True),
    Stage(name=THEN, parse=_parse, gathers=True),
    Stage(name=CHECK, parse=_parse, follows=False),
    Stage(name=JUDGE, parse=_parse, follows=False, role="judge"),
)


# Follow-ups


def follow_up(dataset: AskDataset, group: tuple[Answer, ...]) -> Iterator[TaskSpec]:
    """Yield the follow-ups and checks of a request whose tasks have all ended."""
    place = place_of(group[0].task)
    replies = [a.parsed for a in group if isinstance(a.parsed, ParsedReply)]
    if place.check or place.item not in dataset.items or not replies:
        return
    fields = merged_fields(replies, dataset.recipe.requested(place.then))
    if not place.then:
        yield from _thens(dataset, place.item, fields)
    yield from _checks(dataset, replace(place, chunk=0), fields)


def _thens(
    dataset: AskDataset, key: str, fields: Mapping[str, FieldAnswer]
) -> Iterator[TaskSpec]:
    values = {name: answer.value for name, answer in fields.items()}
    for number, then in enumerate(dataset.recipe.then, 1):
        if not Condition.parse(then.when).holds(values):
            continue
        chunks = dataset.chunks(key)
        group = TaskPlace(item=key, then=number).key
        for chunk in (0,) if len(chunks) == 1 else (c.number for c in chunks):
            place = TaskPlace(item=key, then=number, chunk=chunk)
            yield TaskSpec(stage=THEN, key=place.key, group=group)


def _checks(
    dataset: AskDataset, place: TaskPlace, fields: Mapping[str, FieldAnswer]
) -> Iterator[TaskSpec]:
    """Yield the checks of values whose quotes are in the text.

    An invented quote is already known to be wrong.
    """
    recipe = dataset.recipe
    for number, check in enumerate(recipe.check, 1):
        entries = {
            name: {"value": answer.value, "quote": [q.text for q in answer.quotes]}
            for name, answer in fields.items()
            if name in recipe.checked(check)
            and answer.is_answered
            and answer.quotes
            and all(q.level is not GroundingLevel.ABSENT for q in answer.quotes)
        }
        if entries:
            yield TaskSpec(
                stage=JUDGE if check.by == "judge" else CHECK,
                key=replace(place, check=number).key,
                context=json.dumps(entries, ensure_ascii=False),
            )
