"""What commands print with `--json` follows the schemas in docs/schemas.

Each command is run over runs of every kind, and each printed line is compared with the
closed schema of its form: a field that no type describes fails, as does a command that
is not in the table.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from jsonschema import Draft202012Validator

from runner.cli.command_table import cli
from store.clock import SystemClock
from store.labels.writer import LabelWriter
from tests.commands import siftlog
from tests.corpus import write_corpus
from tests.gates import gated
from tests.golden import runs as golden
from tests.jobs.remembered import milestone, parts, recorded
from tests.json_schemas import (
    EVENTS_FILE,
    FOLDER,
    FORMS,
    file_of,
    published,
    published_events,
    schema_of,
)
from tests.processes import siftlog as process
from tests.processes import simulated, start, until

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = {
    "papers": ROOT / "jobs/paper_investigation/sample",
    "reviews": ROOT / "jobs/review_benchmark/sample",
    "properties": ROOT / "jobs/property_extraction/sample",
}

WITHOUT = {
    "completion": "prints a script of a shell",
    "serve": "prints the address of the monitor and stays",
    "simulate": "prints its address and stays",
    "watch": "draws on the terminal; status prints the same figures",
}
"""Commands without `--json`, and why."""


class Case(NamedTuple):
    """A command line and the forms that it prints, each at least once."""

    line: str
    forms: str  #: without `siftlog.` and the version
    code: int = 0


READING = (
    Case("status {run}", "status"),
    Case("status {run} --at 5", "status"),
    Case("tasks {run} --limit 60", "task"),
    Case("events {run} --after 5", "event"),
    Case("scores {run}", "scoring"),
    Case("commands {run}", "command"),
    Case("limits {run}", "limits"),
    Case("budget {run}", "budget"),
    Case("models {run}", "run-model"),
    Case("prompts {run}", "request"),
    Case("show {run} 1", "task-detail"),
    Case("sql {run} 'SELECT * FROM v_answers LIMIT 3'", "sql-row"),
    Case("verify {run}", "verify"),
    Case("estimate --from {run} --concurrency 4 --budget 1", "what-if"),
    Case("cancel {run} --dry-run", "command-preview"),
    Case("labels list {run}", "labels"),
)
"""Commands that read any run; they may have nothing to print."""

CASES = (
    Case("runs", "run"),
    Case("status far --ship place", "shipped-logs"),
    Case("merge wide", "merge"),
    Case("merge half --check", "merge", 6),
    Case("score done --no-record --no-report", "score"),
    Case("score killed --no-record --no-report --at 120", "score"),
    Case("score imported --no-report", "score"),
    Case("scores done", "scoring"),
    Case("show done PMC0000001", "task-detail"),
    Case("show failed PMC0000009 --no-parse", "task-detail"),
    Case("explain done PMC0000001", "explanation"),
    Case("explain property-extraction SL-001", "explanation"),
    Case("explain screening", "input-explanation"),
    Case("prompts screening", "prompt"),
    Case("prompts done", "request"),
    Case("models --filter gpt-4o-mini", "model"),
    Case("models spent", "run-model"),
    Case("jobs", "job"),
    Case("jobs screening", "setting"),
    Case("doctor", "check"),
    Case("estimate paper-investigation --model openai/gpt-4o --budget 3", "estimate"),
    Case("estimate paper-investigation --model no-price --limit 2", "estimate"),
    Case("run paper-investigation --dry-run", "estimate"),
    Case("estimate --from done --rpm 60", "what-if"),
    Case("export done", "export"),
    Case("export fresh scores --format csv", "export"),
    Case("export fresh --to inspect logs", "folder-export"),
    Case("export resumed --otlp http://127.0.0.1:4318 --dry-run", "trace-export"),
    Case("bundle fresh --no-report --out packed", "bundle"),
    Case("disclose redacted --whole", "disclosure-file"),
    Case("verify done.bundle", "bundle-verify", 6),  # of an older code
    Case("verify broken.bundle", "bundle-verify", 6),
    Case("verify flipped", "verify", 6),
    Case("regress runs/done --processes 1", "regression", 6),  # recorded by older code
    Case("reconcile failed usage.jsonl", "reconciliation", 6),  # lacks lines
    Case("verify shortened", "verify", 6),
    Case("cache list --cache-dir cache", "cache-group"),
    Case("cache prune --cache-dir cache --older-than 30d --dry-run", "cache-prune"),
    Case("compare done", "comparison"),
    Case("compare done resumed --metric 'avg_*' --items avg_paper_score", "comparison"),
    Case("compare killed --sequential avg_paper_score>=0.1", "interim-comparison"),
    Case("diff fresh 1 2", "difference"),
    Case("drift resumed", "drift"),
    Case("report fresh --scoring 1", "report"),
    Case("methods fresh", "methods"),
    Case("methods fresh --scoring 1 --format latex --out text.tex", "methods"),
    Case("check quoted.md --bundle fresh", "manuscript", 6),
    Case("new mine.toml", "recipe"),
    Case("prepare paper-investigation check", "prepared"),
    Case("prepare property-extraction lint", "prepared"),
    Case("run paper-investigation --limit 2 --no-report", "launch done"),
    Case("fork fresh --as forked --no-report", "fork launch done"),
    Case("add-stage fresh scan.toml --no-report", "add-stage launch done"),
    Case("rm killed --yes", "removal"),
    Case("import paper-investigation {answers} --no-score", "import launch done"),
    Case("resume done --no-report", "launch done"),
    Case("run-all group.toml --dry-run", "matrix-preview"),
    Case("run-all group.toml --no-report", "launch done matrix"),
    Case("labels list done", "labels"),
    Case("labels import people labels.csv", "label-import"),
    Case("labels export people", "label"),
    Case("labels agreement people", "label-agreement"),
    Case("labels adjudicate people PMC0000001 --value correct", "adjudication"),
    Case(
        "screen sample --simulate-labels sample --seeds 1",
        "screening-simulation",
    ),
    Case("verify certificate.json", "certificate-verify", 6),
    Case("estimate-quality screened", "label-quality"),
    Case("history review-benchmark --runs-dir past", "history"),
    Case("history review-benchmark --runs-dir past --against last", "history", 6),
    Case("prepare review-benchmark extract {extract}", "launch done", 6),
    *(
        Case(f"{command} done --dry-run", "command-preview")
        for command in ("retry --filter state:completed", "limits --rpm 5")
    ),
    Case("budget done --add 1 --dry-run", "command-preview"),
    Case("retry done --filter state:completed --no-wait", "command-result"),
    Case("limits steered --rpm 5 --no-wait", "command-result"),
    Case("budget steered --add 1 --no-wait", "command-result"),
    Case("cancel steered --yes --no-wait", "command-result"),
    Case("commands steered", "command"),
)

LISTS = {"scoring", "command", "limits", "request"}
"""Forms of lists that may be empty."""

READ = ("done", "failed", "batched", "stopped", "spent", "cached-2", "imported",
        "killed", "resumed", "steered", "cancelled", "wide", "half",
        "older")  # fmt: skip
"""Runs that READING reads: finished and not, with failures, split, of older logs."""

MATRIX = """
price = [1.0, 2.0]
[[jobs]]
job = "paper-investigation"
settings = { limit = 1 }
"""

USAGE = '{"time": "2026-03-01T09:01:05Z", "model": "large", "cost_usd": 1}\n'

RECIPE = """
items = "papers/"
[fields.enrolled]
ask = "How many people were enrolled?"
type = "integer"
quote = true
"""


@cache
def _validator(form: str) -> Draft202012Validator:
    return Draft202012Validator(schema_of(form, is_closed=True))


def checked(printed: str) -> list[dict[str, Any]]:
    """The objects that were printed, each after its form."""
    rows = [json.loads(line) for line in printed.splitlines()]
    for row in rows:
        assert next(iter(row), None) == "schema", f"its form is not first: {row}"
        assert row["schema"] in FORMS, row["schema"]
        faults = [
            f"{row['schema']} {'/'.join(map(str, fault.absolute_path))}: "
            f"{fault.message[:300]}"
            for fault in _validator(row["schema"]).iter_errors(row)
        ]
        assert not faults, "\n".join(faults)
    return rows


def forms_of(rows: list[dict[str, Any]]) -> set[str]:
    return {_short(row["schema"]) for row in rows}


def _short(form: str) -> str:
    return form.removeprefix("siftlog.").partition("/")[0]


def _put(folder: Path, line: str) -> None:
    """Lay the recorded files that a command line names."""
    golden.put_inputs()
    words = set(re.split(r"[\s@:/]", line))
    wanted = ("runs",) if line.startswith("runs") else ()
    wanted += tuple(f"runs/{word}" for word in words)
    wanted += tuple(word for word in ("done.bundle", "cache", "place") if word in words)
    for name, data in golden.recorded().items():
        if any(
            name == path or name.startswith((f"{path}/", f"{path}.")) for path in wanted
        ):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def _group(folder: Path) -> None:
    (folder / "group.toml").write_text(MATRIX)


def _usage(folder: Path) -> None:
    (folder / "usage.jsonl").write_text(USAGE)


SCAN = """
name = "seen"
scans = "extract"
[fields.people]
ask = "How many people took part?"
type = "integer"
"""


def _scan(folder: Path) -> None:
    (folder / "scan.toml").write_text(SCAN)


def _broken(folder: Path) -> None:
    data = bytearray(golden.recorded()["done.bundle"])
    data[len(data) // 2] ^= 1
    (folder / "broken.bundle").write_bytes(data)


def _quoted(folder: Path) -> None:
    (folder / "quoted.md").write_text(
        "<!--siftlog:count:tasks.failed-->9<!--/siftlog--> tasks failed"
    )


def _past(folder: Path) -> None:
    """Two runs, of which the later one lost a study."""
    for day, got in ((1, range(4)), (2, range(3))):
        reviews = {"a": {"CD1": got, "CD2": range(4)}}
        recorded(folder / "past", day, milestone(reviews), below=parts(reviews))


def _labels(folder: Path) -> None:
    (folder / "labels.csv").write_text("item,value\nPMC0000001,correct\n")


def _people(folder: Path) -> None:
    """Labels of three people without a run."""

    async def record() -> None:
        for author in ("ann", "bo", "cy"):
            async with await LabelWriter.open(
                folder / "people",
                author=author,
                clock=SystemClock(),
                owner="test",
                siftlog_version="1",
            ) as writer:
                await writer.record("PMC0000001", "correct", visible=["text"])
                await writer.record("PMC0000002", author)

    asyncio.run(record())


def _screened(folder: Path) -> None:
    """A run whose items people may label."""
    words = ("--run-id=screened", "--limit=12", "--boot-b=20", "--no-report")
    siftlog("run", "screening", *words, cwd=folder)


def _redacted(folder: Path) -> None:
    """A run with a redacted bundle."""
    words = ("--run-id=redacted", "--limit=12", "--boot-b=20", "--no-report")
    siftlog("run", "screening", *words, cwd=folder)
    siftlog("bundle", "redacted", "--redact", cwd=folder)


MADE: Mapping[str, Callable[[Path], None]] = {
    "group.toml": _group,
    "scan.toml": _scan,
    "usage.jsonl": _usage,
    "broken.bundle": _broken,
    "past": _past,
    "quoted.md": _quoted,
    "labels.csv": _labels,
    "people": _people,
    "certificate.json": lambda folder: (folder / "certificate.json").touch(),
    "screened": _screened,
    "redacted": _redacted,
}
"""Files that are not recorded, and what makes them."""


def _words(line: str) -> list[str]:
    answers = SAMPLES["papers"] / "records/alder-7b_paper_investigation_responses.jsonl"
    extraction = SAMPLES["reviews"] / "extraction"
    return shlex.split(
        line.format(
            answers=f"{answers} --profile clinpgx-qa",
            extract=f"{extraction / 'review.txt'} --with-excluded --out data "
            f"--model recorded:{extraction / 'replies.jsonl'} --no-report",
        )
    )


def _said(cwd: Path, *words: object, code: int = 0) -> list[dict[str, Any]]:
    done = siftlog(*words, "--json", cwd=cwd, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return checked(done.stdout)


@pytest.fixture(scope="module", name="fresh")
def _fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that this code made, `fresh`, and scored by two rules."""
    cwd = tmp_path_factory.mktemp("fresh")
    words = ("--limit=3", "--run-id=fresh", "--no-report")
    siftlog("run", "paper-investigation", *words, cwd=cwd)
    siftlog("score", "fresh", "--variant-link=whole", "--no-report", cwd=cwd)
    return cwd / "runs/fresh"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.line)
def test_what_a_command_prints_is_of_its_forms(
    case: Case, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    _put(tmp_path, case.line)
    if " fresh" in case.line:
        shutil.copytree(request.getfixturevalue("fresh"), tmp_path / "runs/fresh")
    for name, make in MADE.items():
        if name in case.line:
            make(tmp_path)
    rows = _said(tmp_path, *_words(case.line), code=case.code)
    assert forms_of(rows) == set(case.forms.split())


@pytest.mark.parametrize("run", READ)
def test_runs_of_every_kind_are_printed_by_the_same_forms(
    run: str, tmp_path: Path
) -> None:
    _put(tmp_path, run)
    printed = set()
    for case in READING:
        words = _words(case.line.replace("{run}", run))
        done = siftlog(*words, "--json", cwd=tmp_path, check=False)
        rows = checked(done.stdout)
        assert forms_of(rows) <= {case.forms}
        # what a run cannot tell, such as the prompts of imported answers, is an error
        assert rows or done.stderr or case.forms in LISTS
        assert done.returncode in {0, 2, 6}, done.stderr
        printed |= forms_of(rows)
    assert printed >= {"status", "task", "event", "budget", "task-detail", "verify"}


def test_a_run_without_gold_values_has_the_same_forms(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(RECIPE)
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/one.txt").write_text("We enrolled 12 men in a cohort study.")
    assert forms_of(_said(tmp_path, "run", "recipe.toml", "--run-id=r")) == {
        "launch",
        "done",
    }
    for verb in ("status", "score", "scores", "tasks"):
        assert _said(tmp_path, verb, "r")
    (page,) = _said(tmp_path, "show", "r", "one")
    assert page["quotes"]
    (text,) = _said(tmp_path, "explain", "r", "one")
    assert "12" in text["text"]


@pytest.fixture(name="live")
def _live(tmp_path: Path) -> Iterator[Path]:
    """A folder with a run that goes on, of a model whose price is unknown."""
    corpus = write_corpus(tmp_path / "corpus", 40)
    with (
        simulated("--job", "paper-investigation", cwd=tmp_path) as url,
        gated(url, passes=60) as gate,
    ):
        words = (f"--base-url={gate.url}", "--model=m", "--allow-unknown-price")
        run = ("run", "paper-investigation", *corpus, *words, "--run-id=r", "--json")
        running = start(*run, cwd=tmp_path)
        gate.wait(running)
        until(tmp_path, "r", lambda seen: seen["tasks"]["completed"] >= 20)
        yield tmp_path
        gate.open()
        running.send_signal(signal.SIGTERM)
        running.wait()
        rows = checked((tmp_path / "out.txt").read_text())
        assert forms_of(rows) == {"launch", "done"}
        assert rows[-1]["cost_usd"] is None


def test_a_live_run_and_the_commands_that_are_sent_to_it(live: Path) -> None:
    lines = {
        "status r": "status",
        "runs": "run",
        "models r": "run-model",
        "limits r": "limits",
        "budget r": "budget",
        "score r --no-report": "score",
        "pause r": "command-result",
        "resume r": "command-result",
        "limits r --rpm 5000": "command-result",
        "pause r --dry-run": "command-preview",
        "drain r --dry-run": "command-preview",
        "limits r --rpm 1 --dry-run": "command-preview",
        "commands r": "command",
        "drain r --no-wait": "command-result",
    }
    for line, form in lines.items():
        rows = _said(live, *line.split())
        assert forms_of(rows) == {form}, line
        if form == "status":
            assert rows[0]["cost_usd"] is None, "the price is unknown"


def test_a_command_that_waits_is_listed_and_withdrawn(tmp_path: Path) -> None:
    _put(tmp_path, "killed")
    (sent,) = _said(tmp_path, "cancel", "killed", "--yes", "--no-wait")
    line = ("commands", "killed", "--withdraw", sent["command"][:8])
    (preview,) = _said(tmp_path, *line, "--dry-run")
    assert (preview["kind"], preview["dry_run"]) == ("withdraw", True)
    assert forms_of(_said(tmp_path, *line, "--no-wait")) == {"command-result"}


def test_a_probe_of_an_endpoint(tmp_path: Path) -> None:
    with simulated(cwd=tmp_path) as url:
        probe = ("--endpoint", url, "--model", "m", "--price", "0,0")
        (row,) = _said(tmp_path, "doctor", *probe)
        checks = _said(tmp_path, "doctor", "--base-url", url)
    assert (row["schema"], row["problem"]) == ("siftlog.probe/1", None)
    assert checks[-1]["name"] == "endpoint"


def test_a_run_in_the_background(tmp_path: Path) -> None:
    words = ("run", "paper-investigation", "--limit=1", "--no-report", "--run-id=r")
    done = process(*words, "--detach", "--json", cwd=tmp_path)
    rows = checked(done.stdout)
    until(tmp_path, "r", lambda seen: seen["state"] == "finished")
    # started before it left the terminal, or not
    assert forms_of(rows) | {"launch"} == {"launch", "detached"}


ELSEWHERE = {
    "detached": ("run", "resume"),
    "probe": ("doctor",),
    "screening": ("screen",),
    "command-result": ("pause", "drain", "resume", "commands"),
    "command-preview": ("pause", "drain", "commands"),
    "labelling": ("label",),
}
"""Forms that tests below the table print, by command."""


def test_a_session_prints_what_it_recorded(fresh: Path) -> None:
    done = process("label", "fresh", "--json", cwd=fresh.parents[1])  # without input
    (row,) = checked(done.stdout)
    assert (row["answered"], row["done"]) == (0, 0)
    assert row["total"] == 19  # a letter, or p-value and significance, a question
    assert "Which option is right?" in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "status nothing",
        "score nothing",
        "tasks done --filter state:nowhere",
        "run paper-investigation --bench nothing.jsonl",
        "run nothing",
        "show done PMC404",
        "explain done",
        "commands done --withdraw 00",
        "verify nothing",
    ],
)
def test_an_error_is_a_sentence_on_stderr_and_nothing_on_stdout(
    line: str, tmp_path: Path
) -> None:
    _put(tmp_path, line)
    done = siftlog(*line.split(), "--json", cwd=tmp_path, check=False)
    assert done.returncode in {1, 2}
    assert done.stdout == ""
    assert re.search(r"^(siftlog|Error): \S.*\n\Z", done.stderr, re.MULTILINE)


# -- the table is complete ------------------------------------------------------------


def _commands() -> Iterator[tuple[str, click.Command]]:
    """Every command by its words, those of groups included."""
    frame = click.Context(cli, info_name="siftlog")
    for name in cli.list_commands(frame):
        command = cli.get_command(frame, name)
        assert command is not None
        if isinstance(command, click.Group):
            within = click.Context(command, info_name=name, parent=frame)
            for member in command.list_commands(within):
                inner = command.get_command(within, member)
                assert inner is not None
                yield f"{name} {member}", inner
        else:
            yield name, command


def _has_json(command: click.Command) -> bool:
    return any("--json" in option.opts for option in command.params)


def test_every_command_prints_json_or_says_why_not() -> None:
    commands = dict(_commands())
    assert {name for name, of in commands.items() if not _has_json(of)} == set(WITHOUT)


def test_every_command_is_run_and_prints_all_its_forms() -> None:
    commands = [name for name, _ in _commands()]
    shown = {
        (command, form)
        for case in (*CASES, *READING)
        for command in commands
        if f"{case.line} ".startswith(f"{command} ")
        for form in case.forms.split()
    }
    shown |= {(name, form) for form, names in ELSEWHERE.items() for name in names}
    stated = {(name, _short(f)) for f, form in FORMS.items() for name in form.commands}
    assert {name for name, _ in stated} == {*commands} - {*WITHOUT}
    assert shown == stated


FILES = {
    *("siftlog.aliases/1", "siftlog.certificate/1"),
    *("siftlog.disclosure/1", "siftlog.redaction-secret/1"),
}
"""Forms of files, not of what the command line prints."""


def test_the_code_prints_the_forms_of_the_table_and_no_others() -> None:
    sources = (
        path.read_text()
        for room in ("store", "runner", "jobs", "tui")
        for path in (ROOT / room).rglob("*.py")
        if path.name != "json_forms.py"
    )
    printed = {
        form
        for text in sources
        for form in re.findall(r'"(siftlog\.[\w-]+/\d+)"', text)
    }
    assert printed - FILES == set(FORMS)


# -- the schemas ----------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_the_published_schema_is_of_this_code(form: str) -> None:
    assert file_of(form).read_text() == published(form), "run: make docs"
    Draft202012Validator.check_schema(schema_of(form))


def test_no_other_schema_is_published() -> None:
    assert {*FOLDER.iterdir()} == {*map(file_of, FORMS), EVENTS_FILE}
    assert EVENTS_FILE.read_text() == published_events(), "run: make docs"
    assert len({file_of(form) for form in FORMS}) == len(FORMS), "one file a form"


def test_a_published_schema_lets_further_fields_through(tmp_path: Path) -> None:
    _put(tmp_path, "done")
    (row,) = _said(tmp_path, "status", "done")
    later = {**row, "of_a_later_siftlog": 1}
    assert Draft202012Validator(schema_of(row["schema"])).is_valid(later)
    assert not _validator(row["schema"]).is_valid(later)
    del row["tasks"]
    assert not Draft202012Validator(schema_of(row["schema"])).is_valid(row)
