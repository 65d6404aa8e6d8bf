"""A log whose projections are of an older siftlog is read as it stands, and rebuilt."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from store.database import open_reader
from store.read.status import status
from store.read.tasks import mean_costs, model_calls
from store.read.usage import error_counts, failures, usage_counts
from tests.store.logs import COURSE, edit, reopen, written

#: What version 3 of the projections did not have.
_DOWNGRADE = (
    "DROP TABLE lane",
    "DROP TABLE failure",
    "ALTER TABLE error_class DROP COLUMN final",
    "UPDATE projection SET code_ver = 3",
)


def _sums(path: Path) -> tuple[object, ...]:
    with open_reader(path) as reader:
        return (
            status(reader),
            usage_counts(reader),
            model_calls(reader),
            mean_costs(reader),
        )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "log.db", *COURSE)


def test_its_sums_are_the_same_and_what_it_never_kept_is_unknown(path: Path) -> None:
    now = _sums(path)
    edit(path, *_DOWNGRADE)
    assert _sums(path) == now
    with open_reader(path) as reader:
        assert failures(reader, 0) is None
        assert [(error.n, error.final) for error in error_counts(reader)] == [(2, None)]


def test_the_next_writer_makes_it_anew(path: Path) -> None:
    before = _sums(path)
    edit(path, *_DOWNGRADE)

    async def go_on() -> None:
        async with await reopen(path):
            pass

    asyncio.run(go_on())
    assert _sums(path) == before
    with open_reader(path) as reader:
        assert failures(reader, 0)
        assert [(error.n, error.final) for error in error_counts(reader)] == [(2, 1)]
