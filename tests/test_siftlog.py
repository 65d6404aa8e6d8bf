"""`import siftlog`: its names, and runs of scripts and notebooks."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import siftlog
from jobs.launching import Interrupts, notebook_line
from tests.processes import SIFTLOG, simulated, status, until
from tests.processes import siftlog as command

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "docs" / "example"
STUB = ROOT / "jobs" / "stubs" / "siftlog-stubs" / "__init__.pyi"
PACKAGES = ("store", "runner", "jobs", "tui")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the example's job and its trials."""
    for name in ("participants.py", "trials.jsonl"):
        shutil.copy(EXAMPLE / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def example(run_id: str, **values: object) -> siftlog.Run:
    return siftlog.run(
        "participants.py", rows="trials.jsonl", run_id=run_id, report=False, **values
    )


# Its names


def _imported(tree: ast.AST) -> set[str]:
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_the_names_are_sorted_and_the_same_to_python_and_to_type_checkers() -> None:
    assert siftlog.__all__ == sorted(siftlog.__all__)
    assert dir(siftlog) == siftlog.__all__
    (typed,) = (
        node
        for node in ast.parse(Path(siftlog.__file__).read_text()).body
        if isinstance(node, ast.If)
    )
    stub = ast.parse(STUB.read_text())
    assert _imported(typed) == _imported(stub) == {*siftlog.__all__}
    (listed,) = (node for node in stub.body if isinstance(node, ast.Assign))
    assert ast.literal_eval(listed.value) == siftlog.__all__


@pytest.mark.parametrize("name", siftlog.__all__)
def test_a_name_is_the_one_of_its_module(name: str) -> None:
    assert getattr(siftlog, name) is not None
    assert getattr(siftlog, name).__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = siftlog.nothing


def test_the_import_loads_nothing_else() -> None:
    code = (
        "import sys; before = {*sys.modules}; import siftlog; "
        "print(*sorted({*sys.modules} - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = {
        name
        for name in done.stdout.split()
        if name.partition(".")[0] not in sys.stdlib_module_names
    }
    assert loaded == {"siftlog", "store", "store.shadowing"}


def test_no_package_imports_the_front_door() -> None:
    importing = [
        path
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"^\s*(import|from) siftlog\b", path.read_text(), re.MULTILINE)
    ]
    assert importing == []


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("file", ["{}/__init__.py", "{}.py"])
def test_a_folder_that_hides_a_package_is_named(
    tmp_path: Path, package: str, file: str
) -> None:
    path = tmp_path / file.format(package)
    path.parent.mkdir(exist_ok=True)
    path.touch()
    done = subprocess.run(
        [sys.executable, "-c", "import siftlog"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"hides the package '{package}' of siftlog: rename it" in done.stderr
    if package not in {"runner", "store"}:  # these are imported before the check
        env = {**os.environ, "PYTHONPATH": str(tmp_path)}
        words = [str(SIFTLOG), "jobs"]
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, env=env
        )
        assert done.returncode == 1
        assert "of siftlog: rename it" in done.stderr


# Runs


@pytest.mark.usefixtures("folder")
def test_a_run_is_read_as_frames_answers_events_and_scores() -> None:
    run = example("one")
    assert (run.id, run.state, run.folder) == ("one", "finished", Path("runs/one"))
    assert run.status.tasks.completed == 6
    table = run.table()
    assert list(table["item"]) == [f"T{n}" for n in range(1, 7)]
    assert table["value"].tolist()[:2] == [214, 1204]
    assert table["unparsed"].tolist()[2] == "no_value"
    assert run.table("verdicts")["correct"].sum() == 4
    assert run.table("tasks")["state"].unique().tolist() == ["completed"]
    assert run.table("replies")["reply"].tolist()[0] == "214"
    assert next(run.answers()).parsed == 214
    assert next(run.events()).event.run_id == "one"  # type: ignore[union-attr]
    narrow = run.score(level=0.5, report=False)
    wide = run.score(level=0.99, record=False)
    (name,) = narrow.models
    intervals = [
        (card.models[name][0].lo, card.models[name][0].hi) for card in (narrow, wide)
    ]
    assert intervals[1][0] < intervals[0][0] < intervals[0][1] < intervals[1][1]
    assert run.status.scorings == (1, 2)
    assert "finished" in repr(run)
    assert "0.667" in run._repr_html_()


def test_a_table_of_the_run_is_the_one_that_an_export_writes(folder: Path) -> None:
    run = example("one")
    command("export", "one", "scores", "--format", "csv", cwd=folder)
    (file,) = (folder / "runs/one/exports").rglob("verdicts.csv")
    frame = run.table("verdicts")
    assert file.read_text().splitlines()[0] == ",".join(frame.columns)
    assert len(file.read_text().splitlines()) == len(frame) + 1


@pytest.mark.usefixtures("folder")
def test_two_runs_are_compared() -> None:
    one, two = example("one"), example("two", limit=5)
    compared = one.compare("two", metrics=["accuracy"])
    assert compared[["run_a", "run_b", "metric"]].values.tolist() == [
        ["one", "two", "accuracy"]
    ]
    assert one.compare(two).equals(one.compare("two"))
    assert siftlog.open("o").id == "one"


def test_a_class_is_run_with_the_file_that_it_is_in(folder: Path) -> None:
    (folder / "script.py").write_text(
        (folder / "participants.py").read_text()
        + "\nif __name__ == '__main__':\n"
        + "    siftlog.run(Participants, rows='trials.jsonl', run_id='r')\n"
    )
    subprocess.run([sys.executable, "script.py"], cwd=folder, check=True)
    assert siftlog.open("r").status.job == "participants"
    assert "0.667" in command("score", "r", "--no-record", cwd=folder).stdout


@pytest.mark.usefixtures("folder")
def test_an_installed_job_is_run_by_its_name_with_options_and_settings() -> None:
    run = siftlog.run("screening", limit=3, replicates=2, report=False)
    assert run.status.replicates == 2
    assert run.status.tasks.completed == 6


def test_a_recipe_and_questions_in_python_give_the_table_of_answers(
    folder: Path,
) -> None:
    sample = ROOT / "jobs" / "ask" / "sample"
    run = siftlog.run(sample / "recipe.toml", limit=2, report=False, run_id="recipe")
    assert run.table()["id"].tolist() == ["air-asthma", "aspirin-migraine"]
    asked = siftlog.run(
        "ask",
        papers=str(sample / "papers"),
        question="How many people, in all, were enrolled?",
        type="integer",
        limit=2,
        report=False,
        run_id="typed",
    )
    assert len(asked.table()) == 2
    words = ("run", sample / "recipe.toml", "--limit=2", "--run-id=shell")
    command(*words, "--no-report", cwd=folder)
    assert siftlog.open("shell").table().equals(run.table())


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"rowz": "x"}, "participants has no setting 'rowz'; did you mean 'rows'?"),
        ({"limit": -1}, "Setting limit of participants: "),
        ({"budget": "much"}, "Option budget: "),
        ({"run_id": "a b"}, "--run-id a b: use letters"),
        ({"model": "mock/x", "replicates": 0}, "Option replicates"),
    ],
)
def test_wrong_values_are_one_sentence_and_leave_nothing(
    folder: Path, values: dict[str, object], sentence: str
) -> None:
    with pytest.raises(siftlog.UsageError, match=f"^{re.escape(sentence)}"):
        siftlog.run("participants.py", **{"rows": "trials.jsonl", **values})  # type: ignore[arg-type]
    assert not (folder / "runs").exists()


@pytest.mark.usefixtures("folder")
def test_a_missing_table_and_a_missing_run_are_named() -> None:
    with pytest.raises(siftlog.UsageError, match="has no table 'x'; it has answers,"):
        example("one").table("x")
    with pytest.raises(siftlog.StoreError, match="no run"):
        siftlog.open("absent")


# A running loop, as in a notebook


@pytest.mark.usefixtures("folder")
def test_a_notebook_runs_scores_and_compares_while_its_loop_runs() -> None:
    async def cell() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        async with asyncio.TaskGroup() as group:
            ticking = group.create_task(tick())
            one = await siftlog.arun(
                "participants.py", rows="trials.jsonl", run_id="one", report=False
            )
            ticking.cancel()
        assert ticks > 10, "the loop of the notebook stays free"
        two = example("two")
        assert two.state == one.state == "finished"
        assert two.score(report=False).headline == "accuracy"
        assert len(one.compare(two)) == 1

    asyncio.run(cell())


class Shell:
    """A notebook's kernel: it shows data and replaces it."""

    kernel = object()

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.display = self

    def get_ipython(self) -> Shell:
        return self

    def __call__(self, _data: object, **_: object) -> Shell:
        return self

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.lines.append(data["text/plain"])


@pytest.mark.usefixtures("folder")
def test_in_a_notebook_the_progress_is_one_line_of_the_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shell = Shell()
    shell.display = type("Display", (), {"display": shell.__call__})()  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "IPython", shell)  # type: ignore[arg-type]
    example("one")
    assert shell.lines[-1].startswith("100.0 % · 6 of 6 done")
    monkeypatch.delitem(sys.modules, "IPython")
    assert notebook_line() is None


# Interrupts

SCRIPT = "run('participants.py', rows='trials.jsonl', run_id='r', base_url={url!r}, "
MORE = "MORE = {'allow_unknown_price': True, 'report': False}"
STARTS: dict[str, Callable[[str], str]] = {
    "script": lambda call: f"siftlog.{call}",
    "notebook": lambda call: (
        f"async def cell():\n    siftlog.{call}\n"
        "asyncio.new_event_loop().run_until_complete(cell())"
    ),
    "arun": lambda call: (
        f"async def main():\n    await siftlog.a{call}\nasyncio.run(main())"
    ),
}


@pytest.mark.parametrize("way", STARTS)
def test_ctrl_c_drains_the_run_which_can_be_resumed(folder: Path, way: str) -> None:
    with simulated("--latency-ms", 400, cwd=folder) as url:
        call = SCRIPT.format(url=url) + "model='x', concurrency=2, **MORE)"
        (folder / "start.py").write_text(
            f"import asyncio, siftlog\n{MORE}\n{STARTS[way](call)}\n"
        )
        process = subprocess.Popen(
            [sys.executable, "start.py"], cwd=folder, stderr=subprocess.PIPE, text=True
        )
        try:
            until(folder, "r", lambda seen: seen["tasks"]["running"] == 2)
            process.send_signal(signal.SIGINT)
        except BaseException:
            process.kill()
            raise
        _, stderr = process.communicate(timeout=60)
        assert process.returncode in {-signal.SIGINT, 1}
        assert "Finishing the calls in flight" in stderr
        assert status(folder, "r")["state"] == "drained"
        run = siftlog.open("r").resume(report=False)
        assert run.state == "finished"
        assert run.status.tasks.completed == 6


def test_an_interrupt_before_the_first_call_is_not_lost() -> None:
    class Worker:
        drained = stopped = 0

        def drain(self) -> None:
            self.drained += 1

        def stop(self) -> None:
            self.stopped += 1

    async def begin() -> tuple[int, int]:
        worker, interrupts = Worker(), Interrupts()
        interrupts.interrupt()
        interrupts.obey(worker, lambda _: None)
        interrupts.interrupt()
        await asyncio.sleep(0)
        return worker.drained, worker.stopped

    assert asyncio.run(begin()) == (1, 1)
