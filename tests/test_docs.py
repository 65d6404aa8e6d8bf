"""The pages under docs/ are of the present code, lead somewhere, and run as written."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from jobs.kit.stage_declaration import read_declaration
from runner.cli.command_table import cli
from runner.errors import DatasetError
from runner.registry import job_names, load_job
from store.read.status import STATES
from tests.pages import blocks, follow
from tests.plugging import plugged
from tests.reference import DOCS, renewed

PAGES = sorted(DOCS.glob("*.md"))
README = DOCS.parent / "README.md"
EXAMPLE = DOCS / "example"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_made_from_the_code_is_of_this_code(page: Path) -> None:
    assert renewed(page.read_text()) == page.read_text(), "run: make docs"


def _anchors(page: Path) -> set[str]:
    """What a link may point to in a page: its headings, as they are called in links."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-")
        for head in heads
    }


def test_every_link_into_a_page_finds_its_heading() -> None:
    for page in [README, *PAGES]:
        for file, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
            target = page.parent / file if file else page
            assert anchor in _anchors(target), (page.name, file, anchor)


ROOT = DOCS.parent
NOTES = sorted((ROOT / "design").glob("*.md"))
CODE = ("store", "runner", "jobs", "tui", "tests", "docs")
NAMED = re.compile(
    rf"(?<![\w./<-])(?:{'|'.join((*CODE, 'design'))})(?:[./]\w[\w-]*)+(?![\w*<{{-])"
)


def _is_there(name: str) -> bool:
    """Whether the repository has this path, module, or name inside a module."""
    if "/" in name:
        return (ROOT / name).exists() or (ROOT / f"{name}.py").exists()
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ROOT.joinpath(*parts[:length])
        source = module.with_suffix(".py") if length > 1 else module / "__init__.py"
        source = source if source.exists() else module / "__init__.py"
        if source.exists() or module.is_dir():
            rest, text = parts[length:], source.read_text() if source.exists() else ""
            return all(re.search(rf"\b{part}\b", text) for part in rest)
    return False


@pytest.mark.parametrize(
    "page", [README, *PAGES, *NOTES], ids=lambda page: f"{page.parent.name}-{page.stem}"
)
def test_every_path_and_dotted_name_of_a_page_exists(page: Path) -> None:
    quoted = re.findall(r"`([^`\n]+)`", page.read_text())
    named = {name for words in quoted for name in NAMED.findall(words)}
    missing = {name for name in named if not _is_there(name) and "NAME" not in name}
    files = {words for words in quoted if re.fullmatch(r"(?:\w+/)*[a-z_]+\.py", words)}
    missing |= {
        file
        for file in files - named
        if not (ROOT / file).exists()
        and not any(any((ROOT / room).rglob(file)) for room in CODE)
    }
    assert not missing, f"{page.name} names what does not exist"


#: OpenTelemetry's, which notes name and the code does not need.
FOREIGN = {"HistogramDataPoint", "ReadableSpan"}


def test_every_class_that_a_design_note_names_is_one_of_the_code() -> None:
    code = "".join(
        path.read_text() for room in CODE for path in (ROOT / room).rglob("*.py")
    )
    words = set(re.findall(r"\w+", code))
    for page in NOTES:
        named = re.findall(r"`([A-Z]\w*[a-z]\w*)(?:\.\w+)*`", page.read_text())
        assert not {*named} - words - FOREIGN, (
            f"{page.name} names what the code does not have"
        )


def test_the_map_leads_to_every_design_note_and_to_nothing_else() -> None:
    text = (ROOT / "design/README.md").read_text()
    linked = re.findall(r"\]\(([\w-]+\.md)\)", text)
    assert sorted(linked) == sorted({page.name for page in NOTES} - {"README.md"})


def test_the_way_of_a_call_in_the_map_has_at_most_twelve_files() -> None:
    text = (ROOT / "design/README.md").read_text()
    way = text.split("## The path of one call")[1].split("\n## ")[0]
    steps = re.findall(r"^\d+\. `([\w/]+\.py)`", way, re.MULTILINE)
    assert 0 < len(steps) <= 12
    assert [step for step in steps if not (ROOT / step).exists()] == []


def test_every_page_is_reached_from_the_first() -> None:
    named = set(re.findall(r"\(([\w-]+\.md)\)", (DOCS / "index.md").read_text()))
    assert named == {page.name for page in PAGES} - {"index.md"}


def _commands() -> Iterator[tuple[str, list[str]]]:
    """Each command that stands in a block of a page, with its words."""
    for page in [README, *PAGES]:
        text = page.read_text().replace("\\\n", " ")
        fenced = re.findall(r"^```(?:sh)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        indented = re.findall(r"^    .*$", text, re.MULTILINE)
        for line in "\n".join([*fenced, *indented]).splitlines():
            if line.strip().startswith("siftlog "):
                yield page.name, shlex.split(line, comments=True)


@pytest.mark.parametrize("page", [README, *PAGES, *NOTES], ids=lambda page: page.name)
def test_every_indented_block_begins_after_a_blank_line(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    torn = re.findall(r"^(?![ |*\d-]).+\n {4}.+$", text, re.MULTILINE)
    assert not torn, "the first line of a block has lost its indentation"


def test_every_command_of_a_page_is_one_with_options_that_it_has() -> None:
    frame = click.Context(cli, info_name="siftlog")
    run = cli.get_command(frame, "run")
    assert run is not None
    asking = {name for option in run.params for name in option.opts}
    fields = (load_job(job).Settings.model_fields for job in job_names())
    settings = {f"--{name.replace('_', '-')}" for own in fields for name in own}
    passed = {*asking, *settings, "--rows", "--help"}  # one is of the page's own job
    for page, words in _commands():
        verb = cli.get_command(frame, words[1])
        assert verb is not None, (page, words)
        own = {name for option in verb.params for name in option.opts}
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        # which take settings of a job, and if need be the options of a run
        takes_more = verb.context_settings
        assert given <= own | (passed if takes_more else set()), (page, words)


def test_every_state_of_a_run_is_explained() -> None:
    text = (DOCS / "concepts.md").read_text()
    table = text[text.index("## States of a run") :]
    assert set(re.findall(r"^\| (\w+) \|", table, re.MULTILINE)) - {"state"} == set(
        STATES
    )


@pytest.mark.timeout(180)
def test_the_quick_start_goes_as_it_is_written(tmp_path: Path) -> None:
    printed = follow((DOCS / "index.md").read_text(), tmp_path)
    assert "setting variant_link" in printed
    assert "came out the same again, without a network" in printed


INSTALLED = """```sh
siftlog run participants --rows trials.jsonl --no-report
```
"""


@pytest.mark.timeout(180)
def test_the_example_job_plugs_in_and_is_run_imported_and_compared(
    tmp_path: Path,
) -> None:
    page = (DOCS / "write-your-own-job.md").read_text()
    (package,) = (tomllib.loads(text) for text in blocks("toml", page))
    points = package["project"]["entry-points"]["siftlog.jobs"]
    env = plugged(tmp_path / "installed", **points)
    env["PYTHONPATH"] += f"{os.pathsep}{EXAMPLE}"
    for name in ("participants.py", "near.py", "trials.jsonl"):
        (tmp_path / name).write_text((EXAMPLE / name).read_text())
    trials = (EXAMPLE / "trials.jsonl").read_text()
    assert blocks("json", page)[0] in trials
    printed = follow(page, tmp_path, env)
    assert "baseline/lexical" in follow(INSTALLED, tmp_path, env)
    assert all(text in printed for text in blocks("text", page))
    assert "failed   could not be read: no_value" in printed, "explain"
    assert "atlas minus baseline/lexical" in printed or "other" in printed, "compare"


@pytest.mark.timeout(180)
def test_the_bill_of_the_page_on_bills_has_a_double_charge(tmp_path: Path) -> None:
    printed = follow((DOCS / "reconcile.md").read_text(), tmp_path)
    assert re.search(r"^double charge +1 ", printed, re.MULTILINE)
    assert re.search(r"^residual +- +0\.0+$", printed, re.MULTILINE)


@pytest.mark.timeout(180)
def test_the_page_on_added_stages_goes_as_it_is_written(tmp_path: Path) -> None:
    page = (DOCS / "add-stage.md").read_text()
    for name in ("participants.py", "trials.jsonl"):
        (tmp_path / name).write_text((EXAMPLE / name).read_text())
    for text in blocks("toml", page):
        name = text.partition("\n")[0].removeprefix("# ")
        (tmp_path / name).write_text(text)
        read_declaration(text)
    printed = follow(page, tmp_path)
    assert blocks("text", page)[0] in printed


def test_the_example_job_refuses_a_wrong_row_before_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLE)
    job = importlib.import_module("participants").Participants()
    path = tmp_path / "trials.jsonl"
    path.write_text('{"id": "T1", "abstract": "Of 3 adults.", "enrolled": "few"}\n')
    with pytest.raises(DatasetError, match=r"trials.jsonl line 1: enrolled is "):
        job.load(job.Settings(rows=path))


@pytest.mark.parametrize(
    ("file", "most"),
    [
        (EXAMPLE / "participants.py", 25),
        (DOCS.parent / "tests/jobs/kit/sixth_job.py", 80),
    ],
)
def test_a_job_on_the_kit_is_short(file: Path, most: int) -> None:
    assert sum(map(bool, file.read_text().splitlines())) <= most


def test_sentences_of_symptoms_are_those_that_are_said() -> None:
    page = (DOCS / "troubleshooting.md").read_text()
    cells = re.findall(r"^\| (.*?) \|", page, re.MULTILINE)
    quoted = (q for cell in cells for q in re.findall(r'[`"](.*? .*?)[`"]', cell))
    said = {part.strip() for q in quoted for part in re.split(r"\.\.\.|'x'", q)} - {""}
    folders = (DOCS.parent / name for name in ("runner", "store"))
    code = "".join(path.read_text() for f in folders for path in f.rglob("*.py"))
    assert len(said) > 5
    assert [sentence for sentence in said if sentence not in code] == []


#: Sections that each job's page has, in this order, with others between them.
SECTIONS = (
    r"Inputs",
    r"Stages",
    r"Summary",
    r"Explain .*",
    r"Output files",
    r"Import .*",
    r"Limits",
)


@pytest.mark.parametrize("job", job_names())
def test_every_job_has_a_page_of_one_form(job: str) -> None:
    text = (DOCS / f"{job}.md").read_text()
    assert text.startswith(f"# {job}: ")
    heads = re.findall(r"^## (.*)$", text, re.MULTILINE)
    found = [
        next(i for i, h in enumerate(heads) if re.fullmatch(s, h)) for s in SECTIONS
    ]
    assert sorted(found) == found, [heads[i] for i in found]


@pytest.mark.parametrize("job", job_names())
def test_every_option_on_the_page_of_a_job_exists(job: str) -> None:
    page = (DOCS / f"{job}.md").read_text()
    named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", page))
    settings = {
        f"--{name.replace('_', '-')}" for name in load_job(job).Settings.model_fields
    }
    frame = click.Context(cli, info_name="siftlog")
    commands = (cli.get_command(frame, name) for name in cli.list_commands(frame))
    options = {
        name
        for command in commands
        if command is not None
        for option in command.params
        for name in option.opts
    }
    # a setting of a scoring that every run takes
    assert named <= settings | options | {"--gold"}
