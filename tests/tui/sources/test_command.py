"""Answers that need not be asked for twice.

Asking for a result in a process of its own: what comes back, and how it ends.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.log.integrity import heads_path
from store.runs import RunFolder
from tests.store.logs import COURSE, written
from tui.sources import command as module
from tui.sources.command import (
    ChildProcess,
    CommandAnswers,
    CommandFailed,
    LogAt,
    Record,
    log_at,
)

LOGS = st.tuples(
    st.builds(
        LogAt,
        run_id=st.sampled_from(("a", "b")),
        file=st.tuples(st.just(1), st.integers(1, 2)),
        seq=st.integers(1, 2),
    )
)
ASKED = st.tuples(st.sampled_from(("score", "compare")))


@given(
    st.lists(st.tuples(ASKED, LOGS, st.booleans()), max_size=30),
    st.integers(1, 3),
)
def test_the_last_used_answers_are_kept_and_no_other_is_ever_given(
    steps: list[tuple[tuple[str, ...], tuple[LogAt], bool]], kept: int
) -> None:
    answers = CommandAnswers(kept)
    used: list[tuple[tuple[str, ...], tuple[LogAt]]] = []
    for asked, logs, is_put in steps:
        key = (asked, logs)
        if is_put:
            answers.put(asked, logs, [{"of": repr(key)}])
        expected = [{"of": repr(key)}] if is_put or key in used[-kept:] else None
        assert answers.get(list(asked), logs) == expected
        if expected is not None:
            used = [each for each in used if each != key] + [key]


def test_a_log_that_grew_or_was_exchanged_is_another_one(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    written(folder.log, *COURSE[:3])
    before = log_at(folder)
    assert log_at(folder) == before
    folder.log.rename(tmp_path / "old.db")
    heads_path(folder.log).unlink()
    for left in tmp_path.glob("log.db-*"):
        left.unlink()
    written(folder.log, *COURSE[:4])
    after = log_at(folder)
    assert (after.run_id, after.file == before.file) == (tmp_path.name, False)
    assert after.seq > before.seq


Printing = Callable[[str], None]


@pytest.fixture
def printing(monkeypatch: pytest.MonkeyPatch) -> Printing:
    """Lets children run other code in place of the declared entry."""

    def replace(code: str) -> None:
        monkeypatch.setattr(module, "ENTRY", ("-P", "-c", code))

    return replace


END = """; print('{"exit_code": 0, "error": ""}')"""
"""Ends a response."""


def asked(*arguments: str) -> list[Record]:
    return asyncio.run(ChildProcess().records(*arguments))


def test_the_command_answers_from_any_folder_and_refuses_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a folder of that name is no part of the command
    (tmp_path / "runner").mkdir()
    (tmp_path / "runner" / "__init__.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        CommandFailed, match=r"^no run in .* has the id or prefix 'x'.*runs'$"
    ):
        asked("score", "x", "--json")
    with pytest.raises(CommandFailed, match=r"^the request needs a command"):
        asked("status", "x", "--json")


def test_the_records_before_the_end_of_a_response_are_the_answer(
    printing: Printing,
) -> None:
    printing("""print('{}'); print('{"a": 1}')""" + END)
    assert asked("score") == [{}, {"a": 1}]
    printing("pass" + END)
    assert asked("score") == []


def test_the_request_is_one_json_object(printing: Printing) -> None:
    printing("import sys; print(*sys.argv[1:])" + END)
    assert asked("score", "a run", "--json") == [
        {"command": "score", "arguments": ["a run", "--json"]}
    ]


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("""print('{}'); print('{"exit_code": 1, "error": "No run"}')""", "^No run$"),
        (
            "import sys; sys.exit(2)",
            "siftlog score ended with code 2 and printed nothing",
        ),
        (
            "import os; os.kill(os.getpid(), 9)",
            "ended with signal 9 and printed nothing",
        ),
        ("pass", "siftlog score printed no records"),
        ("print('no record')" + END, "siftlog score printed no records"),
        ("print('[1]')" + END, "siftlog score printed no records"),
        # records without the end of the response may not be all
        ("print('{}'); print('{}')", "siftlog score printed no records"),
        ("print('[]')", "siftlog score printed no records"),
        ("while True: print('x' * 2**20)", "printed more than 33,554,432 bytes"),
        (
            "import sys; sys.stderr.write('x\\n' * 2**20 + 'the reason\\udcff'); 1/0",
            "ZeroDivisionError: division by zero",
        ),
    ],
)
def test_what_is_no_answer_is_one_sentence(
    printing: Printing, code: str, sentence: str
) -> None:
    printing(code)
    with pytest.raises(CommandFailed, match=sentence):
        asked("score")


def test_an_installation_without_the_entry_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ENTRY", ("-P", "-m", "runner_that_is_absent.compute"))
    with pytest.raises(CommandFailed, match="No module named 'runner_that_is_absent'"):
        asked("score")


def _is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _endless(pipe: Path) -> str:
    """Code of a child that fills its pipe, says who it is, and never ends."""
    os.mkfifo(pipe)
    return (
        "import os, time; print('x' * 60_000, flush=True); "
        f"open({str(pipe)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    )


async def _pid(pipe: Path) -> int:
    """Who the child is, as soon as it runs."""
    return int(await asyncio.to_thread(pipe.read_text))


def test_who_stops_waiting_ends_the_process_and_the_next_is_answered(
    tmp_path: Path, printing: Printing
) -> None:
    pipe = tmp_path / "pid"

    async def cancel() -> list[Record]:
        child = ChildProcess()
        printing(_endless(pipe))
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(child.records("compare"))
            pid = await _pid(pipe)
            asking.cancel()
        assert not _is_there(pid)
        printing("print('{}')" + END)
        return await child.records("compare")

    assert asyncio.run(cancel()) == [{}]


def test_questions_are_answered_one_at_a_time(printing: Printing) -> None:
    printing(
        "import json, time; a = time.monotonic(); time.sleep(.1);"
        "print(json.dumps({'from': a, 'to': time.monotonic()}))" + END
    )

    async def ask() -> list[list[Record]]:
        child = ChildProcess()
        async with asyncio.TaskGroup() as tasks:
            both = [tasks.create_task(child.records("x")) for _ in range(2)]
        return [task.result() for task in both]

    (first,), (second,) = asyncio.run(ask())
    assert first["to"] <= second["from"] or second["to"] <= first["from"]


def test_closing_ends_the_process_and_its_question(
    tmp_path: Path, printing: Printing
) -> None:
    pipe = tmp_path / "pid"
    printing(_endless(pipe))

    async def close() -> None:
        child = ChildProcess()
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(_refused(child))
            pid = await _pid(pipe)
            child.close()
        assert "signal 9" in waiting.result()
        assert not _is_there(pid)
        child.close()

    asyncio.run(close())


def test_closing_ends_a_process_that_is_just_being_started(
    printing: Printing,
) -> None:
    printing("import time; time.sleep(600)")

    async def close() -> str:
        child = ChildProcess()
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(_refused(child))
            await asyncio.sleep(0)  # it has begun to start it, and waits
            child.close()
        return waiting.result()

    assert "signal 9" in asyncio.run(close())


def test_who_stops_waiting_as_it_is_being_started_leaves_no_process_either(
    printing: Printing,
) -> None:
    printing("import time; time.sleep(600)")

    async def cancel(steps: int, times: int) -> None:
        child = ChildProcess()
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(child.records("compare"))
            for _ in range(times):
                for _ in range(steps):
                    await asyncio.sleep(0)
                asking.cancel()

    # a process or a pipe that is forgotten says so as it is collected
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for steps, times in itertools.product(range(9), (1, 2)):
            asyncio.run(cancel(steps, times))
            gc.collect()
    assert not [str(each.message) for each in told]


async def _refused(child: ChildProcess) -> str:
    with pytest.raises(CommandFailed) as failed:
        await child.records("compare")
    return str(failed.value)
