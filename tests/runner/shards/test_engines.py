"""What every engine promises, by a verb that stands in for a shard.

Ray is slow to start a shard: one test of it is always run, the others in `make prove`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.errors import RunnerError, UsageError
from runner.shards import ray_engine
from runner.shards.engines import (
    ExitKind,
    ProcessEngine,
    ShardEngine,
    ShardExit,
    ShardHandle,
    ShardSpec,
)
from runner.shards.ray_engine import RayEngine
from tests.plugging import plugged

PATIENCE_S = 60.0
PASSED_ON = "SIFTLOG_BROKER_TOKEN"
SHARDS = 2


def _processes(environment: dict[str, str]) -> ShardEngine:
    return ProcessEngine(environment)


def _ray(environment: dict[str, str]) -> ShardEngine:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'siftlog[ray]'")
    return RayEngine(environment, shards=SHARDS, address=None)


PROVEN = pytest.mark.skipif(
    "SIFTLOG_PROVE" not in os.environ, reason="long: it runs in make prove"
)


@pytest.fixture(scope="module", params=[_processes, pytest.param(_ray, marks=PROVEN)])
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ShardEngine]:
    installed = plugged(
        tmp_path_factory.mktemp("plugged"),
        group="siftlog.commands",
        **{"stand-in": "tests.runner.shards.stand_in:stand_in"},
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in installed.items():
            patch.setenv(name, value)
        # an option of the one who places is settled in the configuration
        patch.setenv("SIFTLOG_RPM", "7")
        patch.setenv("A_KEY", "of the machine")
        patch.setenv("A_DISK", str(tmp_path_factory.mktemp("disk")))
        made = request.param({PASSED_ON: "a token", "OTHER": "is not named"})
        yield made
        made.close()


def _spec(folder: Path, *words: object, index: int = 0) -> ShardSpec:
    return ShardSpec(
        run_id="r",
        index=index,
        count=SHARDS,
        words=("stand-in", f"--says={folder / f'began-{index}'}", *map(str, words)),
        config="a = 1\n",
        environment=(PASSED_ON,),
        runs_dir=folder / "runs",
    )


def _began(folder: Path, index: int = 0) -> dict[str, Any]:
    path = folder / f"began-{index}"
    _until(path.exists)
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    path.unlink()
    return found


def _until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S  # noqa: TID251 - of other processes
    while not holds():
        assert time.monotonic() < until  # noqa: TID251 - likewise
        time.sleep(0.02)


def _end(engine: ShardEngine, handle: ShardHandle) -> ShardExit:
    ended = engine.wait_any(PATIENCE_S)
    assert ended is not None
    assert ended.handle == handle
    return ended


def _refused(engine: ShardEngine, spec: ShardSpec) -> str:
    """What is said of a shard that cannot be started, here or on its machine."""
    try:
        ended = _end(engine, engine.place(spec))
    except RunnerError as error:
        return str(error)
    assert (ended.kind, ended.code) == (ExitKind.FINISHED, 1)
    return ended.last_line


def _is_alive(pid: int) -> bool:
    """Whether it is a process at work; one that nobody has waited for is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_a_shard_that_ends_by_itself_has_finished_and_its_last_line_is_told(
    engine: ShardEngine, tmp_path: Path
) -> None:
    handle = engine.place(_spec(tmp_path, "--seconds=0", "--code=3"))
    ended = _end(engine, handle)
    assert ended == ShardExit(
        handle=handle, kind=ExitKind.FINISHED, code=3, last_line="It ends with 3."
    )
    assert engine.wait_any(0.0) is None


def test_a_shard_is_given_its_configuration_and_only_the_variables_it_names(
    engine: ShardEngine, tmp_path: Path
) -> None:
    handle = engine.place(_spec(tmp_path, "--seconds=0"))
    began = _began(tmp_path)
    assert began["config"] == "a = 1\n"
    names = {n for n in began["environment"] if n.startswith("SIFTLOG_")}
    assert names == {PASSED_ON}
    assert began["environment"][PASSED_ON] == "a token"
    assert began["environment"]["A_KEY"] == "of the machine"
    assert "OTHER" not in began["environment"]
    _end(engine, handle)


def test_a_shard_that_is_killed_has_died_and_can_be_placed_near_where_it_was(
    engine: ShardEngine, tmp_path: Path
) -> None:
    handle = engine.place(_spec(tmp_path))
    os.kill(_began(tmp_path)["pid"], signal.SIGKILL)
    ended = _end(engine, handle)
    assert ended.kind is ExitKind.DIED
    again = engine.place(_spec(tmp_path, "--seconds=0"), near=handle)
    assert _end(engine, again).code == 0


def test_a_shard_that_is_stopped_ends_by_itself_and_one_stopped_at_once_is_killed(
    engine: ShardEngine, tmp_path: Path
) -> None:
    handles = [engine.place(_spec(tmp_path, index=index)) for index in range(SHARDS)]
    pids = [_began(tmp_path, index)["pid"] for index in range(SHARDS)]
    engine.stop(handles[0], at_once=False)
    ended = _end(engine, handles[0])
    assert (ended.kind, ended.code) == (ExitKind.FINISHED, 5)
    assert ended.last_line == "Interrupted; go on."
    assert engine.wait_any(0.1) is None
    # even one that is standing still
    os.kill(pids[1], signal.SIGSTOP)
    engine.stop(handles[1], at_once=True)
    assert _end(engine, handles[1]).kind is not ExitKind.FINISHED
    _until(lambda: not _is_alive(pids[1]))
    engine.stop(handles[1], at_once=True)


def test_a_folder_that_cannot_be_written_is_told_in_a_sentence(
    engine: ShardEngine, tmp_path: Path
) -> None:
    (tmp_path / "runs").write_text("no folder")
    assert "check the folder" in _refused(engine, _spec(tmp_path))


def test_a_disk_may_be_named_by_a_variable_of_the_shards_own_machine(
    engine: ShardEngine, tmp_path: Path
) -> None:
    spec = replace(_spec(tmp_path, "--seconds=0"), local_dir="$A_DISK/runs")
    handle = engine.place(spec)
    local_dir = Path(_began(tmp_path)["local_dir"])
    assert _end(engine, handle).code == 0
    assert local_dir == Path(os.environ["A_DISK"]) / "runs"
    assert (local_dir / "r" / "run.0-2.log").exists()


def test_a_disk_whose_variable_is_not_set_is_told_in_a_sentence(
    engine: ShardEngine, tmp_path: Path
) -> None:
    said = _refused(engine, replace(_spec(tmp_path), local_dir="$A_DISC/runs"))
    assert "--local-dir $A_DISC/runs names a variable that is not set" in said


PLACER = """
import sys, time
from pathlib import Path
from runner.shards.engines import ProcessEngine
from tests.runner.shards.test_engines import PASSED_ON, _spec
ProcessEngine({PASSED_ON: ""}).place(_spec(Path(sys.argv[1])))
time.sleep(60)
"""


def test_a_shard_whose_placing_process_is_killed_finishes_its_calls_and_ends(
    tmp_path: Path,
) -> None:
    installed = plugged(
        tmp_path / "plugged",
        group="siftlog.commands",
        **{"stand-in": "tests.runner.shards.stand_in:stand_in"},
    )
    placer = subprocess.Popen(
        [sys.executable, "-c", PLACER, str(tmp_path)], env={**os.environ, **installed}
    )
    pid = _began(tmp_path)["pid"]
    placer.kill()
    placer.wait()
    _until(lambda: not _is_alive(pid))
    said = (tmp_path / "runs" / "r" / "run.0-2.log").read_text("utf-8")
    assert said == "Interrupted; go on.\n"


def test_without_ray_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'siftlog\[ray\]'"):
        ray_engine.import_ray()


def test_a_ray_that_is_too_old_is_refused_by_its_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Old:
        __version__ = "2.9.3"

    monkeypatch.setitem(sys.modules, "ray", Old())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"Ray 2\.9\.3 is older than 2\.60"):
        ray_engine.import_ray()
