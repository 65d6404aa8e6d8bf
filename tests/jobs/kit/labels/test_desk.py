"""What a labelling session has opened is closed, however it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobs.kit.labels import desk
from jobs.kit.labels.desk import LabelSelection, open_desk
from store.runs import RunFolder


def test_a_load_that_is_cancelled_is_closed_in_the_thread_that_opened_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins, goes_on = threading.Event(), threading.Event()
    opened, closed = list[int](), list[int]()

    @contextmanager
    def slow_source(run: RunFolder) -> Iterator[RunFolder]:
        begins.set()
        goes_on.wait()
        opened.append(threading.get_ident())
        try:
            yield run
        finally:
            closed.append(threading.get_ident())

    async def label() -> None:
        run = RunFolder(tmp_path / "r")
        async with open_desk(run, tmp_path / "labels", LabelSelection()):
            pytest.fail("the load was cancelled")

    async def cancel() -> None:
        async with asyncio.TaskGroup() as group:
            labelling = group.create_task(label())
            await asyncio.to_thread(begins.wait)
            labelling.cancel()
            goes_on.set()

    monkeypatch.setattr(desk, "label_source", slow_source)
    asyncio.run(cancel())
    assert opened
    assert closed == opened
    assert closed != [threading.get_ident()]
