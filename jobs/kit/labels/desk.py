"""Opens labelling sessions over a run, for one person or for several at once.

    async with open_desk(run, folder, LabelSelection()) as desk:
        async with desk.session("ann") as session:
            ...

The run's data and answers are read in a thread: an event loop that draws a screen or
answers requests goes on meanwhile. Each session writes a label log of its own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from jobs.kit.labels.draw_events import draw_events, recorded_draw
from jobs.kit.labels.label_rows import known_item
from jobs.kit.labels.session import LabelSession, SessionProgress
from jobs.kit.labels.source import LabelSource, label_source
from runner.labelling import LabelField, LabelItem, ModelLabel
from store.clock import Clock, SystemClock
from store.labels.fold import ItemField, LabelSet, TextHashes
from store.labels.folder import LabelFolder
from store.labels.writer import LabelWriter
from store.runs import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawRequest:
    """A draw of items by a design."""

    design: str
    n: int  #: expected number of items
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelection:
    """Questions of a session, and what is visible in it."""

    items: tuple[str, ...] = ()  #: empty: those of the draw, or all
    fields: tuple[str, ...] = ()  #: empty: all
    draw: DrawRequest | None = None
    continues_draw: bool = False
    """Whether the items of the latest draw are taken where none is named."""
    is_assisted: bool = False  #: replies are visible from the start
    is_adjudicating: bool = False  #: disputed fields, with the labels of all people
    hides_names: bool = False  #: people's labels are shown without their names


class SessionDesk(Protocol):
    """Opens sessions for a front end."""

    def session(
        self, author: str, clock: Clock | None = None
    ) -> AbstractAsyncContextManager[LabelSession]:
        """Open a session of an author; *clock* measures the seconds of an answer."""
        ...


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A desk with one session, which its caller has opened and closes."""

    opened: LabelSession

    @asynccontextmanager
    async def session(
        self, author: str, clock: Clock | None = None
    ) -> AsyncIterator[LabelSession]:
        """Return the session; it has its author and clock."""
        del author, clock
        yield self.opened


class LabelDesk:
    """A run whose data is loaded, and the sessions over it; see `open_desk`."""

    def __init__(
        self,
        source: LabelSource,
        folder: Path,
        selection: LabelSelection,
        reader: ThreadPoolExecutor,
    ) -> None:
        self.source = source
        self.folder = folder  #: of label logs
        self.selection = selection
        self.progress: dict[str, SessionProgress] = {}
        """Progress of the sessions that have ended, by author."""
        self._reader = reader
        self._labels = LabelFolder(folder)
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def session(
        self, author: str, clock: Clock | None = None
    ) -> AsyncIterator[LabelSession]:
        """Open a session of an author, and close its log at the end.

        Args:
            author: name of the person.
            clock: measures the seconds of an answer; None: the system's.

        Raises:
            StoreError: the author's log cannot be opened.
            UsageError: nothing can be drawn.
        """
        chosen, needs_reply = self.selection, self.source.labelling.needs_reply
        async with await LabelWriter.open(
            self.folder,
            author=author,
            clock=SystemClock(),
            owner=f"{os.uname().nodename}:{os.getpid()}",
            siftlog_version=version("siftlog"),
        ) as writer:
            async with self._opening:  # sessions that open together record a draw once
                labels = await asyncio.to_thread(self._labels.refresh)
                keys = chosen.items
                if chosen.draw is not None:
                    keys = await self._drawn(chosen.draw, writer, labels)
                    labels = await asyncio.to_thread(self._labels.refresh)
            session = await asyncio.to_thread(
                LabelSession,
                _ThreadedSource(self.source, self._reader),
                writer,
                self._questions(keys, labels),
                labels=labels,
                clock=clock or SystemClock(),
                is_assisted=chosen.is_assisted,
                needs_reply=needs_reply,
                is_adjudicating=chosen.is_adjudicating,
                hides_names=chosen.hides_names,
            )
            if chosen.is_assisted or needs_reply:
                await asyncio.to_thread(session.load_replies)
            try:
                yield session
            finally:
                self.progress[writer.author] = session.progress

    async def _drawn(
        self, request: DrawRequest, writer: LabelWriter, labels: LabelSet
    ) -> tuple[str, ...]:
        """Return the items of a draw, recorded before any of them is shown."""
        fields = self.selection.fields
        drawing = partial(
            draw_events,
            self.source,
            labels,
            design=request.design,
            n=request.n,
            seed=request.seed,
            author=writer.author,
            field=fields[0] if len(fields) == 1 else "",
        )
        events = await asyncio.get_running_loop().run_in_executor(self._reader, drawing)
        before = recorded_draw(labels, events[0])
        if before:
            return tuple(draw.event.item for draw in before)
        await writer.drawn(*events)
        return tuple(event.item for event in events)

    def _questions(self, keys: Sequence[str], labels: LabelSet) -> list[ItemField]:
        """Return the questions in order: about some items, or all of the selection."""
        chosen, source = self.selection, self.source
        known, fields = set(source.items), {field.name for field in source.fields}
        questions: Iterable[ItemField]
        if chosen.is_adjudicating:
            labelled = {about.item for about in labels.by_field.keys() | labels.decided}
            disputed = labels.disputed(source.text_hashes(sorted(labelled & known)))
            among = (set(keys) or known) & known
            questions = (
                one for one in disputed if one.item in among and one.field in fields
            )
        else:
            if not keys and chosen.continues_draw and labels.draws:
                latest = recorded_draw(labels, labels.draws[-1].event)
                keys = [one.event.item for one in latest if one.event.item in known]
            questions = source.questions(keys or source.items)
        return [
            one for one in questions if not chosen.fields or one.field in chosen.fields
        ]


class _ThreadedSource:
    """Items and replies of a run; the log is read in the thread that opened it."""

    def __init__(self, source: LabelSource, reader: ThreadPoolExecutor) -> None:
        self._source = source
        self._reader = reader

    @property
    def run(self) -> str:
        """Id of the run."""
        return self._source.run

    @property
    def replies(self) -> Mapping[ItemField, Sequence[ModelLabel]]:
        """Return the models' replies; the first call waits until they are read."""
        return self._reader.submit(lambda: self._source.replies).result()

    @property
    def reply_hashes(self) -> TextHashes:
        """SHA-256 of the replies that labels are about, likewise."""
        return self._reader.submit(lambda: self._source.reply_hashes).result()

    def item(self, key: str) -> LabelItem:
        """An item by its key."""
        return self._source.item(key)

    def field(self, name: str) -> LabelField:
        """A field by its name."""
        return self._source.field(name)


def _named(source: LabelSource, selection: LabelSelection) -> LabelSelection:
    items = source.items_named(selection.items)
    for item in items:
        known_item(source, source.items, item)
    return replace(selection, items=items)


@asynccontextmanager
async def open_desk(
    run: RunFolder, folder: Path, selection: LabelSelection
) -> AsyncIterator[LabelDesk]:
    """Load the data of a run for labelling.

    Args:
        run: the run.
        folder: of label logs.
        selection: what is asked; a task's key stands for the items it is about.

    Raises:
        UsageError: the run has no such item or task.
        DatasetError: an input file is missing or invalid.
        StoreError: the log of the run cannot be read.
    """
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, "labels") as reader:
        stack = ExitStack()
        try:
            source = await loop.run_in_executor(
                reader, stack.enter_context, label_source(run)
            )
            named = await loop.run_in_executor(reader, _named, source, selection)
            yield LabelDesk(source, folder, named, reader)
        finally:
            # its turn comes after a load that was cancelled, in the thread that opened
            # the log
            await loop.run_in_executor(reader, stack.close)
