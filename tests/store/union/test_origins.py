"""Every event of a union is found in its log, and from there in the union."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.database import open_reader
from store.events import Entry, Event
from store.read.tasks import events
from store.union.origins import Origins
from store.union.source import LocalLogSource
from tests.store.samples import courses
from tests.store.union.union_logs import Beginning, merge, shard_log, shard_started

COURSES = st.lists(courses(max_steps=12, skips=(None,)), min_size=2, max_size=2)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(parts=COURSES, ends=st.lists(st.integers(1, 20), max_size=4))
def test_numbers_of_a_union_and_of_its_logs_translate_into_each_other(
    parts: list[list[Entry | Event]], ends: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        union, logs = Path(name) / "union.db", dict[str, Path]()
        for index, part in enumerate(parts):
            units = [[shard_started(index, 2)], *[[entry] for entry in part[1:]]]
            path = shard_log(Path(name), f"{index}-2", *units)
            with open_reader(path) as reader:
                logs[LocalLogSource(reader).identity.log.hex()] = path
        # in turns, so that a log has several stretches in the union
        for end in (*sorted(ends), 10_000):
            for path in logs.values():
                with open_reader(path) as reader:
                    merge(union, Beginning(LocalLogSource(reader), end))
        with open_reader(union) as reader:
            origins, merged = Origins(reader), events(reader, limit=10_000)
        kinds = {}
        for log, path in logs.items():
            with open_reader(path) as reader:
                of_log = events(reader, limit=10_000)
            kinds |= {(log, row.seq): type(row.event) for row in of_log}
            assert origins.seq(log, of_log[-1].seq) is not None
        found = {tuple(origins.origin(row.seq)): type(row.event) for row in merged}
        assert found == kinds
        assert [origins.seq(*origins.origin(row.seq)) for row in merged] == [
            row.seq for row in merged
        ]
        assert origins.seq("none", 1) is None
        assert all(origins.seq(log, 0) is None for log in logs)
