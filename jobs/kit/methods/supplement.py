"""Writes the supplement of a methods text: its prompts in full, by their SHA-256."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.kit.methods.facts import MOST_PROMPTS, instructions, prompt_sha256
from jobs.kit.methods.record import RunRecord
from runner.sent_requests import RequestExample
from store.printable import printable


def supplement(record: RunRecord) -> str:
    """Return the prompts of a run as Markdown, each with a whole request as example."""
    return "\n".join(_lines(record))


def _lines(record: RunRecord) -> Iterator[str]:
    started = record.started
    yield f"# Prompts of run {started.run_id}"
    yield ""
    yield (
        f"Job {started.job}, version {started.job_version}. Each prompt is followed by "
        "the first request that was made from it. The SHA-256 is that of the "
        "instructions: of the system message, or of the whole request where it has "
        "none, in UTF-8."
    )
    for at, example in enumerate(record.prompts[:MOST_PROMPTS], 1):
        yield from _prompt(at, example)
    more = len(record.prompts) - MOST_PROMPTS
    if more > 0:
        yield ""
        yield f"{more:,} more prompts are in the log: siftlog prompts {started.run_id}"


def _prompt(at: int, example: RequestExample) -> Iterator[str]:
    yield ""
    yield f"## Prompt {at}: stage {printable(example.stage)}"
    yield ""
    yield f"- SHA-256 of the instructions: `{prompt_sha256(example)}`"
    yield f"- requests: {example.requests:,}"
    yield f"- SHA-256 of the example request: `{example.request_sha256}`"
    request = example.request
    if all(role != "system" for role, _ in request.messages):
        yield from _fenced("Request", instructions(example), "json")
        return
    for role, text in request.messages:
        yield from _fenced(f"Message ({role})", text)
    if request.schema is not None:
        yield from _fenced("Schema of the reply", request.schema, "json")


def _fenced(title: str, text: str, language: str = "") -> Iterator[str]:
    """Yield a text as a block of code that nothing in the text can end."""
    safe = printable(text)
    longest = max(map(len, re.findall("`+", safe)), default=0)
    fence = "`" * max(3, longest + 1)
    yield ""
    yield f"{title}:"
    yield ""
    yield f"{fence}{language}"
    yield safe
    yield fence
