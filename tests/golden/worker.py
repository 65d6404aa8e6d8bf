"""Runs many commands of one tree in few processes, under a frozen clock.

Started as a script by the interpreter of the tree that is examined, with a file of
cases. It imports the product once, then forks a process for every command: a command
starts like a fresh one, without the seconds that imports take. Nothing here knows the
layout of the product: the command is found by the entry point of its console script,
and `CONSTANT` has the name of one function, wherever it is.

What is frozen, and why:

- the clock (`time.time`, `time.time_ns`, `time.monotonic`, `time.localtime`,
  `time.gmtime`): logs, reports and states of runs hold times, latencies and ages.
  Event loops keep the real monotonic clock, so that their timers still fire;
- the name of the machine: a log names its writer, and a state depends on it;
- random bytes (`os.urandom`, `uuid.uuid4`, `secrets.token_hex`): ids of commands and
  writers;
- the hash of a job's source files (`CONSTANT`): it changes with every edit of the
  code, which must not change anything else.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import importlib
import io
import itertools
import json
import os
import pkgutil
import secrets
import socket
import sys
import time
import traceback
import uuid
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

#: Functions of the product whose result is replaced, by their names: in every module
#: that has one of that name.
CONSTANT = {"code_fingerprint": None, "code_hash": "c0de" * 16}
#: The console script, and the beginning of its groups of entry points.
COMMAND = "siftlog"
#: Slow imports that many commands need.
LIBRARIES = (
    "litellm",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "pandas",
    "pyarrow.parquet",
    "pydantic",
    "scipy.stats",
    "sklearn.linear_model",
)
EPOCH = 1_772_359_200
"""2026-03-01T10:00:00Z: when all commands run."""
MONOTONIC = 86_400.0
HOST = "golden"
TIMEOUT_S = 900.0
"""Most that a command may take: it hangs then, also on a machine with much to do."""
SIZES = ((80, 24), (160, 50))
"""Columns and lines of the monitor's windows."""
_monotonic = time.monotonic  # noqa: TID251 - of this machine
SETTLED = 20
"""Times that a screen must be the same, 40 ms apart."""


class Step(NamedTuple):
    """One command."""

    argv: list[str]
    stdin: str = ""
    variables: dict[str, str] = {}  # noqa: RUF012 - read only
    after_s: float = 0.0
    keys: str | None = None


def freeze() -> None:
    """Replace what differs between two executions of the same command."""
    real = {name: getattr(time, name) for name in ("monotonic", "localtime", "gmtime")}
    loop = asyncio.base_events.BaseEventLoop
    loop.time = lambda _: real["monotonic"]()  # type: ignore[method-assign]
    time.localtime = lambda s=None: real["localtime"](EPOCH if s is None else s)
    time.gmtime = lambda s=None: real["gmtime"](EPOCH if s is None else s)
    set_clock(0.0)
    _pretend_host()


def pretend(offset_s: float) -> None:
    """Show another day on a clock that goes on, and another machine: for recordings."""
    real = {name: getattr(time, name) for name in ("time", "time_ns")}
    clocks = {
        "time": lambda: real["time"]() + offset_s,
        "time_ns": lambda: real["time_ns"]() + int(offset_s * 10**9),
    }
    for name, clock in clocks.items():
        setattr(time, name, clock)
    _pretend_host()


def _pretend_host() -> None:
    names = os.uname()
    uname = type(names)(
        (names.sysname, HOST, names.release, names.version, names.machine)
    )
    os.uname = lambda: uname
    socket.gethostname = lambda: HOST


def set_clock(after_s: float) -> None:
    """Let the clock of this process stand still, some seconds after the epoch."""
    clocks = {
        "time": lambda: EPOCH + after_s,
        "time_ns": lambda: int((EPOCH + after_s) * 10**9),
        "monotonic": lambda: MONOTONIC + after_s,
    }
    for name, clock in clocks.items():
        setattr(time, name, clock)


def seed_random(seed: str) -> None:
    """Make the random bytes of this process depend on its command alone."""
    count = itertools.count()

    def some(size: int) -> bytes:
        found = b""
        while len(found) < size:
            found += hashlib.sha256(f"{seed}:{next(count)}".encode()).digest()
        return found[:size]

    os.urandom = some
    uuid.uuid4 = lambda: uuid.UUID(bytes=some(16), version=4)
    secrets.token_hex = lambda size=32: some(size).hex()


def load() -> Any:
    """Import the whole product; return the function of its console script."""
    for name in LIBRARIES:
        importlib.import_module(name)
    (command,) = entry_points(group="console_scripts", name=COMMAND)
    main = command.load()
    for group in ("jobs", "reports", "decisions", "commands"):
        for point in entry_points(group=f"{COMMAND}.{group}"):
            point.load()
    tops = {command.module.split(".")[0], "jobs", "store", "tui"}
    for top in sorted(tops):
        _import_all(top)
    _replace_constants(tops)
    return main


def _replace_constants(tops: set[str]) -> None:
    own = [m for name, m in list(sys.modules.items()) if name.split(".")[0] in tops]
    for name, value in CONSTANT.items():
        holders = [module for module in own if callable(vars(module).get(name))]
        if not holders:
            raise LookupError(f"no module has {name}: see CONSTANT in {__file__}")
        for module in holders:
            setattr(module, name, lambda *_, value=value: value)


def _import_all(top: str) -> None:
    package = importlib.import_module(top)
    for module in pkgutil.walk_packages(package.__path__, f"{top}.", lambda _: None):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError as error:
                print(f"not imported: {module.name}: {error}", file=sys.stderr)


def perform(main: Any, step: Step, out: Path, number: int) -> None:
    """Run one command in this process, and end the process."""
    seed_random(f"{number} {step.argv}")
    set_clock(step.after_s)
    os.environ.update(step.variables)
    for target, path in ((1, f"{number:02}.out"), (2, f"{number:02}.err")):
        made = os.open(out / path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(made, target)
    source = os.memfd_create("stdin")
    os.write(source, step.stdin.encode())
    os.lseek(source, 0, os.SEEK_SET)
    os.dup2(source, 0)
    sys.stdin = io.TextIOWrapper(os.fdopen(0, "rb", closefd=False), "utf-8")
    for name, at in (("stdout", 1), ("stderr", 2)):
        raw = os.fdopen(at, "wb", closefd=False)
        wrapped = io.TextIOWrapper(raw, "utf-8", write_through=True)
        setattr(sys, name, wrapped)
        setattr(sys, f"__{name}__", wrapped)
    sys.argv = [COMMAND, *step.argv]
    if step.keys is not None:
        show_screens(step.keys.split())
    code = 70
    try:
        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(bool(error.code))
    except BaseException:  # noqa: BLE001 - it is the outcome
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def show_screens(keys: list[str]) -> None:
    """Let an application of textual follow keys, print some of its screens, and end.

    Args:
        keys: keys, and `=NAME`, which prints the screen as it is then, in all sizes.
    """
    from textual.app import App  # noqa: PLC0415 - by the monitor alone

    async def drive(app: App[Any]) -> None:
        async with app.run_test(size=SIZES[0]) as pilot:
            await _settled(pilot)
            for key in keys:
                if not key.startswith("="):
                    await pilot.press(key)
                    await _settled(pilot)
                    continue
                for columns, lines in SIZES[::-1]:
                    await pilot.resize_terminal(columns, lines)
                    print(f"== {key[1:]} {columns}x{lines}")
                    print(*await _settled(pilot), sep="\n")
            app.exit()

    App.run = lambda app, *_, **__: asyncio.run(drive(app))  # type: ignore[method-assign]
    setattr(time, "monotonic", _monotonic)  # noqa: B010 - pauses of the monitor


async def _settled(pilot: Any) -> list[str]:
    """The lines of the screen once nothing works on it and they stay the same."""
    seen: list[str] = []
    same = 0
    for _ in range(3_000):
        await pilot.pause(0.04)
        strips = pilot.app.screen._compositor.render_strips()
        lines = [strip.text.rstrip() for strip in strips]
        is_busy = any(not worker.is_finished for worker in pilot.app.workers)
        same = same + 1 if lines == seen and not is_busy else 0
        seen = lines
        if same >= SETTLED:
            break
    return seen


def run_case(main: Any, case: dict[str, Any], work: Path) -> None:
    """Run the commands of a case one after another, and end this process."""
    folder = work / "cases" / case["folder"]
    out = work / "taken" / case["folder"]
    out.mkdir(parents=True)
    os.chdir(folder)
    for number, fields in enumerate(case["steps"], 1):
        if child := os.fork():
            code = _waited(child)
            (out / f"{number:02}.code").write_text(f"{code}\n")
        else:
            perform(main, Step(**fields), out, number)
    os._exit(0)


def _waited(child: int) -> int:
    """The exit code of a process, which is ended if it takes too long."""
    import signal  # noqa: PLC0415

    def too_long(*_: object) -> None:
        os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, TIMEOUT_S)
    _, status = os.waitpid(child, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return os.waitstatus_to_exitcode(status)


def run(cases: list[dict[str, Any]], work: Path, width: int) -> None:
    """Run all cases, *width* at a time."""
    importlib.import_module("textual.app")  # its timers keep the real clock
    freeze()
    began = time.perf_counter()
    main = load()
    gc.collect()
    gc.freeze()
    print(f"imported in {time.perf_counter() - began:.1f} s", file=sys.stderr)
    alive: dict[int, tuple[str, float]] = {}
    waiting = list(reversed(cases))
    took = []
    spent = 0.0
    while waiting or alive:
        while waiting and len(alive) < width:
            case = waiting.pop()
            child = os.fork()
            if not child:
                run_case(main, case, work)
            alive[child] = (case["folder"], time.perf_counter())
        ended, _ = os.wait()
        name, start = alive.pop(ended)
        cpu = sum(os.times()[2:4])
        took.append((cpu - spent, time.perf_counter() - start, name))
        spent = cpu
    Path(work, "took.json").write_text(json.dumps(sorted(took, reverse=True)))


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    run(given["cases"], Path(given["work"]), given["width"])
