"""What models, data sets and servers say, on its way to terminals, files and tables."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import subprocess
import unicodedata
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from runner.table_files import FORMULA
from tests.answering import answering
from tests.crash.hostile.job import KEYS
from tests.jobs.kit.report.reported import Page
from tests.plugging import plugged
from tests.processes import SIFTLOG, siftlog, status

REPLIES = (
    *KEYS,
    "half an \ud83d emoji",
    "[" * 100_000,
    '{"a":' * 100_000,
    "one line " * 120_000,
    "",
)
MODELS = ("a/b c 😀", "../../../up", "..", "-rf", "=cmd|x", "m" * 300, "[red]\u202ex")
HARMLESS = "\n"
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A run that is over."""

    cwd: Path
    env: dict[str, str]
    said: str

    def says(self, *words: str) -> str:
        done = siftlog(*words, cwd=self.cwd, env=self.env)
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A run of the hostile job on hostile models."""
    cwd = tmp_path_factory.mktemp("hostile")
    env = plugged(cwd / "plugged", hostile="tests.crash.hostile.job:job")
    turn = cycle(REPLIES)
    with answering(lambda _prompt: next(turn)) as endpoint:
        done = siftlog(
            *("run", "hostile", "--run-id=r", f"--base-url={endpoint.url}"),
            "--words=0",
            *(f"--model={model}" for model in MODELS),
            cwd=cwd,
            env=env,
        )
    return Ran(cwd=cwd, env=env, said=done.stdout + done.stderr)


def _raw(text: str) -> list[str]:
    """The characters of *text* that a terminal would act on, or hide."""
    return sorted(
        {c for c in text if c not in HARMLESS and unicodedata.category(c) in HIDDEN}
    )


def test_every_reply_is_an_answer_and_none_ends_the_run(ran: Ran) -> None:
    end = status(ran.cwd, "r")
    assert end["tasks"]["failed"] == end["tasks"]["open"] == 0
    assert end["attempts"]["answered"] == end["attempts"]["started"]
    assert "sound" in ran.says("verify", "r")


LOOKS = (
    *("status r", "tasks r", "events r", "score r", "runs", "export r"),
    *("retry r --filter=state:failed", "tasks r --json", "events r --json"),
    *("status r --json", "score r --json", "models r", "limits r", "budget r"),
    *("pause r --dry-run", "estimate --from r"),
)


@pytest.mark.parametrize("words", LOOKS)
def test_nothing_reaches_a_reader_raw(words: str, ran: Ran) -> None:
    assert _raw(ran.says(*words.split())) == []
    assert _raw(ran.said) == []


def test_a_key_of_two_lines_stays_one_line_of_a_list(ran: Ran) -> None:
    _, *rows = ran.says("tasks", "r").splitlines()
    assert len(rows) == status(ran.cwd, "r")["tasks"]["planned"]
    assert all(re.match(r" *\d+ +(read|ask|sum) ", row) for row in rows)
    listed = ran.says("events", "r").splitlines()
    assert all(re.match(r" *\d+ \d{4}-", line) for line in listed)


@pytest.mark.parametrize("words", ["tasks r --csv", "tasks r", "events r", "score r"])
def test_nothing_reaches_a_terminal_raw(words: str, ran: Ran) -> None:
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [SIFTLOG, *words.split()],
        cwd=ran.cwd,
        env={**os.environ, **ran.env},
        stdout=inside,
        stderr=inside,
    )
    os.close(inside)
    shown = b""
    try:
        while piece := os.read(terminal, 65536):
            shown += piece
    except OSError:
        pass  # how Linux says that the other side was closed
    finally:
        os.close(terminal)
    assert process.wait(30) == 0
    text = shown.decode().replace("\r\n", "\n").replace("\r\x1b[K", "")
    assert len(text) > 1000
    assert _raw(text) == []


def test_no_file_leaves_the_runs_folder(ran: Ran) -> None:
    for form in ("jsonl", "csv", "parquet"):
        ran.says("export", "r", f"--format={form}")
    made = {path.relative_to(ran.cwd) for path in ran.cwd.rglob("*") if path.is_file()}
    elsewhere = {p for p in made if p.parts[0] != "plugged" and p.parts[:2] != RUN}
    assert not elsewhere
    names = {path.name for path in made}
    assert not [name for name in names if not re.fullmatch(r"[A-Za-z0-9._-]+", name)]
    assert not (ran.cwd.parent / "climbs").exists()


RUN = ("runs", "r")


def test_no_cell_of_a_csv_is_a_formula(ran: Ran) -> None:
    ran.says("export", "r", "tasks", "answers", "scores", "--format=csv")
    csv.field_size_limit(10**8)
    folder = ran.cwd.joinpath(*RUN)
    files = [*folder.rglob("*.csv")]
    assert len(files) > 1
    quoted = 0
    for path in files:
        with path.open(newline="", encoding="utf-8") as file:
            rows = [*csv.reader(file)]
        assert {len(row) for row in rows} == {len(rows[0])}
        cells = [cell for row in rows for cell in row]
        assert not [cell[:20] for cell in cells if cell.startswith(FORMULA)]
        quoted += sum(cell.startswith("'") for cell in cells)
    assert quoted > 10


def test_an_export_holds_every_text_as_it_came(ran: Ran) -> None:
    folder = ran.cwd.joinpath(*RUN, "exports")
    ran.says("export", "r")
    ran.says("export", "r", "--format=parquet")
    with (folder / "answers.jsonl").open(encoding="utf-8", newline="\n") as file:
        rows = [json.loads(line) for line in file]
    assert {row["key"] for row in rows} >= set(KEYS)
    replies = {row["reply"] for row in rows}
    assert replies == {reply.replace("\ud83d", "?") for reply in REPLIES}
    table = pq.read_table(folder / "answers.parquet").to_pylist()
    assert [row["reply"] for row in table] == [row["reply"] for row in rows]


@pytest.mark.parametrize("model", ["two\nlines", "\x1b[31mred\u2028"])
def test_a_models_name_that_would_break_a_line_is_refused(
    model: str, tmp_path: Path
) -> None:
    words = ("run", "paper-investigation", f"--model={model}", "--base-url=http://x")
    done = siftlog(*words, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "cannot be the name of a model" in done.stderr
    assert _raw(done.stderr) == []
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("name", ["../../x", "a\nb", "x" * 300])
def test_a_run_cannot_be_called_what_no_folder_should_be(
    name: str, tmp_path: Path
) -> None:
    done = siftlog(
        "run", "paper-investigation", f"--run-id={name}", cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert "--run-id" in done.stderr
    assert _raw(done.stderr) == []
    assert not list(tmp_path.iterdir())


def test_the_report_shows_hostile_texts_and_does_nothing_that_they_say(
    ran: Ran,
) -> None:
    ran.says("report", "r", "--scoring=1")
    place = ran.cwd.joinpath(*RUN, "scores", "1", "report.html")
    text = place.read_text(encoding="utf-8")
    page = Page(text)
    page.assert_closed()
    assert _raw(text) == []
    assert all(len(piece) < 1_000 for piece in page.texts)
