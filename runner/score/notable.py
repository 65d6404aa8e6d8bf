"""Reads the notable items of a run, which a report shows beside its scores.

`store.notable` chooses the items while the verdicts are written. Here their texts are
read from the log: the end of the prompt, each reply, and its quotes in the paper.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runner.errors import RunnerError
from runner.job import Answer, Dataset, Job, QuotedPassage
from runner.job_faults import calling
from runner.messages import ChatRequest
from runner.plan import parsed_answer, task_of
from runner.sent_requests import SentRequests, reply_text
from store.errors import StoreError
from store.notable import NotableRanking, RankedItem, RankedVerdict, UnparsedCount
from store.tables import reply, tasks_numbered
from store.task import TaskRow
from store.titles import read_titles

PROMPT_CHARS: Final = 500
"""Characters of the end of a prompt."""

REPLY_CHARS: Final = 600
"""Characters of a reply; a longer one loses its middle."""

MOST_REPLIES: Final = 8
"""Replies of one item, such as of eight models."""

MOST_QUOTES: Final = 2
"""Quotes of one reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotableReply:
    """One verdict on an item with its reply."""

    verdict: RankedVerdict
    replicate: int
    text: str  #: of the reply, shortened
    quotes: tuple[QuotedPassage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotableItem:
    """An item that a reader should look at."""

    key: str
    title: str  #: of the item; empty: it has none
    stage: str
    part: str  #: of the item, such as a field; empty: all of it
    reasons: tuple[str, ...]  #: in words, the most telling first
    expected: str
    prompt: str  #: its end; empty: it has none, or no text
    is_sent: bool  #: False: the log has no prompt; this is the present job's
    replies: tuple[NotableReply, ...]
    omitted: int  #: replies that are not listed


@dataclass(frozen=True, slots=True, kw_only=True)
class NotableAnswers:
    """The notable items of a scoring, the most telling first."""

    items: tuple[NotableItem, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()  #: items by their most telling reason
    unparsed: tuple[UnparsedCount, ...] = ()


def notable_answers(
    ranking: NotableRanking,
    reader: sqlite3.Connection,
    titles: Path,
    job: Job,
    dataset: Dataset,
) -> NotableAnswers:
    """Read the texts of the items of a ranking.

    Args:
        ranking: of the scoring.
        reader: of the log as the scoring read it.
        titles: the database of the run's titles; it may be absent.
        job: of the run.
        dataset: its data.
    """
    title_by_key = read_titles(titles, {item.key for item in ranking.items})
    texts = _TextReader(reader, title_by_key, job, dataset)
    return NotableAnswers(
        items=tuple(texts.item(ranked) for ranked in ranking.items),
        counts=ranking.counts,
        unparsed=ranking.unparsed,
    )


class _TextReader:
    """Reads prompts, replies and quotes of tasks."""

    def __init__(
        self,
        reader: sqlite3.Connection,
        titles: Mapping[str, str],
        job: Job,
        dataset: Dataset,
    ) -> None:
        self._reader = reader
        self._titles = titles
        self._job = job
        self._dataset = dataset
        self._stages = {stage.name: stage for stage in job.stages}
        self._requests = SentRequests(reader)
        self._has_quotes = type(job).quotes is not Job.quotes

    def item(self, ranked: RankedItem) -> NotableItem:
        """Return an item with its texts."""
        some = ranked.verdicts[:MOST_REPLIES]
        numbers = sorted({verdict.task for verdict in some})
        rows = {row.task: row for row in tasks_numbered(self._reader, numbers)}
        prompt, is_sent = self._prompt([rows[n] for n in numbers if n in rows])
        return NotableItem(
            key=ranked.key,
            title=self._titles.get(ranked.key, ""),
            stage=ranked.stage,
            part=ranked.part,
            reasons=ranked.reasons,
            expected=next((v.expected for v in ranked.verdicts if v.expected), ""),
            prompt=prompt,
            is_sent=is_sent,
            replies=tuple(
                self._reply(verdict, rows[verdict.task])
                for verdict in some
                if verdict.task in rows
            ),
            omitted=len(ranked.verdicts) - len(some),
        )

    def _prompt(self, rows: Sequence[TaskRow]) -> tuple[str, bool]:
        """Return the end of the prompt of the first task that has one."""
        for row in rows:
            sent = self._requests.of_task(row.task)
            if sent is not None:
                messages = sent[1].messages
                return (_end(messages[-1][1]) if messages else ""), True
        for row in rows[:1]:
            try:
                with calling(self._job, "request"):
                    request = self._job.request(self._dataset, task_of(row))
            except (RunnerError, StoreError):
                break  # a stage that imports alone have is never sent
            if isinstance(request, ChatRequest):
                return _end(request.messages[-1].text), False
        return "", True

    def _reply(self, verdict: RankedVerdict, row: TaskRow) -> NotableReply:
        answer: Answer | None = None
        stored = None if row.reply_seq is None else reply(self._reader, row.task)
        if stored is not None and row.stage in self._stages:
            answer = parsed_answer(self._stages, self._dataset, row, stored)
        content = None if answer is None else answer.reply
        return NotableReply(
            verdict=verdict,
            replicate=row.replicate,
            text="" if content is None else _shortened(reply_text(content)),
            quotes=tuple(self._quotes(answer, verdict.part)),
        )

    def _quotes(self, answer: Answer | None, part: str) -> Iterator[QuotedPassage]:
        """Yield some quotes of an answer, those of its part first."""
        if answer is None or not self._has_quotes:
            return
        try:
            with calling(self._job, "quotes"):
                quotes = list(self._job.quotes(self._dataset, answer))
        except (RunnerError, StoreError):
            return  # a report is drawn without them
        of_part = [quote for quote in quotes if part and quote.label.startswith(part)]
        absent = [quote for quote in quotes if quote.passage is None]
        yield from (of_part or absent or quotes)[:MOST_QUOTES]


def _end(prompt: str) -> str:
    text = prompt.strip()
    if len(text) <= PROMPT_CHARS:
        return text
    tail = text[-PROMPT_CHARS:]
    # it begins with a whole line, or else a whole word
    for mark in ("\n", " "):
        before, _, rest = tail.partition(mark)
        if rest and len(before) <= PROMPT_CHARS // 4:
            tail = rest
            break
    return f"…{tail.lstrip()}"


def _shortened(text: str) -> str:
    stripped = text.strip()
    if len(stripped) <= REPLY_CHARS:
        return stripped
    head, tail = 2 * REPLY_CHARS // 3, REPLY_CHARS // 3
    return f"{stripped[:head].rstrip()} … {stripped[-tail:].lstrip()}"
