"""Writes the supplement of a methods text: its prompts in full, by their SHA-256."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.kit.methods.facts import MOST_PROMPTS, prompt_sha256
from jobs.kit.methods.record import RunRecord
from runner.sent_requests import RequestExample
from store.printable import one_line, printable


def supplement(record: RunRecord, templates: str) -> str:
    """Return the prompts of a run as Markdown.

    Args:
        record: the run, with a request of each form.
        templates: the prompts of the job with their placeholders, as TOML; empty: the
            job has none, or may have changed them since. Then the file has a whole
            request for each prompt, with the text of an item.
    """
    return "\n".join(_lines(record, templates)) + "\n"


def _lines(record: RunRecord, templates: str) -> Iterator[str]:
    started = record.started
    yield f"# Prompts of run {started.run_id}"
    yield ""
    yield (
        f"Job {started.job}, version {started.job_version}. The SHA-256 of a prompt is "
        "that of the messages of the first request that was made from it, as JSON; "
        "these requests are in the event log, and siftlog prompts "
        f"{started.run_id} prints them."
    )
    if templates:
        yield ""
        yield "## Templates"
        yield from _fenced("Texts with their placeholders", templates, "toml")
    for at, example in enumerate(record.prompts[:MOST_PROMPTS], 1):
        yield from _prompt(at, example, is_whole=not templates)
    more = len(record.prompts) - MOST_PROMPTS
    if more > 0:
        yield ""
        yield f"{more:,} more prompts are in the log: siftlog prompts {started.run_id}"


def _prompt(at: int, example: RequestExample, *, is_whole: bool) -> Iterator[str]:
    """Yield a prompt; without the texts of items, unless it has no template."""
    yield ""
    yield f"## Prompt {at}: stage {one_line(example.stage)}"
    yield ""
    yield f"- SHA-256: `{prompt_sha256(example)}`"
    yield f"- requests: {example.requests:,}"
    request = example.request
    for role, text in request.messages:
        if is_whole or role == "system":
            yield from _fenced(f"Message ({one_line(role)})", text)
    if is_whole and not request.messages:
        yield from _fenced("Request", request.json, "json")
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
