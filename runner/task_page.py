"""The page of a task for `siftlog show`: blocks for people, an object for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from runner.job import Answer, QuotedPassage
from runner.messages import ParseFailure, Reply
from runner.sent_requests import reply_text
from runner.task_detail import TaskRecord, plain_value
from store.document import (
    Block,
    Fact,
    Heading,
    Numbers,
    Quote,
    TableBlock,
    Words,
    answer_words,
)
from store.events import AttemptAnswered, AttemptFailed
from store.json_text import tree
from store.printable import LINE
from store.read.tasks import AttemptRow
from store.read.usage import dollars
from store.task import TaskRow

QUOTES: Final = 5
"""Quotes of a task where several are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPage:
    """All about one task, for people and for programs."""

    detail: TaskRecord
    scoring: int | None  #: the latest one, which the verdicts are from
    answer: Answer | None  #: with its reply parsed; None: not parsed
    quotes: tuple[QuotedPassage, ...] = ()

    @property
    def json(self) -> dict[str, Any]:
        """Return the object of `--json`; texts are whole."""
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
        yield Heading(f"task {row.task}  {row.stage}  {row.key}", level=1)
        yield Fact("model", f"{row.model}, replicate {row.replicate}")
        yield Fact("state", _state(row))
        yield from self._prompt(chars, is_printed=has_prompt)
        yield from self._reply(chars)
        yield from self._parsed(chars)
        visible_quotes = self.quotes if has_prompt else self.quotes[:QUOTES]
        for quote in visible_quotes:
            yield from _quote_blocks(quote)
        if more := len(self.quotes) - len(visible_quotes):
            yield Fact("quotes", f"{more:,} more (--full shows them)")
        yield from self._score()
        yield from _attempt_blocks(self.detail.attempts)

    def _prompt(self, chars: int | None, *, is_printed: bool) -> Iterator[Block]:
        prompt = self.detail.prompt
        if prompt is None:
            if any(a.started_us is None for a in self.detail.attempts):
                yield Fact("prompt", "not known: the answer was imported or cached")
            return
        texts = [
            *prompt.messages,
            *([("query", prompt.query)] if prompt.query is not None else []),
            *((f"text {n}", text) for n, text in enumerate(prompt.texts, 1)),
        ]
        if not is_printed:
            length = sum(len(text) for _, text in texts)
            parts = f"{len(texts)} texts" if texts[1:] else "1 text"
            facts = f"{length:,} characters in {parts} (--full shows them)"
            yield Fact("prompt", facts)
            return
        for role, text in texts:
            yield Fact("prompt", f"{role}, {len(text):,} characters")
            yield Quote(_shortened(text, chars))
        if prompt.schema is not None:
            size = f"{len(prompt.schema):,} characters"
            yield Fact("schema", size if chars else f"{size}: {prompt.schema}")

    def _reply(self, chars: int | None) -> Iterator[Block]:
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
            answer = answer_words(f"{verdict.value}{expected}")
            rule = f" ({verdict.rule})" if verdict.rule else ""
            yield Fact("score", f"{word}: {answer}{rule}")


def _state(row: TaskRow) -> str:
    parts = [row.state.name.lower()]
    parts += [text for text in (row.error, row.reason) if text]
    if row.attempts:
        lost = f" ({row.abandoned:,} of unknown outcome)" if row.abandoned else ""
        parts.append(f"{row.attempts:,} attempt{'s'[: row.attempts != 1]}{lost}")
    if row.latency_ms is not None:
        parts.append(_seconds(row.latency_ms))
    if row.cost_usd is not None or row.latency_ms is not None:
        parts.append(f"cost {dollars(row.cost_usd)}")
    return ", ".join(parts)


def _reply_text(detail: TaskRecord) -> str | None:
    """Return the text of a reply; its bytes if it cannot be decoded."""
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
    # an imported answer has no attempt
    rows = [row for row in rows if row.attempt]
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
            again = (
                ""
                if failed.retry_in_s is None
                else f"; again after {failed.retry_in_s:.1f} s"
            )
            outcome = f"{failed.error}: {failed.message}{again}"
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
    seconds = latency_ms / 1e3
    return f"{latency_ms:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
