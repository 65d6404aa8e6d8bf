"""The log format is what docs/log-format.md says.

A reader that was written from the page alone agrees with siftlog on the logs of every
schema version that are kept for good, and sees a changed byte. The public views say
the same as the commands.
"""

from __future__ import annotations

import ast
import asyncio
import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from runner.clients.wire import FORMS
from store.events import KINDS
from store.labels.writer import LabelWriter
from store.statements import script
from tests.commands import command
from tests.golden.runs import recorded
from tests.json_schemas import EVENTS_FILE
from tests.processes import SIFTLOG
from tests.reference import DOCS
from tests.replay.write_golden import GOLDEN
from tests.store import log_reader
from tests.store.log_reader import Log
from tests.store.memory_log import FakeClock

PAGE = DOCS / "log-format.md"
READER = Path(log_reader.__file__)
MOST_LINES = 200
MOST_OF_A_KIND = 60
"""Events of a kind that are validated: it takes a millisecond for each."""

WHOLE = (
    *("done", "failed", "killed", "resumed", "steered", "cancelled", "batched"),
    *("imported", "cached-2", "spent", "old-log-1", "old-log-1-batches", "wide"),
)
"""Golden runs whose logs are sound; the last is merged from the logs of two shards."""
FINAL = ("completed", "failed", "skipped")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden runs."""
    folder = tmp_path_factory.mktemp("golden")
    for name, data in recorded().items():
        if name.startswith("runs/") and name.count("/") == 2:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return folder / "runs"


def of(runs: Path, verb: str, run: str) -> list[dict[str, object]]:
    done = command(verb, run, "--json", "--runs-dir", runs)
    return [json.loads(line) for line in done.out.splitlines()]


def test_the_reader_is_small_and_knows_nothing_of_siftlog() -> None:
    text = READER.read_text()
    assert len(text.splitlines()) <= MOST_LINES
    modules = {
        (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    outside = {name for name in modules if name not in sys.stdlib_module_names}
    assert outside <= {"zstandard", "collections.abc"}


@pytest.mark.parametrize("run", WHOLE)
def test_a_reader_of_the_page_agrees_with_siftlog(runs: Path, run: str) -> None:
    log = log_reader.read(runs / run / "log.db")
    (status,) = of(runs, "status", run)
    tasks = of(runs, "tasks", run)
    assert log.is_chained
    assert log.run_id == status["run"] or run.startswith("old-log")
    counts = Counter(task.state for task in log.tasks.values())
    shown: dict[str, int] = status["tasks"]  # type: ignore[assignment]
    assert {state: counts[state] for state in FINAL} == {s: shown[s] for s in FINAL}
    known = {row["task"]: row for row in tasks}
    for task in log.tasks.values():
        row = known[task.number]
        assert (row["key"], row["stage"], row["model"]) == (
            task.key,
            task.stage,
            task.model,
        )
        assert row["state"] == task.state
    spent = status["cost_usd"]
    if isinstance(spent, float):
        assert log.cost_usd == pytest.approx(spent, abs=1e-9)
    assert log.possible_usd == pytest.approx(status["possible_usd"], abs=1e-9)
    in_flight = sum(log.in_flight_usd.values())
    assert in_flight == pytest.approx(status["in_flight_usd"], abs=1e-9)


def test_the_page_has_every_wire_form() -> None:
    table = PAGE.read_text().split("| `form` |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `([\w.]+)` \|", table, re.MULTILINE)) == set(FORMS)


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.sql")))
def test_a_reader_of_the_page_reads_the_log_of_every_release(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as conn:
        conn.execute(f"PRAGMA application_id = {log_reader.APPLICATION_ID}")
        conn.executescript((GOLDEN / f"{name}.sql").read_text(encoding="utf-8"))
    log = log_reader.read(path)
    assert log.is_chained
    states = Counter(task.state for task in log.tasks.values())
    assert states == {"completed": 1, "skipped": 2, "queued": 1, "running": 1}
    assert [t.reply for t in log.tasks.values() if t.state == "completed"] != [None]


def test_a_reader_of_the_page_reads_the_logs_of_shards(runs: Path) -> None:
    parts = [log_reader.read(path) for path in sorted(runs.glob("wide/log.*-2.db"))]
    whole = log_reader.read(runs / "wide" / "log.db")
    assert all(part.is_chained for part in parts)
    assert sum(len(part.tasks) for part in parts) == len(whole.tasks)
    assert sum(part.cost_usd for part in parts) == pytest.approx(whole.cost_usd)


def test_a_reader_of_the_page_reads_a_label_log(tmp_path: Path) -> None:
    async def label() -> None:
        async with await LabelWriter.open(
            tmp_path,
            author="Ann Lee",
            clock=FakeClock(),
            owner="test",
            siftlog_version="1",
        ) as writer:
            first = await writer.record("rec-1", "include")
            await writer.withdraw(first)
            await writer.record("rec-1", "exclude", field="stage")

    asyncio.run(label())
    (path,) = tmp_path.glob("*.db")
    log = log_reader.read(path)
    assert log.is_chained
    assert log.unknown_kinds == {
        "labels_started": 1,
        "label_recorded": 2,
        "label_withdrawn": 1,
    }


def test_a_reader_of_the_page_sees_a_changed_byte(runs: Path) -> None:
    assert not log_reader.read(runs / "flipped" / "log.db").is_chained
    assert not log_reader.read(runs / "shortened" / "log.db").is_chained


def test_every_stored_event_is_of_its_schema(runs: Path) -> None:
    schema = json.loads(EVENTS_FILE.read_text())
    validators = {
        kind: Draft202012Validator(
            {"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]}
        )
        for kind in KINDS
    }
    seen: Counter[str] = Counter()
    for run in WHOLE:
        with closing(sqlite3.connect(runs / run / "log.db")) as conn:
            rows = conn.execute(
                "SELECT DISTINCT k.name, e.ver, e.facts FROM event AS e "
                "JOIN kind AS k ON k.id = e.kind"
            ).fetchall()
        for kind, version, facts in rows:
            if version == KINDS[kind].VERSION and seen[kind] < MOST_OF_A_KIND:
                validators[kind].validate(json.loads(facts))
                seen[kind] += 1
    assert len(seen) > len(KINDS) / 2
    assert set(KINDS) <= set(schema["$defs"])


def test_the_page_names_every_table_and_column_of_a_view() -> None:
    page = PAGE.read_text()
    views = dict(_views())
    for view, columns in views.items():
        (row,) = re.findall(rf"^\| `{view}` \|.*$", page, re.MULTILINE)
        named = re.findall(r"`([a-z_0-9]+)`", row)
        assert set(columns) <= set(named), view
    for kind in KINDS:
        assert f"`{kind}`" in page


def _views() -> list[tuple[str, list[str]]]:
    with closing(sqlite3.connect(":memory:")) as conn:
        for name in ("schema", "projections", "public"):
            for statement in script(name):
                conn.execute(statement)
        return [
            (name, [row[1] for row in conn.execute(f"PRAGMA table_info({name})")])
            for (name,) in conn.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'view' "
                "AND name LIKE 'v!_%' ESCAPE '!'"
            ).fetchall()
        ]


def query(runs: Path, run: str, sql: str) -> list[dict[str, object]]:
    done = command("sql", run, sql, "--json", "--runs-dir", runs)
    assert done.code == 0, done.err
    return [json.loads(line)["row"] for line in done.out.splitlines()]


@pytest.mark.parametrize(
    "run", ["done", "failed", "killed", "steered", "old-log-1", "wide"]
)
def test_views_say_what_the_commands_say(runs: Path, run: str) -> None:
    tasks = {row["task"]: row for row in of(runs, "tasks", run)}
    answers = query(runs, run, "SELECT * FROM v_answers")
    assert len(answers) == len(tasks)
    for row in answers:
        task = tasks[row["task"]]
        assert [row[name] for name in ("key", "stage", "model", "state")] == [
            task[name] for name in ("key", "stage", "model", "state")
        ]
    attempts = Counter(
        str(row["outcome"])
        for row in query(runs, run, "SELECT outcome FROM v_attempts")
    )
    log = log_reader.read(runs / run / "log.db")
    assert attempts["answered"] + attempts["failed"] == _ended(runs / run / "log.db")
    costs = query(
        runs, run, "SELECT sum(cost_usd) AS usd, sum(tasks) AS n FROM v_costs"
    )
    assert costs[0]["n"] == len(tasks)
    assert costs[0]["usd"] == pytest.approx(log.cost_usd, abs=1e-9)


def _ended(log: Path) -> int:
    with closing(sqlite3.connect(log)) as conn:
        (n,) = conn.execute(
            "SELECT count(*) FROM event AS e JOIN kind AS k ON k.id = e.kind "
            "WHERE k.name IN ('attempt_answered', 'attempt_failed')"
        ).fetchone()
    return int(n)


def test_a_query_decodes_what_is_stored(runs: Path) -> None:
    log: Log = log_reader.read(runs / "done" / "log.db")
    rows = query(
        runs,
        "done",
        "SELECT task, body(seq) AS body, reply(task) AS reply, prompt(task) AS prompt "
        "FROM v_answers WHERE seq IS NOT NULL ORDER BY task LIMIT 5",
    )
    assert rows
    for row in rows:
        task = log.tasks[int(str(row["task"]))]
        assert task.reply is not None
        assert row["body"] == task.reply.decode()
        assert json.dumps(row["reply"])[1:-1] in json.dumps(
            json.loads(task.reply), ensure_ascii=True
        )
        messages = json.loads(str(row["prompt"]))
        assert messages[-1]["role"] == "user"


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("DELETE FROM event", "never changed"),
        ("ATTACH 'other.db' AS other", "never changed"),
        ("ATTACH 'table_info' AS other", "never changed"),
        ("PRAGMA journal_mode = DELETE", "never changed"),
        ("CREATE TEMP TABLE t(x)", "never changed"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("SELECT * FROM v_nothing", "the views are v_answers"),
        ("SELEC 1", 'near "SELEC"'),
        ("", "no columns"),
    ],
)
def test_what_is_no_query_is_a_sentence(
    runs: Path, tmp_path: Path, sql: str, says: str
) -> None:
    shutil.copytree(runs / "done", tmp_path / "runs" / "done")
    before = (tmp_path / "runs" / "done" / "log.db").read_bytes()
    done = command("sql", "done", sql, "--runs-dir", tmp_path / "runs")
    assert done.code == 2
    assert says in done.err
    assert len(done.err.splitlines()) == 1
    assert (tmp_path / "runs" / "done" / "log.db").read_bytes() == before
    assert not Path("other.db").exists()


def test_a_query_may_ask_for_the_columns_of_a_table(runs: Path) -> None:
    views = dict(_views())
    rows = query(runs, "done", "PRAGMA table_info(v_costs)")
    assert [row["name"] for row in rows] == views["v_costs"]
    rows = query(runs, "done", "SELECT name FROM pragma_table_info('v_costs')")
    assert [row["name"] for row in rows] == views["v_costs"]


def test_infinity_is_a_text(runs: Path) -> None:
    assert query(runs, "done", "SELECT 9e999 AS x, -9e999 AS y") == [
        {"x": "inf", "y": "-inf"}
    ]


def test_a_reply_that_cannot_be_decoded_is_named(runs: Path) -> None:
    done = command(
        *("sql", "old-log-1", "SELECT reply(task) FROM v_answers"),
        *("--runs-dir", runs),
    )
    assert done.code == 1
    assert done.err.startswith("siftlog: reply(1): This siftlog does not know the wire")


ENDLESS = """WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
    SELECT x FROM n WHERE x <= 100000 OR x < 0"""


def test_a_query_can_be_interrupted(runs: Path) -> None:
    with subprocess.Popen(
        [SIFTLOG, "sql", "done", ENDLESS, "--csv", "--runs-dir", runs],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "x\n"
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 5
    assert said.strip() == "siftlog: Interrupted."


def test_the_reader_runs_as_a_program(runs: Path) -> None:
    done = subprocess.run(
        [sys.executable, READER, runs / "done" / "log.db"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "the chain holds" in done.stdout
