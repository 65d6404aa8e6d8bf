"""Reads a run's answers from its log, in the order of `store.scoring.families`."""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from runner.added_stages import AddedStage
from runner.clients import wire
from runner.clients.wire import decode_reply
from runner.fingerprint import source_hash
from runner.job import Answer, Job, ReplyParser, parsed_by
from runner.messages import AnyReply, Reply
from runner.plan import has_answer, outcome_answer
from runner.score.parsed_replies import PageKey, ParsedReplies, page_key
from store.outcomes import Outcome, link_at, outcome_pages, stable_link, stored_bodies

REPLIES: Final = 256
"""Replies read at a time: bodies take most of the memory."""


@dataclass(frozen=True, slots=True)
class ParsedFolder:
    """Folder of the parsed replies of a run."""

    path: Path
    writes: bool  #: False: what is stored is used, and nothing is stored

    def open(
        self,
        parser: ReplyParser[Any],
        key: PageKey,
        link_at: Callable[[int], bytes | None],
    ) -> ParsedReplies:
        """Open the results of a parser."""
        return ParsedReplies(self.path, parser, key, link_at, writes=self.writes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAnswers:
    """A run's answers up to one event, over a read-only connection."""

    connection: sqlite3.Connection
    through_seq: int
    models: tuple[str, ...]
    replicates: int
    imported: bool
    parsed: ParsedFolder | None = None  #: None: replies are parsed each time
    without: frozenset[str] = frozenset()  #: stages whose answers are left out

    def about(self, job: Job, added: AddedStage) -> LogAnswers:
        """Return the answers of an added stage and of the one that it is about.

        Args:
            job: the job with the stages that were added before.
            added: the stage.
        """
        every = {stage.name for stage in job.stages} | self.without
        others = every - {added.stage.name, added.after}
        return replace(self, without=frozenset(others))

    def families(self) -> Iterator[tuple[Answer, ...]]:
        """Yield each first-stage answer with all its descendants."""
        for page in self._pages():
            yield from _families(zip(page, self._read(page), strict=True))

    def _pages(self) -> Iterator[list[Outcome]]:
        for page in outcome_pages(self.connection, self.through_seq):
            if self.without:
                yield [row for row in page if row.stage not in self.without]
            else:
                yield page

    def parsed_families(self, parser: ReplyParser[Any]) -> Iterator[tuple[Answer, ...]]:
        """Yield them with parsed chat replies, as `runner.job.parsed_families` does."""
        link = stable_link(self.connection, self.through_seq)
        if self.parsed is None or link is None:
            for family in self.families():
                yield tuple([parsed_by(parser, answer) for answer in family])
            return
        with self.parsed.open(
            parser,
            page_key(_parser_hash(parser), *link),
            lambda seq: link_at(self.connection, seq),
        ) as stored:
            for page in self._pages():
                answers = self._parsed(page, parser, stored)
                yield from _families(zip(page, answers, strict=True))

    def _parsed(
        self, page: list[Outcome], parser: ReplyParser[Any], stored: ParsedReplies
    ) -> Iterator[Answer]:
        answered = [row for row in page if has_answer(row)]

        def parse() -> list[Any]:
            return [
                parser.parse(row.stage, reply) if isinstance(reply, Reply) else None
                for row, reply in self._replies(answered)
            ]

        seqs = [row.reply_seq for row in answered if row.reply_seq is not None]
        values = dict(zip(seqs, stored.page(seqs, parse), strict=True))
        # replies that are no chat's have no parsed value: they come as they are
        bare = (row for row in answered if values[row.reply_seq or 0] is None)
        whole = {answer.task.number: answer for answer in self._read([*bare])}
        for row in page:
            value = values.get(row.reply_seq or 0) if has_answer(row) else None
            if row.task in whole:
                yield whole[row.task]
            else:
                yield outcome_answer(row, None, value)

    def _read(self, rows: Sequence[Outcome]) -> Iterator[Answer]:
        """Yield the answers of some tasks with their replies."""
        for row, reply in self._replies(rows):
            yield outcome_answer(row, reply)

    def _replies(
        self, rows: Sequence[Outcome]
    ) -> Iterator[tuple[Outcome, AnyReply | None]]:
        """Yield some tasks with the replies that count."""
        for start in range(0, len(rows), REPLIES):
            some = rows[start : start + REPLIES]
            seqs = [seq for row in some if (seq := row.reply_seq) is not None]
            bodies = stored_bodies(self.connection, seqs)
            for row in some:
                reply = None
                if has_answer(row):
                    reply = decode_reply(*bodies[row.reply_seq or 0])
                yield row, reply


def _families(
    answers: Iterator[tuple[Outcome, Answer]],
) -> Iterator[tuple[Answer, ...]]:
    for _, family in groupby(answers, key=lambda pair: pair[0].root):
        yield tuple([answer for _, answer in family])


def _parser_hash(parser: ReplyParser[Any]) -> str:
    """Hash what a result depends on besides the reply."""
    module = sys.modules[parser.parse.__module__]
    parts = (
        parser.name,
        source_hash(module),
        source_hash(wire),
        sys.version,
        hashlib.sha256(parser.reads.encode()).hexdigest(),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
