"""A job in one file: found by path, pinned by its hash, found again by a resume."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from runner.errors import RunnerError, UsageError
from runner.job import Task
from runner.job_faults import read_reply
from runner.job_files import job_of_object, load_file
from runner.messages import ParseFailure, Reply
from runner.registry import choose_job, is_job, job_word
from tests.plugging import plugged
from tests.processes import siftlog

JOB = '''"""Reads a colour."""
from jobs.kit.inputs import cells
from jobs.kit.inputs.rows import RowModel
from jobs.kit.questions import QuestionJob

class Row(RowModel):
    id: cells.Filled
    text: cells.Filled
    colour: cells.Filled | None = None

class Colours(QuestionJob):
    name, version, Row = "colours", "1", Row
    question = "Which colour?"
    show, truth = ("text",), "colour"

    def read(self, text):
        return text or None

    def offline(self, texts):
        return texts["text"].split()[0]
'''
SECOND = '\nclass Shades(Colours):\n    name = "shades"\n'
ROWS = "id,text,colour\na,red sky,red\nb,blue sea,blue\nc,a green leaf,green\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "colours.py").write_text(JOB)
    (tmp_path / "rows.csv").write_text(ROWS)
    return tmp_path


def test_a_file_with_one_job_is_that_job(folder: Path) -> None:
    job = load_file(str(folder / "colours.py"))
    assert (job.name, job.file) == ("colours", folder / "colours.py")
    again = load_file(job_word(job))
    assert type(again) is type(job), "the same content is imported once"


@pytest.mark.parametrize("name", ["shades", "Shades"])
def test_one_of_several_jobs_is_chosen_by_name_or_class(
    folder: Path, name: str
) -> None:
    (folder / "colours.py").write_text(JOB + SECOND)
    assert load_file(f"{folder / 'colours.py'}:{name}").name == "shades"


def test_an_instance_stands_for_its_class(folder: Path) -> None:
    (folder / "colours.py").write_text(f"{JOB}\njob = Colours()\n")
    assert load_file(f"{folder / 'colours.py'}").name == "colours"


def test_an_edited_file_is_imported_again(folder: Path) -> None:
    path = folder / "colours.py"
    load_file(str(path))
    path.write_text(JOB.replace('"1"', '"2"'))
    assert load_file(str(path)).version == "2"


def test_a_file_may_import_one_beside_it_which_hides_no_installed_module(
    folder: Path,
) -> None:
    (folder / "shading.py").write_text("DARK = 'dark'\n")
    (folder / "json.py").write_text("raise SystemExit\n")
    path = folder / "colours.py"
    path.write_text(f"import json\nfrom shading import DARK\n{JOB}")
    assert load_file(str(path)).name == "colours"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1\n", "job.py has no job; derive a class from siftlog.QuestionJob"),
        (JOB + SECOND, "has 2 jobs (Colours, Shades); name one, such as job.py:Col"),
        ("\nclass (\n", "job.py, line 2: invalid syntax; correct the file."),
        ("\nimport nosuch\n", "job.py, line 2: No module named 'nosuch'; install"),
        ("\n\n1 / 0\n", "job.py, line 3: ZeroDivisionError: division by zero; corr"),
        ("exit()\n", "job.py, line 1 ends the process; put what starts a run below if"),
        (
            JOB.replace("def offline", "def online"),
            "job Colours cannot be created: Can't instantiate abstract class",
        ),
        (
            JOB.replace('("text",)', '("texts",)'),
            "line 11: job Colours cannot be created: Row has no field 'texts'",
        ),
        (
            f"{JOB}\n    def __init__(self):\n        pass\n",
            "job Colours has no stages; set them in its class",
        ),
    ],
)
def test_a_wrong_file_is_one_sentence_with_file_and_line(
    tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "job.py"
    path.write_text(text)
    with pytest.raises(RunnerError, match=re.escape(sentence)):
        load_file(str(path))


def test_two_jobs_of_one_name_are_refused_as_a_run_records_only_the_name(
    folder: Path,
) -> None:
    path = folder / "colours.py"
    path.write_text(f"{JOB}\nclass Twin(Colours):\n    name = 'colours'\n")
    with pytest.raises(UsageError, match="several jobs with the name 'colours'"):
        load_file(f"{path}:Twin")


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("absent.py", "absent.py cannot be read (No such file or directory); check"),
        ("colours.py:Other", "colours.py has no job 'Other'; it has Colours."),
        ("colours", "There is no job 'colours'; did you mean the file colours.py?"),
        ("scrrening", "There is no job 'scrrening'; did you mean 'screening'?"),
    ],
)
def test_a_word_without_a_job_is_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, word: str, sentence: str
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(UsageError, match=re.escape(sentence)):
        choose_job(word)


def test_a_class_of_a_notebook_is_in_no_file() -> None:
    kind = type(
        "Cell", (type(load_file.__globals__["Job"]),), {"__module__": "notebook"}
    )
    with pytest.raises(UsageError, match="Cell is in no file, so no other process"):
        job_of_object(kind)  # type: ignore[arg-type] # a class without methods


def test_a_run_pins_the_file_and_finds_it_again(folder: Path) -> None:
    words = ("run", "./colours.py", "--rows", "rows.csv", "--run-id", "r")
    done = siftlog(*words, cwd=folder)
    assert "0.667" in done.stdout
    (first,) = (
        json.loads(line)
        for line in siftlog(
            "events", "r", "--kind", "run_started", "--json", cwd=folder
        ).stdout.splitlines()
    )
    recorded = {entry["setting"]: entry for entry in first["facts"]["inputs"]}["job"]
    assert recorded["path"] == str(folder / "colours.py")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    run = folder / "runs" / "r"
    assert "0.667" in siftlog("score", run, "--no-record", cwd=elsewhere).stdout
    assert "truth" in siftlog("explain", run, "a", cwd=elsewhere).stdout
    (folder / "colours.py").write_text(JOB.replace("Which", "What"))
    refused = siftlog("resume", "r", cwd=folder, check=False)
    assert refused.returncode == 1
    assert "colours.py (job) is not what the run was started with" in refused.stderr
    siftlog("resume", "r", "--accept-changes", cwd=folder)
    (folder / "colours.py").unlink()
    missing = siftlog("score", "r", cwd=folder, check=False)
    assert missing.returncode == 2
    assert missing.stderr.endswith(
        "the file of job colours of run r, is missing; put it back there.\n"
    )


@pytest.mark.timeout(180)
def test_shards_load_the_file_in_their_own_processes(folder: Path) -> None:
    words = ("run", "colours.py", "--rows=rows.csv", "--run-id=r", "--shards=2")
    done = siftlog(*words, "--engine", "processes", cwd=folder)
    assert "0.667" in done.stdout


def test_a_recipe_is_read_by_the_job_of_its_suffix(folder: Path) -> None:
    (folder / "recipes.py").write_text(
        JOB.replace("class Colours(QuestionJob):", RECIPE_JOB) + LOAD
    )
    environment = plugged(folder / "installed", colours="recipes:Colours_job")
    (points,) = (folder / "installed").rglob("entry_points.txt")
    text = f"{points.read_text()}[siftlog.recipes]\ncolour = colours\n"
    points.write_text(text)
    environment["PYTHONPATH"] += f":{folder}"
    (folder / "a.colour").write_text("rows.csv")
    done = siftlog("run", "a.colour", "--run-id=r", cwd=folder, env=environment)
    assert "0.667" in done.stdout
    done = siftlog("run", "b.colour", cwd=folder, env=environment, check=False)
    assert "b.colour does not exist; did you mean 'a.colour'?" in done.stderr


RECIPE_JOB = """from pathlib import Path
from pydantic import Field
from jobs.kit.questions import QuestionSettings

class Settings(QuestionSettings):
    rows: Path = Path("none")
    recipe: Path | None = Field(None, description="file with the name of the rows")

class Colours(QuestionJob):
    Settings = Settings
    def inputs(self, settings):
        return super().inputs(settings.model_copy(update={"rows": None}))
"""
LOAD = """
    def load(self, settings):
        rows = settings.recipe.parent / settings.recipe.read_text()
        return super().load(settings.model_copy(update={"rows": rows}))

Colours_job = Colours()
"""


def test_a_broken_package_is_listed_and_harms_no_other_job(tmp_path: Path) -> None:
    (tmp_path / "plug.py").write_text("raise ValueError('no licence')\n")
    environment = plugged(tmp_path / "installed", faulty="plug:job")
    (points,) = (tmp_path / "installed").rglob("entry_points.txt")
    text = f"{points.read_text()}[siftlog.commands]\nlicence = plug:command\n"
    points.write_text(text)
    environment["PYTHONPATH"] += f":{tmp_path}"
    listed = siftlog("jobs", cwd=tmp_path, env=environment).stdout
    assert "broken: Job faulty (plug:job) cannot be loaded: ValueError: no l" in listed
    assert "screening" in listed
    assert "Broken: Command licence" in " ".join(
        siftlog("--help", cwd=tmp_path, env=environment).stdout.split()
    )
    words = ("run", "screening", "--limit=2", "--no-report")
    assert siftlog(*words, cwd=tmp_path, env=environment).returncode == 0
    refused = siftlog("run", "faulty", cwd=tmp_path, env=environment, check=False)
    assert refused.returncode == 1
    assert "fix the job or uninstall its package." in refused.stderr


def test_a_word_is_a_job_or_a_run() -> None:
    words = ("screening", "a.py", "x/a.py:B", "last", "20260101-run")
    assert [is_job(word) for word in words] == [True, True, True, False, False]


def test_an_exception_is_placed_in_the_file_of_the_job(folder: Path) -> None:
    lines = JOB.replace("return text or None", "return text[9]").splitlines()
    (folder / "colours.py").write_text("\n".join(lines))
    job = load_file(str(folder / "colours.py"))
    (stage,) = job.stages
    task = Task(number=1, stage=stage.name, key="a", model="m", replicate=1)
    place = f"IndexError at colours.py:{lines.index('        return text[9]') + 1}"
    for parse in (partial(read_reply, stage), stage.parse):
        failure = parse(None, task, Reply(text="red"))
        assert isinstance(failure, ParseFailure)
        assert failure.detail == place
