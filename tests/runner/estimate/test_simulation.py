"""What-ifs on invented recordings: the arithmetic is known beforehand.

What-ifs against real runs: recorded once, played again otherwise, then run so.

The real command against the real loopback endpoint. How long a real run takes is the
machine's affair too: SIFTLOG_PROVE makes the runs long enough (some 20 s each) for a
tolerance of a tenth, and adds cases. Otherwise they are short, and compared with what
no machine can do them faster than; what is foretold exactly, on a virtual clock, is
`estimate/test_simulation.py`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest

from runner import errors as e
from runner.estimate.simulation import (
    CALL_S,
    LearnedRateLimit,
    RecordedAttempt,
    RecordedItem,
    RecordedTask,
    ReplayedModel,
    WhatIfOutcome,
    what_if,
)
from runner.limits.adaptive_concurrency import START
from runner.limits.limiter import Endpoint, Limits
from runner.limits.rate_limits import HeaderLimits, Quota
from store.database import open_reader
from store.read.status import status
from store.read.tasks import events
from store.runs import RunFolder
from store.tables import last_seq
from tests.corpus import write_corpus
from tests.processes import siftlog, simulated

STAGES = ("read", "ask", "sum")


def _trial(
    *attempts: RecordedAttempt, stage: str = "read", model: str = "m", worst: int = 0
) -> RecordedTask:
    return RecordedTask(stage=stage, model=model, attempts=attempts, worst_tokens=worst)


def _took(seconds: float, **known: object) -> RecordedAttempt:
    return RecordedAttempt(duration_s=seconds, **known)  # type: ignore[arg-type]


def _failed(error: e.AttemptError, seconds: float = 0.01) -> RecordedAttempt:
    return RecordedAttempt(duration_s=seconds, error=error)


def _asked(
    items: Iterator[RecordedItem] | list[RecordedItem],
    limits: Limits,
    *,
    model: str = "m",
    endpoint: Endpoint | None = None,
    rate: LearnedRateLimit | None = None,
) -> ReplayedModel:
    return ReplayedModel(
        model=model,
        stages=STAGES,
        limits=limits,
        endpoint=endpoint or Endpoint(model),
        items=items,
        rate=rate,
    )


def _play(*asked: ReplayedModel) -> WhatIfOutcome:
    return what_if(asked, deadline_s=3600)


def test_one_call_at_a_time_takes_the_sum_of_all() -> None:
    items = [RecordedItem(first=_trial(_took(0.5 + i))) for i in range(4)]
    found = _play(_asked(items, Limits(concurrency=1)))
    assert found.seconds == pytest.approx(0.5 + 1.5 + 2.5 + 3.5 + 4 * CALL_S)
    assert found.most_in_flight == 1
    assert found.models["m"].calls == found.models["m"].answered == 4


def test_many_calls_take_their_share_of_the_slots() -> None:
    count, slots = 6_400, 64
    items = [RecordedItem(first=_trial(_took(0.25)))] * count
    found = _play(_asked(items, Limits(concurrency=slots)))
    # the slow start from eight slots is part of it
    assert 1 <= found.seconds / (0.25 * count / slots) < 1.05
    assert found.most_in_flight == slots


def test_no_more_than_the_requests_a_minute_leave() -> None:
    items = [RecordedItem(first=_trial(_took(0.05)))] * 500
    found = _play(_asked(items, Limits(concurrency=64, rpm=600)))
    assert found.seconds == pytest.approx(50.0, rel=0.02)


def test_no_more_than_the_tokens_a_minute_leave() -> None:
    call = _took(0.05, tokens_in=900, tokens_out=100)
    items = [RecordedItem(first=_trial(call, worst=2_000))] * 300
    found = _play(_asked(items, Limits(concurrency=64, tpm=60_000)))
    assert found.seconds == pytest.approx(300.0, rel=0.05)
    assert found.models["m"].tokens_in == 270_000
    assert found.models["m"].tokens_out == 30_000


def test_limits_in_recorded_headers_hold() -> None:
    told = HeaderLimits(requests=Quota(per_minute=600))
    items = [RecordedItem(first=_trial(_took(0.05, header_limits=told)))] * 500
    found = _play(_asked(items, Limits(concurrency=64)))
    assert found.seconds == pytest.approx(50.0, rel=0.05)


def test_follow_ups_leave_when_the_stage_before_has_ended() -> None:
    item = RecordedItem(
        first=_trial(_took(1.0)),
        later=(
            _trial(_took(2.0), stage="ask"),
            _trial(_took(3.0), stage="ask"),
            _trial(_took(1.0), stage="sum"),
        ),
    )
    found = _play(_asked([item], Limits(concurrency=8)))
    assert found.seconds == pytest.approx(1 + 3 + 1, abs=0.01)
    assert found.most_in_flight == 2


def test_a_judge_has_slots_of_its_own() -> None:
    item = RecordedItem(
        first=_trial(_took(1.0)), later=(_trial(_took(1.0), stage="ask", model="j"),)
    )
    found = _play(
        _asked([item] * 10, Limits(concurrency=1)),
        _asked([], Limits(concurrency=1), model="j"),
    )
    assert found.seconds == pytest.approx(11, abs=0.05)
    assert found.models["j"].calls == 10


def test_failures_come_again_and_the_task_fails_where_it_failed() -> None:
    error = e.ServerError("as recorded", retry_after_s=5.0)
    good = RecordedItem(first=_trial(_failed(error), _took(1.0)))
    bad = RecordedItem(first=_trial(_failed(error), _failed(error)))
    found = _play(_asked([good, bad], Limits(concurrency=8)))
    assert found.models["m"].calls == 4
    assert found.models["m"].answered == 1
    assert found.models["m"].failed == 1
    assert found.seconds == pytest.approx(6.0, abs=0.1)


def test_a_reply_that_was_asked_for_again_is_asked_for_again() -> None:
    item = RecordedItem(first=_trial(_took(1.0), _took(2.0)))
    found = _play(_asked([item], Limits(concurrency=8)))
    assert found.seconds == pytest.approx(3.0, abs=0.01)
    assert found.models["m"].answered == 2


def test_a_ceiling_refuses_and_is_learned() -> None:
    items = [RecordedItem(first=_trial(_took(0.05)))] * 6_000
    rate = LearnedRateLimit(50.0, refused_s=0.002, sends_retry_after=True)
    found = _play(_asked(items, Limits(concurrency=64), rate=rate))
    sums = found.models["m"]
    assert sums.answered == 6_000
    assert 0 < sums.refused < 0.05 * sums.calls
    assert found.seconds == pytest.approx(6_000 / 50, rel=0.03)


def test_models_of_one_endpoint_share_its_rate() -> None:
    endpoint = Endpoint("both")
    rate = LearnedRateLimit(50.0, refused_s=0.002, sends_retry_after=True)
    asked = [
        _asked(
            [RecordedItem(first=_trial(_took(0.05), model=model))] * 2_000,
            Limits(concurrency=32),
            model=model,
            endpoint=endpoint,
            rate=rate,
        )
        for model in "mn"
    ]
    assert _play(*asked).seconds == pytest.approx(4_000 / 50, rel=0.05)


def test_the_engine_itself_has_a_pace() -> None:
    items = [RecordedItem(first=_trial(_took(0.0001)))] * 3_000
    found = _play(_asked(items, Limits(concurrency=1_000)))
    assert found.seconds >= 3_000 * CALL_S


def test_items_are_taken_as_they_are_needed() -> None:
    taken = ended = 0
    most = 0

    def items() -> Iterator[RecordedItem]:
        nonlocal taken
        for _ in range(20_000):
            taken += 1
            yield RecordedItem(
                first=_trial(_took(0.1)), later=(_trial(_Counting(), stage="ask"),) * 3
            )

    class _Counting(RecordedAttempt):
        """An attempt that notes when it is looked at for its end."""

        __slots__ = ()

        def __init__(self) -> None:
            super().__init__(duration_s=0.1)

        @property
        def tokens(self) -> int:
            nonlocal ended, most
            ended += 1
            most = max(most, taken - ended // 3)
            return 1

    found = _play(_asked(items(), Limits(concurrency=16)))
    assert found.models["m"].calls == 80_000
    assert ended == 60_000
    # the window of the lane, and what is in flight
    assert most <= 64 + 16 + START


def test_a_plan_that_mixes_first_stages_is_played_in_its_order() -> None:
    items = [
        RecordedItem(first=_trial(_took(0.01), stage=stage))
        for stage in chain(*repeat(("read", "ask", "ask", "sum"), 200))
    ]
    found = _play(_asked(items, Limits(concurrency=8)))
    assert found.models["m"].answered == 800


def test_an_endpoint_that_only_failed_is_given_up() -> None:
    broken = [_failed(e.ConnectionLost("as recorded"), 1.0)] * 8
    found = _play(
        _asked([RecordedItem(first=_trial(*broken))] * 50, Limits(concurrency=8))
    )
    assert found.stopped is not None
    assert found.models["m"].answered == 0


def test_nothing_to_ask_takes_no_time() -> None:
    assert _play(_asked([], Limits(concurrency=8))).seconds == 0


JOB = "paper-investigation"
PROVE = "SIFTLOG_PROVE" in os.environ
PAPERS = 130 if PROVE else 5
TOLERANCE = 0.1

LATENCIES = ("--latency-ms=500", "--jitter-ms=400")
RATE = ("--latency-ms=100", "--jitter-ms=100", "--rps=50")

#: What the server does, how the run is recorded, and what is tried instead.
CASES = {
    "more calls at a time": (LATENCIES, ("--concurrency=16",), ("--concurrency=32",)),
    "a limit by hand": (
        LATENCIES,
        ("--concurrency=16",),
        ("--concurrency=128", "--rpm=2400"),
    ),
    "a server that refuses": (RATE, ("--concurrency=12",), ("--concurrency=48",)),
}
MORE = {
    "fewer calls at a time": (LATENCIES, ("--concurrency=64",), ("--concurrency=24",)),
    "below what it refuses": (
        RATE,
        ("--concurrency=32",),
        ("--concurrency=32", "--rpm=2400"),
    ),
}
if PROVE:
    CASES |= MORE


def _seconds(folder: RunFolder) -> float:
    """From the first call to the last event that is about a task."""
    with open_reader(folder.log) as reader:
        (first,) = events(reader, kinds=["attempt_started"], limit=1)
        last = events(reader, after=last_seq(reader) - 200, kinds=["task_completed"])
    return (last[-1].ts_us - first.ts_us) / 1e6


def _least_s(server: tuple[str, ...], tried: tuple[str, ...], calls: int) -> float:
    """What so many calls take, all of the slots being in use all the time."""
    latency_ms, slots = (float(words[0].split("=")[1]) for words in (server, tried))
    return calls * latency_ms / 1000 / slots


@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", CASES)
def test_the_duration_of_a_run_is_foretold(tmp_path: Path, case: str) -> None:
    server, recorded, tried = CASES[case]
    words = [*write_corpus(tmp_path / "corpus", PAPERS), "--model=openai/m"]
    words += ["--price=0,0"]
    with simulated("--job", JOB, *server, cwd=tmp_path) as url:
        words.append(f"--base-url={url}")
        siftlog("generate", JOB, *words, *recorded, "--run-id=then", cwd=tmp_path)
        shown = siftlog("estimate", "--from=then", *tried, "--json", cwd=tmp_path)
        siftlog("generate", JOB, *words, *tried, "--run-id=now", cwd=tmp_path)
    foretold = json.loads(shown.stdout)
    now = RunFolder(tmp_path / "runs" / "now")
    with open_reader(now.log) as reader:
        attempts = status(reader).attempts
    took_s = _seconds(now)
    if PROVE:
        assert foretold["seconds"] == pytest.approx(took_s, rel=TOLERANCE)
    assert min(foretold["seconds"], took_s) >= _least_s(
        server, tried, attempts.answered
    )
    assert foretold["models"]["openai/m"]["answered"] == attempts.answered
