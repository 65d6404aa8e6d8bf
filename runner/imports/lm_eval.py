"""Reads sample files of lm-evaluation-harness, `samples_TASK_DATE.jsonl`.

A line is a document under one filter of its replies; a document is one item, whatever
number of filters scored it. The model is named by `results_DATE.json` beside the file.
For multiple choice, a line has the log-likelihood of each choice, and the likeliest is
the reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from runner.imports.json_stream import values_in
from runner.imports.records import (
    ForeignReply,
    RoleMessage,
    decoded,
    flat_fields,
    json_lines,
    messages_from,
    opened,
    score_number,
    seconds_of,
)
from runner.messages import Message

_FILE: Final = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)\.")


class HarnessSample(msgspec.Struct, kw_only=True):
    """A line; the values of its metrics are further keys, by the names in `metrics`."""

    doc_id: int | str
    doc: Any = None
    target: Any = None
    arguments: dict[str, dict[str, Any]] | list[list[Any]] = []
    """Prompt of each call, and its choice or parameters."""
    resps: list[Any]  #: of each call, its replies or its log-likelihoods
    filter: str = "none"
    metrics: list[str] = []

    def calls(self) -> list[tuple[str, Any]]:
        """Return prompt and second argument of each call."""
        calls = (
            [list(call.values()) for call in self.arguments.values()]
            if isinstance(self.arguments, dict)
            else self.arguments
        )
        return [(str(call[0]), call[1] if len(call) > 1 else None) for call in calls]


def read(path: Path) -> Iterator[ForeignReply]:
    """Yield the replies of a sample file, each with the scores of all its filters.

    Raises:
        DatasetError: a line is no sample.
    """
    match = _FILE.match(path.name)
    task = match["task"] if match else ""
    results = path.with_name(f"results_{match['date']}.json") if match else path
    model, created = _results(results) if match and results.is_file() else ("", None)
    scores = _scores(path)
    for where, raw in json_lines(path, msgspec.Raw):
        sample = decoded(bytes(raw), HarnessSample, where)
        of_sample = scores.pop(str(sample.doc_id), None)
        if of_sample is None:
            continue  # the same replies under another filter
        for epoch, (text, dropped) in enumerate(_texts(sample), 1):
            yield ForeignReply(
                item="/".join(filter(None, (task, str(sample.doc_id)))),
                model=model,
                messages=_messages(sample, dropped),
                text=text,
                error="" if text is not None else "no_text",
                epoch=epoch,
                created_s=created,
                target=_target(sample),
                scores=of_sample,
                fields={
                    "doc_id": str(sample.doc_id),
                    **({"task": task} if task else {}),
                    **flat_fields(sample.doc, "doc"),
                },
                dropped=tuple(dropped),
            )


def _results(path: Path) -> tuple[str, int | None]:
    """Return model and time of a file of results."""
    values: dict[str, Any] = {}
    with opened(path) as file:
        for value in values_in(file, path.name, [("model_name",), ("date",)]):
            values[value.path[0]] = decoded(value.raw, object, path.name)
    date = values.get("date")
    created = seconds_of(date) if isinstance(date, str | float | int) else None
    return str(values.get("model_name") or ""), created


def _scores(path: Path) -> dict[str, dict[str, float]]:
    """Return the scores by document and metric; of several filters by both.

    They are read before the replies, because the filters of a document are apart.
    """
    rows: dict[str, dict[tuple[str, str], float]] = {}
    filters: dict[str, None] = {}
    for where, raw in json_lines(path, msgspec.Raw):
        sample = decoded(bytes(raw), HarnessSample, where)
        values = decoded(bytes(raw), dict[str, Any], where)
        filters[sample.filter] = None
        of_doc = rows.setdefault(str(sample.doc_id), {})
        for name in sample.metrics:
            number = score_number(values.get(name))
            if number is not None:
                of_doc[name, sample.filter] = number
    return {
        doc: {
            name if len(filters) == 1 else f"{name},{of_filter}": value
            for (name, of_filter), value in of_doc.items()
        }
        for doc, of_doc in rows.items()
    }


def _texts(sample: HarnessSample) -> Iterator[tuple[str | None, dict[str, None]]]:
    """Yield the replies of a document, each with what is not kept of it."""
    calls = sample.calls()
    likelihoods = [_likelihood(replies) for replies in sample.resps]
    if not calls or not sample.resps or None not in likelihoods:
        dropped = dict.fromkeys(["log-likelihoods"] if likelihoods else [])
        best = max(
            range(min(len(likelihoods), len(calls))),
            key=lambda number: likelihoods[number] or 0.0,
            default=None,
        )
        # a single likelihood is of a given text, which nothing was chosen over
        is_choice = best is not None and len(calls) > 1
        choice = calls[best][1] if is_choice and best is not None else None
        yield (choice.strip() if isinstance(choice, str) else None), dropped
        return
    replies = sample.resps[0]
    for reply in replies if isinstance(replies, list) else [replies]:
        yield (reply if isinstance(reply, str) else json.dumps(reply)), {}


def _likelihood(replies: object) -> float | None:
    """Return the log-likelihood of a call, `[[value, is_greedy]]`; None: it has none.

    Values are written as numbers or as texts.
    """
    first = replies[0] if isinstance(replies, list) and replies else None
    if not isinstance(first, list) or len(first) != 2:  # noqa: PLR2004 - as above
        return None
    try:
        return float(first[0])
    except (TypeError, ValueError):
        return None


def _messages(sample: HarnessSample, dropped: dict[str, None]) -> tuple[Message, ...]:
    calls = sample.calls()
    prompt = calls[0][0] if calls else ""
    if prompt.startswith('[{"role"'):
        # of an endpoint for chats, as JSON
        chat = decoded(prompt.encode(), list[RoleMessage], "arguments")
        return messages_from(chat, dropped)
    return messages_from(prompt, dropped) if prompt else ()


def _target(sample: HarnessSample) -> str | None:
    """Return the right answer; of a number of a choice, its text."""
    target = sample.target
    if target is None or isinstance(target, list | Mapping):
        return None
    choices = [str(of).strip() for _, of in sample.calls() if isinstance(of, str)]
    text = str(target).strip()
    is_number = text.isdecimal() and text not in choices and int(text) < len(choices)
    return choices[int(text)] if is_number else text
