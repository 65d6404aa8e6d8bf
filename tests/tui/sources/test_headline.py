"""The headline so far: what the command says, and when it is asked again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from store.runs import RunFolder
from tests.store.logs import COURSE, written
from tui.sources.command import CommandAnswers, CommandFailed, Record
from tui.sources.headline import (
    EVERY_S,
    REST,
    ChildHeadline,
    HeadlineProgress,
    headline_of,
)
from tui.sources.result import Headline

RECORD: Record = {
    "headlines": ["score", "recall", "missing"],
    "models": {
        "m-large": {
            "metrics": {
                "score": {"value": 0.5, "n": 8, "lo": 0.4, "hi": 0.6},
                "recall": {"value": None, "n": 0, "lo": None, "hi": None},
                "detail": {"value": 1, "n": 1, "lo": None, "hi": None},
            }
        },
        "m-small": {"metrics": {"score": {"value": 1, "n": 8, "lo": 1, "hi": 1}}},
    },
    "settings": {"level": 0.95},
    "seq": 12,
    "ended": 3,
    "partial": True,
}


class FakeChild:
    """Answers with a record, and counts."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.is_closed = False

    async def records(self, *arguments: str) -> list[Record]:
        self.asked.append(arguments)
        return [RECORD]

    def close(self) -> None:
        self.is_closed = True


def test_metrics_come_in_their_order_with_a_row_for_each_model() -> None:
    found = headline_of([RECORD])
    assert [(each.path, each.model, each.value) for each in found.metrics] == [
        ("score", "m-large", 0.5),
        ("score", "m-small", 1),
        ("recall", "m-large", None),
    ]
    assert (found.level, found.seq, found.ended, found.is_partial) == (
        0.95,
        12,
        3,
        True,
    )


@pytest.mark.parametrize(
    "records",
    [[], [RECORD, RECORD], [{}], [RECORD | {"models": 3}], [RECORD | {"settings": []}]],
)
def test_what_another_version_prints_is_refused(records: list[dict[str, Any]]) -> None:
    with pytest.raises(CommandFailed, match="reinstall both"):
        headline_of(records)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    written(tmp_path / "log.db", *COURSE[:5])
    return RunFolder(tmp_path)


@pytest.mark.asyncio
async def test_the_same_log_is_scored_once_and_nothing_is_recorded(
    folder: RunFolder,
) -> None:
    child = FakeChild()
    source = ChildHeadline(folder, child, CommandAnswers())
    assert await source.read() == await source.read() == headline_of([RECORD])
    ((verb, path, *flags),) = child.asked
    assert (verb, path) == ("score", str(folder.path))
    assert set(flags) == {"--json", "--no-record", "--no-report"}
    source.close()
    assert child.is_closed


def _headline(ended: int) -> Headline:
    return Headline(metrics=(), level=None, seq=99, ended=ended, is_partial=True)


def test_it_is_asked_unasked_when_more_tasks_have_ended_and_seldom() -> None:
    first = HeadlineProgress()
    assert first.is_due(0, ended=1)
    busy = first.started(0)
    assert busy.is_busy
    assert not busy.is_due(999, ended=9)
    known = busy.answered(2, _headline(5))
    assert (known.is_busy, known.received_s) == (False, 2)
    assert not known.is_due(EVERY_S - 1, ended=9)
    assert not known.is_due(EVERY_S * 9, ended=5)
    assert known.is_due(EVERY_S, ended=6)
    slow = busy.answered(100, _headline(5))
    assert not slow.is_due(100 * REST - 1, ended=6)
    assert slow.is_due(100 * REST, ended=6)


def test_a_failure_waits_for_a_person_and_leaves_what_was_known() -> None:
    known = HeadlineProgress().started(0).answered(2, _headline(5))
    broken = known.started(100).failed(101, "the corpus is gone")
    assert not broken.is_due(9999, ended=9)
    assert (broken.headline, broken.received_s) == (_headline(5), 2)
    assert broken.started(200).failure == ""
