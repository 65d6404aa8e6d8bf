"""The run that is watched: what every screen about it is made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from platformdirs import user_state_path

from store.clock import Clock
from store.runs import RunFolder
from tui.drawing.glyphs import Glyphs
from tui.sources.answers import Answers
from tui.sources.child import Child, CommandChild
from tui.sources.config import ConfigSource, FolderConfig
from tui.sources.events import EventSource, LogEvents
from tui.sources.filters import FilterFile, FilterMemory
from tui.sources.headline import ChildHeadline, HeadlineSource
from tui.sources.history import HistorySource
from tui.sources.listing import FolderListing, Listing
from tui.sources.log_history import LogHistory
from tui.sources.requests import FolderRequests, RequestSource
from tui.sources.run import RunSource, Source
from tui.sources.tasks import LogTasks, TaskSource
from tui.steering.control import Control, control_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the screens read: logs, or what a test has made.

    Whoever takes a source from here closes it.
    """

    listing: Listing
    run: Callable[[RunFolder], Source]
    tasks: Callable[[RunFolder], TaskSource]
    events: Callable[[RunFolder], EventSource]
    config: Callable[[RunFolder], ConfigSource]
    clock: Clock
    filters: FilterMemory = field(default_factory=FilterMemory)
    requests: Callable[[RunFolder], RequestSource] = FolderRequests
    control: Callable[[RunFolder], Control | None] = lambda _: None
    """Who asks things of a run; by default nobody may."""
    is_read_only: bool = False  #: nobody is to ask anything of any run
    child: Callable[[], Child] = CommandChild
    answers: Answers = field(default_factory=Answers)  #: of all children
    history: Callable[[RunFolder, Clock], HistorySource] = LogHistory
    headline: Callable[[RunFolder, Child, Answers], HeadlineSource] = ChildHeadline

    @classmethod
    def of(cls, runs_dir: Path, clock: Clock, *, is_read_only: bool = False) -> Sources:
        """The logs of a folder's runs, and whether anything may be asked of them."""
        return cls(
            listing=FolderListing(runs_dir, clock),
            run=partial(RunSource, clock=clock),
            tasks=LogTasks,
            events=LogEvents,
            clock=clock,
            filters=FilterFile(user_state_path("siftlog") / "filters.json"),
            config=FolderConfig,
            control=partial(control_of, clock=clock, is_read_only=is_read_only),
            is_read_only=is_read_only,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One run, and the means of showing it."""

    folder: RunFolder
    sources: Sources
    glyphs: Glyphs
    control: Control | None = None  #: None: read-only
