"""Makes the scorecard of an unpacked bundle again, in a process without a network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from runner.bundle.manifest import LOG
from runner.bundle.offline import go_offline
from runner.bundle.places import moved
from runner.errors import RunnerError
from runner.fingerprint import input_hashes
from runner.records.choosing import chosen
from runner.records.scoring import replayed
from runner.registry import load_job
from runner.settings import fitting
from store.database import open_reader
from store.errors import StoreError
from store.events import Input
from store.read.status import run_started, scorings

REBUILT: Final = "rebuilt.json"
"""The scorecard that was made again, beside the log."""

BEAT_S: Final = 0.5
"""Between two words to whoever waits."""

_CODE = "from runner.bundle.rebuilding import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What came of it; `rebuilt.json` is there where nothing is wrong."""

    changed: tuple[str, ...] = ()  #: settings whose files are not what was scored
    error: str = ""  #: why there is no scorecard


def rebuild(folder: Path, scoring: int, progress: Callable[[str], None]) -> Rebuilt:
    """Score the bundle in *folder* as its scoring of that number was.

    A process of its own does it, which has given up sockets before it loads the job.
    *progress* is told now and then that it is still at work.
    """
    # -P: a folder called runner where this was typed is not ours
    words = (sys.executable, "-P", "-c", _CODE, str(folder), str(scoring))
    with subprocess.Popen(  # noqa: S603 - this very Python, with a path of ours
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        try:
            answer, said = _awaited(child, progress)
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        lines = said.decode(errors="replace").strip().splitlines()
        why = lines[-1] if lines else f"its process ended with {child.returncode}"
        return Rebuilt(error=why)
    return msgspec.json.decode(answer, type=Rebuilt)


def _awaited(
    child: subprocess.Popen[bytes], progress: Callable[[str], None]
) -> tuple[bytes, bytes]:
    """What a process says, once it is through."""
    while True:
        progress("the scorecard is being made again")
        with suppress(subprocess.TimeoutExpired):
            return child.communicate(timeout=BEAT_S)


def main() -> None:
    """What the process does: arguments in, one JSON object out."""
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # for what a job may print
    go_offline()
    folder, scoring = Path(sys.argv[1]), int(sys.argv[2])
    with answer:
        answer.write(msgspec.json.encode(_outcome(folder, scoring)))


def _outcome(folder: Path, scoring: int) -> Rebuilt:
    try:
        return _rebuilt(folder, scoring)
    except (RunnerError, StoreError) as error:
        return Rebuilt(error=str(error))


def _rebuilt(folder: Path, number: int) -> Rebuilt:
    with open_reader(folder / LOG) as reader:
        first = run_started(reader)
        recorded = chosen(first.run_id, scorings(reader), number)
        job = load_job(first.job)
        settings = moved(fitting(job, json.loads(recorded.settings)), folder)
        inputs = input_hashes(job.inputs(settings))
        if changed := changed_inputs(recorded.inputs, inputs):
            return Rebuilt(changed=changed)
        made = replayed(job, reader, settings, inputs, upto=recorded.seq)
    (folder / REBUILT).write_bytes(made.content)
    return Rebuilt()


def changed_inputs(then: Sequence[Input], now: Sequence[Input]) -> tuple[str, ...]:
    """Settings of which one has other files than the other, or none."""
    before, after = _by_setting(then), _by_setting(now)
    names = sorted(before.keys() | after.keys())
    return tuple(name for name in names if before.get(name) != after.get(name))


def _by_setting(inputs: Sequence[Input]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in inputs:
        found.setdefault(each.setting, []).append(each.sha256)
    return found
