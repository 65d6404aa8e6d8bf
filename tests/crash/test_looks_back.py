"""A run that was killed and taken up again, as it was at every moment of its life.

Another process looks at the log while the run goes on, and each of its looks is found
again, row for row, in the log that is there in the end.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from store.database import LogReader, open_reader
from store.errors import StoreError
from store.read.live import live_status
from store.runs import RunFolder
from store.tables import last_seq
from store.time_travel import LogPrefix, moment_of
from tests.gates import Gate, gated
from tests.plugging import plugged
from tests.processes import Process, siftlog, simulated, start
from tests.store.looks import Seen, seen

ITEMS = 20
ENGINE = ("--concurrency=8", "--no-score")
CALLS = ("--latency-ms", 15, "--jitter-ms", 20, "--rate-5xx", 0.05)


def test_each_look_at_a_killed_and_resumed_run_is_its_prefix(tmp_path: Path) -> None:
    environment = plugged(tmp_path / "plug", survey="tests.crash.survey.job:job")
    folder = RunFolder(tmp_path / "runs" / "r")
    looks: dict[int, Seen] = {}
    with (
        simulated("--seed=5", *CALLS, cwd=tmp_path) as url,
        gated(url, passes=ITEMS) as gate,
    ):
        to_endpoint = (*ENGINE, f"--base-url={gate.url}")
        first = ("run", "survey", f"--items={ITEMS}", "--model=m", "--run-id=r")
        killed = start(*first, *to_endpoint, cwd=tmp_path, env=environment)
        _watch(folder, killed, looks, gate)
        gate.let(ITEMS)
        _watch(folder, killed, looks, gate)
        killed.kill()
        killed.wait()
        _look(folder, looks)
        at_death = max(looks)
        gate.let(ITEMS)
        resumed = start("resume", "r", *to_endpoint, cwd=tmp_path, env=environment)
        _watch(folder, resumed, looks, gate)
        gate.open()
        _watch(folder, resumed, looks, gate)
        assert resumed.wait(timeout=60) in {0, 3}
        _look(folder, looks)
    assert any(seq < at_death for seq in looks)
    assert any(at_death < seq < max(looks) for seq in looks)
    with open_reader(folder.log) as whole, LogPrefix(folder.log) as prefix:
        for seq in sorted(looks):
            prefix.move_to(moment_of(whole, seq))
            with prefix.open_reader() as back:
                assert seen(back) == looks[seq]
        states = {seq: _state(whole, folder, seq) for seq in (at_death, max(looks))}
    said = siftlog("status", "r", "--json", "--at", at_death, cwd=tmp_path)
    values = json.loads(said.stdout)
    assert (values["at"]["seq"], values["last_seq"]) == (at_death, at_death)
    assert states == {at_death: "live", max(looks): "finished"}


def _watch(
    folder: RunFolder,
    process: Process,
    looks: dict[int, Seen],
    gate: Gate,
) -> None:
    """Look until the gate keeps the run in its middle, or the process has ended."""
    for _ in range(2_000):
        # asked before looking: a look at what stands there then is among them
        stands = gate.is_keeping or process.poll() is not None
        _look(folder, looks)
        if stands:
            return
        time.sleep(0.04)
    raise AssertionError("the run does not get there")


def _look(folder: RunFolder, looks: dict[int, Seen]) -> None:
    try:
        with open_reader(folder.log) as reader:
            if last_seq(reader):
                look = seen(reader)
                looks[look["seq"]] = look  # type: ignore[index]
    except StoreError:
        return  # it is being made


def _state(whole: LogReader, folder: RunFolder, seq: int) -> str:
    moment = moment_of(whole, seq)
    with LogPrefix(folder.log) as prefix:
        prefix.move_to(moment)
        with prefix.open_reader() as back:
            return live_status(back, moment.at_us, is_held=moment.is_alive).state
