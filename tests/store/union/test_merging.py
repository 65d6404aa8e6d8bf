"""The union says the same however its logs were merged."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.database import open_reader
from store.events import Entry, Event
from store.union.source import LocalLogSource
from store.verify import verify
from tests.store.samples import courses
from tests.store.union.union_logs import (
    Beginning,
    last_seq,
    merge,
    outcome,
    shard_log,
    shard_started,
    union_of,
)


def _parts(count: int) -> st.SearchStrategy[list[list[Entry | Event]]]:
    """Courses of so many logs; their tasks have the same names."""
    return st.lists(
        courses(max_steps=25, skips=(None,)), min_size=count, max_size=count
    )


@settings(
    max_examples=400 if "SIFTLOG_PROVE" in os.environ else 5,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(_parts(3))
def test_a_union_does_not_depend_on_the_order_of_merging(
    parts: list[list[Entry | Event]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = [
            shard_log(folder, f"{i}-3", [shard_started(i, 3)], *[[e] for e in part[1:]])
            for i, part in enumerate(parts)
        ]
        said = [
            outcome(union_of(folder / f"union{i}.db", order))
            for i, order in enumerate(permutations(logs))
        ]
        for other in said[1:]:
            assert other == said[0]
        with open_reader(folder / "union0.db") as reader:
            report = verify(reader)
        assert report.faults == ()


@settings(
    max_examples=200 if "SIFTLOG_PROVE" in os.environ else 5,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(_parts(2), st.integers(1, 9))
def test_a_union_does_not_depend_on_the_pieces_that_logs_arrive_in(
    parts: list[list[Entry | Event]], step: int
) -> None:
    with tempfile.TemporaryDirectory() as name, ExitStack() as opened:
        folder = Path(name)
        logs = [
            shard_log(folder, f"{i}-2", [shard_started(i, 2)], *[[e] for e in part[1:]])
            for i, part in enumerate(parts)
        ]
        sources = [
            LocalLogSource(opened.enter_context(open_reader(log))) for log in logs
        ]
        pieces = folder / "pieces.db"
        for upto in range(1, max(map(last_seq, logs)) + step, step):
            for source in sources:
                merge(pieces, Beginning(source, upto))
        assert outcome(pieces) == outcome(union_of(folder / "whole.db", logs))
