"""What the Events screen reads of a log is what the log holds, while it is the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from store.errors import StoreError
from store.query import parse_event_query
from store.read.history import SeqRange
from store.runs import RunFolder
from tests.store.logs import COURSE, written
from tui.sources.connection import SameFile
from tui.sources.events import LogEvents, Tip


@pytest.mark.asyncio
async def test_the_end_the_events_and_their_bodies(tmp_path: Path) -> None:
    await asyncio.to_thread(written, tmp_path / "log.db", *COURSE)
    source = LogEvents(RunFolder(tmp_path))
    tip = await source.tip()
    assert tip == Tip(seq=tip.seq, phase="run_drained", is_alive=False)
    query = parse_event_query("kind:attempt_answered")
    found = await source.find(query, SeqRange(1, tip.seq), limit=2, is_backward=True)
    last = found.events[-1]
    assert await source.body(last) == "better"
    assert len(found.rest)
    assert (await source.names()).errors == ("Overloaded",)
    (tmp_path / "log.db").rename(tmp_path / "other.db")
    with pytest.raises(StoreError, match="is gone, deleted or moved"):
        await source.tip()
    source.close()


def test_a_log_that_comes_back_is_the_same_and_another_is_not(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.log.write_bytes(b"one")
    seen = SameFile(folder)
    seen.check()
    folder.log.rename(tmp_path / "aside")
    with pytest.raises(StoreError, match="gone"):
        seen.check()
    (tmp_path / "aside").rename(folder.log)
    seen.check()
    folder.log.rename(tmp_path / "aside")
    folder.log.write_bytes(b"two")
    with pytest.raises(StoreError, match="another file by now"):
        seen.check()
