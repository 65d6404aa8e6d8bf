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


def test_of_logs_that_others_have_gone_on_for_nobody_is_told() -> None:
    assert logs_text(5, 3, has_all=True) == "5 logs, all slices ended"
    assert logs_text(2, 1, has_all=False) == "2 logs, 1 ended"
    assert logs_text(1, 0, has_all=False) == "1 log, 0 ended"
