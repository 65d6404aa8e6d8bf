"""What `status` says of endpoints that ask to be left alone, and of logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from runner.cli.stand import logs_text, status_json, status_text
from store.events import LimitObserved
from store.runs import RunFolder
from store.testing import FakeClock
from store.views import open_reader, present
from tests.store.logs import written
from tests.store.samples import RUN_STARTED


def test_a_wait_that_an_endpoint_asked_for_is_told_until_it_is_over(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    until_us = clock.now_us() + 3_600_000_000
    seen = LimitObserved(
        model="m-large", concurrency=8, in_flight=0, paused_until_us=until_us
    )
    folder = RunFolder(tmp_path)
    with open_reader(written(folder.log, [RUN_STARTED], [seen])) as reader:
        seen = present(reader, clock.now_us(), is_held=False)
    line = "limits    m-large: 8 calls at a time"
    lines = status_text(seen).splitlines()
    assert f"{line}; asks to wait another 60.0 min" in lines
    assert status_json(seen)["limits"][0]["paused_until_us"] == until_us
    later = replace(seen, now_us=until_us)
    assert line in status_text(later).splitlines()


def test_logs_that_have_ended_are_counted_in_words() -> None:
    said = [logs_text(1, 0), logs_text(1, 1), *(logs_text(3, n) for n in range(4))]
    assert said[:2] == ["1 log, not ended", "1 log, ended"]
    assert said[2:] == [f"3 logs, {n} ended" for n in ("none", 1, 2, "all")]
