"""The command show: prints one task, or all tasks of an item, with their texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from runner.cli import arguments
from runner.cli.console import DONE, print_json, print_note, print_text
from store.document import (
    Block,
    Fact,
    Heading,
    Numbers,
    Quote,
    TableBlock,
    Words,
    as_text,
)
from store.printable import LINE

if TYPE_CHECKING:
    import sqlite3

    from runner.job import Answer, QuotedPassage
    from runner.task_detail import ReplyReader, TaskDetail, TaskReader
    from store.query import Query
    from store.read.tasks import AttemptRow
    from store.runs import RunFolder
    from store.task import TaskRow

LIMIT: Final = 20
"""Tasks of an item that are shown."""

ONE_CHARS: Final = 3_000
"""Characters of a text of the only task that is shown."""

MANY_CHARS: Final = 600
"""Characters of a text where several tasks are shown."""

QUOTES: Final = 5
"""Quotes of a task where several are shown."""


@click.command()
@arguments.run_argument
@click.argument("name", metavar="ITEM|TASK")
@arguments.filter_
@click.option("--full", is_flag=True, help="Print whole texts.")
@click.option(
    "--parse/--no-parse",
    default=True,
    help="Parse replies and find their quotes, which loads the job and its data.  "
    "[default: parse]",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=LIMIT,
    show_default=True,
    help="Maximum number of tasks.",
)
@arguments.runs_dir
@arguments.as_json
def show(
    run_name: str,
    name: str,
    expression: str,
    full: bool,
    parse: bool,
    limit: int,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Show a task of RUN, or all tasks of an ITEM: prompt, reply, score, attempts.

    ITEM is a key that siftlog tasks lists, or its first part, such as a paper's id; its
    follow-ups are shown too. TASK is a number, such as 12 or T-12. Long texts are
    shortened in the middle; --full prints them whole, and so does --json. Works on live
    and imported runs, and writes nothing.
    """
    from runner.task_detail import TaskReader
    from store.database import open_reader
    from store.query import parse_query
    from store.read.status import run_started
    from store.runs import resolve

    query = parse_query(expression)
    folder = resolve(runs_dir, run_name)
    folder.refresh()
    with open_reader(folder.log) as reader:
        rows, total = _chosen(reader, folder, name, query, limit)
        tasks = TaskReader(reader, folder)
        replies = None
        if parse and any(row.reply_seq is not None for row in rows):
            replies = _reply_reader(folder, run_started(reader).job)
        pages = (_page(tasks, replies, row) for row in rows)
        is_only = len(rows) == 1
        if as_json:
            for page in pages:
                print_json(page.json)
        else:
            chars = None if full else ONE_CHARS if is_only else MANY_CHARS
            print_text(f"run {folder.run_id}  {run_started(reader).job}")
            for page in pages:
                blocks = page.blocks(chars, has_prompt=is_only or full)
                print_text(as_text(blocks))
    if total > len(rows):
        print_note(
            f"{len(rows)} of {total:,} tasks are shown: choose others by --filter, "
            f"such as --filter 'stage:{rows[0].stage}', or more by --limit."
        )
    return DONE


def _chosen(
    reader: sqlite3.Connection,
    folder: RunFolder,
    name: str,
    query: Query,
    limit: int,
) -> tuple[list[TaskRow], int]:
    """Return the tasks to show, at most *limit*, and how many there are.

    Raises:
        UsageError: no task has that number or belongs to that item.
    """
    from runner.errors import UsageError
    from store.query import Query, task_number
    from store.read.tasks import count_by_queue, near_items, of_item, tasks_by_root
    from store.tables import planning, tasks_numbered

    of = of_item(name)
    narrowed = Query((*of.terms, *query.terms))
    rows = tasks_by_root(reader, narrowed, limit=limit)
    if rows:
        return rows, sum(count_by_queue(reader, narrowed).values())
    if tasks_by_root(reader, of, limit=1):
        raise UsageError(f"No task of {name!r} in {folder.run_id} fits the filter.")
    number = task_number(name)
    if number is not None and (numbered := tasks_numbered(reader, [number])):
        return numbered, 1
    tasks = planning(reader).tasks
    if number is not None and not (near := near_items(reader, name)):
        raise UsageError(
            f"Run {folder.run_id} has no item and no task {name!r}: its tasks are "
            f"numbered from 1 to {tasks:,}."
        )
    near = near_items(reader, name)
    verb = "are" if near[1:] else "is"
    hint = (
        f"the nearest {verb} {', '.join(near)}."
        if near
        else f"siftlog tasks {folder.run_id} lists them."
    )
    raise UsageError(f"Run {folder.run_id} has no item {name!r}; {hint}")


def _reply_reader(folder: RunFolder, job_name: str) -> ReplyReader | None:
    """Return the reader of replies; None, with a note, if the job cannot be loaded."""
    from runner.errors import RunnerError
    from runner.job_faults import calling
    from runner.registry import load_job
    from runner.score.scoring import effective_settings
    from runner.task_detail import ReplyReader
    from store.errors import StoreError

    try:
        job = load_job(job_name)
        settings = effective_settings(job, folder, {})
        with calling(job, "load"):
            return ReplyReader(job, job.load(settings))
    except (RunnerError, StoreError) as error:
        print_note(f"Replies are shown without their parsed values: {error}")
        return None


def _page(tasks: TaskReader, replies: ReplyReader | None, row: TaskRow) -> TaskPage:
    """Return a task with its parsed reply and quotes."""
    from runner.errors import RunnerError
    from store.errors import StoreError

    detail = tasks.read(row)
    answer: Answer | None = None
    quotes: tuple[QuotedPassage, ...] = ()
    if replies is not None:
        try:
            answer = replies.parsed(detail)
            quotes = () if answer is None else replies.quotes(answer)
        except (RunnerError, StoreError) as error:
            print_note(f"Task {row.task}: {error}")
    return TaskPage(detail=detail, scoring=tasks.scoring, answer=answer, quotes=quotes)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPage:
    """All about one task, for people and for programs."""

    detail: TaskDetail
    scoring: int | None  #: the latest one, which the verdicts are from
    answer: Answer | None  #: with its reply parsed; None: not parsed
    quotes: tuple[QuotedPassage, ...] = field(default=())

    @property
    def json(self) -> dict[str, Any]:
        """Return the object of `--json`; texts are whole."""
        from runner.messages import ParseFailure, Reply
        from runner.task_detail import plain_value

        detail, row = self.detail, self.detail.row
        reply = detail.reply
        decoded = None if reply is None else reply.decoded
        parsed = None if self.answer is None else self.answer.parsed
        failure = parsed if isinstance(parsed, ParseFailure) else None
        return {
            "task": row.task,
            "stage": row.stage,
            "key": row.key,
            "model": row.model,
            "replicate": row.replicate,
            "root": row.root,
            "group": row.group,
            "state": row.state.name.lower(),
            "error": row.error,
            "reason": row.reason,
            "request_sha256": detail.request_sha256,
            "prompt": None if detail.prompt is None else asdict(detail.prompt),
            "reply": _reply_text(detail),
            "reply_counts": None if reply is None else reply.is_counted,
            "finish_reason": None if decoded is None else decoded.finish_reason,
            "reasoning": (decoded.reasoning or None)
            if isinstance(decoded, Reply)
            else None,
            "parsed": None if failure else plain_value(parsed),
            "parse_failure": None if failure is None else asdict(failure),
            "quotes": [asdict(quote) for quote in self.quotes],
            "scoring": self.scoring,
            "verdicts": [
                {
                    "value": verdict.value,
                    "expected": verdict.expected,
                    "correct": verdict.correct,
                    "rule": verdict.rule,
                }
                for verdict in detail.verdicts
            ],
            "attempts": [_attempt_json(attempt) for attempt in detail.attempts],
            "latency_ms": row.latency_ms,
            "cost_usd": row.cost_usd,
        }

    def blocks(self, chars: int | None, *, has_prompt: bool) -> Iterator[Block]:
        """Yield the page.

        Args:
            chars: longer texts lose their middle; None: all are whole.
            has_prompt: whether the prompt is shown; its size always is.
        """
        row = self.detail.row
        yield ""
        yield Heading(
            f"task {row.task}  {row.stage}  {row.key}  {row.model}  replicate "
            f"{row.replicate}",
            level=1,
        )
        yield Fact("state", _state(row))
        yield from self._prompt(chars, is_shown=has_prompt)
        yield from self._reply(chars)
        yield from self._parsed(chars)
        shown = self.quotes if has_prompt else self.quotes[:QUOTES]
        for quote in shown:
            yield from _quote_blocks(quote)
        if more := len(self.quotes) - len(shown):
            yield Fact("quotes", f"{more:,} more (--full shows them)")
        yield from self._score()
        yield from _attempt_blocks(self.detail.attempts)

    def _prompt(self, chars: int | None, *, is_shown: bool) -> Iterator[Block]:
        prompt = self.detail.prompt
        if prompt is None:
            if any(a.started_us is None for a in self.detail.attempts):
                yield Fact(
                    "prompt", "not in the log: the answer was imported or cached"
                )
            return
        texts = [
            *prompt.messages,
            *([("query", prompt.query)] if prompt.query is not None else []),
            *((f"text {n}", text) for n, text in enumerate(prompt.texts, 1)),
        ]
        if not is_shown:
            size = sum(len(text) for _, text in texts)
            parts = f"{len(texts)} texts" if texts[1:] else "1 text"
            yield Fact("prompt", f"{size:,} characters in {parts} (--full shows them)")
            return
        for role, text in texts:
            yield Fact("prompt", f"{role}, {len(text):,} characters")
            yield Quote(_shortened(text, chars))
        if prompt.schema is not None:
            size = f"{len(prompt.schema):,} characters"
            yield Fact("schema", size if chars else f"{size}: {prompt.schema}")

    def _reply(self, chars: int | None) -> Iterator[Block]:
        from runner.messages import Reply

        reply = self.detail.reply
        if reply is None:
            return
        decoded = reply.decoded
        ended = "" if decoded is None else f"ended: {decoded.finish_reason}"
        refused = "" if reply.is_counted else "refused, asked again"
        text = _reply_text(self.detail) or ""
        facts = [f"{len(text):,} characters", ended, refused]
        yield Fact("reply", ", ".join(filter(None, facts)))
        yield Quote(_shortened(text, chars))
        if isinstance(decoded, Reply) and decoded.reasoning:
            yield Fact("reasoning", f"{len(decoded.reasoning):,} characters")
            yield Quote(_shortened(decoded.reasoning, chars))

    def _parsed(self, chars: int | None) -> Iterator[Block]:
        from runner.messages import ParseFailure
        from runner.task_detail import plain_value
        from store.json_text import tree

        if self.answer is None:
            return
        parsed = self.answer.parsed
        if isinstance(parsed, ParseFailure):
            detail = f": {parsed.detail}" if parsed.detail else ""
            yield Fact("parsed", f"not readable, {parsed.reason}{detail}")
            return
        yield Fact("parsed", type(parsed).__name__)
        yield Quote(_shortened(tree(plain_value(parsed)), chars))

    def _score(self) -> Iterator[Block]:
        if self.scoring is None:
            yield Fact("score", "none: the run has not been scored")
            return
        if not self.detail.verdicts:
            yield Fact("score", f"no verdict in scoring {self.scoring}")
        for verdict in self.detail.verdicts:
            word = {True: "right", False: "wrong", None: "not judged"}[verdict.correct]
            expected = f", expected {verdict.expected}" if verdict.expected else ""
            rule = f" ({verdict.rule})" if verdict.rule else ""
            yield Fact("score", f"{word}: {verdict.value}{expected}{rule}")


def _state(row: TaskRow) -> str:
    from store.read.usage import dollars

    parts = [row.state.name.lower()]
    parts += [text for text in (row.error, row.reason) if text]
    attempts = f"{row.attempts:,} attempt{'' if row.attempts == 1 else 's'}"
    lost = f" ({row.abandoned:,} of unknown outcome)" if row.abandoned else ""
    parts.append(attempts + lost)
    if row.latency_ms is not None:
        parts.append(_seconds(row.latency_ms))
    if row.reply_seq is not None or row.cost_usd is not None:
        parts.append(f"cost {dollars(row.cost_usd)}")
    return ", ".join(parts)


def _reply_text(detail: TaskDetail) -> str | None:
    """Return the text of a reply; its bytes if it cannot be decoded."""
    from runner.export import reply_text

    if detail.reply is None:
        return None
    if detail.reply.decoded is None:
        return detail.reply.stored.body.decode(errors="replace")
    return reply_text(detail.reply.decoded)


def _shortened(text: str, chars: int | None) -> str:
    """Cut a long text in its middle, and wrap lines that a terminal would cut."""
    if chars is not None and len(text) > chars:
        head, tail = text[: 2 * chars // 3], text[len(text) - chars // 3 :]
        left_out = len(text) - len(head) - len(tail)
        text = f"{head}\n[{left_out:,} characters left out: --full shows them]\n{tail}"
    return "\n".join(
        line[start : start + LINE]
        for line in text.splitlines()
        for start in range(0, max(1, len(line)), LINE)
    )


def _quote_blocks(quote: QuotedPassage) -> Iterator[Block]:
    facts = (quote.label, quote.place, quote.match)
    yield Fact("quote", ", ".join(filter(None, facts)) or "in its context")
    if quote.passage is None:
        yield Quote(quote.quote)
    else:
        yield Quote(f"{quote.before}[{quote.passage}]{quote.after}")


def _attempt_blocks(rows: Iterable[AttemptRow]) -> Iterator[Block]:
    rows = list(rows)
    if not rows:
        return
    yield "attempts"
    yield TableBlock(
        [
            Numbers("try"),
            Words("UTC"),
            Words("took"),
            Numbers("in"),
            Numbers("out"),
            Words("cost"),
            Words("outcome"),
        ],
        [_attempt_cells(row) for row in rows],
        is_wide=True,
    )


def _attempt_cells(row: AttemptRow) -> tuple[str | float | None, ...]:
    from store.events import AttemptAnswered, AttemptFailed
    from store.read.usage import dollars

    at = _time(row.started_us if row.started_us is not None else row.ended_us)
    when = None if at is None else at[:19].replace("T", " ")
    match row.outcome:
        case AttemptAnswered() as answered:
            return (
                row.attempt,
                when,
                None if answered.latency_ms is None else _seconds(answered.latency_ms),
                answered.tokens_in,
                answered.tokens_out,
                dollars(answered.cost_usd),
                _answer_words(row, answered.cached),
            )
        case AttemptFailed() as failed:
            status = "" if failed.status is None else f" {failed.status}"
            again = (
                ""
                if failed.retry_in_s is None
                else f"; again after {failed.retry_in_s:.1f} s"
            )
            outcome = f"{failed.error}{status}: {failed.message}{again}"
            took = _seconds(failed.latency_ms)
            return row.attempt, when, took, None, None, None, outcome
        case None:
            return row.attempt, when, None, None, None, None, "no outcome recorded"


def _answer_words(row: AttemptRow, is_cached: bool) -> str:
    reask = getattr(row.outcome, "reask", None)
    problem = f"refused: {reask}" if reask else ""
    if row.unparsed is not None:
        problem = f"unparsed: {row.unparsed}"
    words = problem or ("cached" if is_cached else "answered")
    return f"{words} ({row.fault})" if problem and row.fault else words


def _attempt_json(row: AttemptRow) -> dict[str, Any]:
    from store.events import AttemptAnswered, AttemptFailed

    answered = row.outcome if isinstance(row.outcome, AttemptAnswered) else None
    failed = row.outcome if isinstance(row.outcome, AttemptFailed) else None
    return {
        "attempt": row.attempt,
        "started": _time(row.started_us),
        "ended": _time(row.ended_us),
        "latency_ms": None if row.outcome is None else row.outcome.latency_ms,
        "tokens_in": answered and answered.tokens_in,
        "tokens_out": answered and answered.tokens_out,
        "cost_usd": answered and answered.cost_usd,
        "cached": None if answered is None else answered.cached,
        "refused": answered and answered.reask,
        "unparsed": row.unparsed,
        "fault": row.fault,
        "error": failed and failed.error,
        "status": None if row.outcome is None else row.outcome.status,
        "message": failed and failed.message,
        "retry_in_s": failed and failed.retry_in_s,
    }


def _time(at_us: int | None) -> str | None:
    if at_us is None:
        return None
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="milliseconds")


def _seconds(latency_ms: float) -> str:
    return f"{latency_ms / 1e3:.1f} s"
