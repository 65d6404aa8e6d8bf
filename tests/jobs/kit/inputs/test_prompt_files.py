"""One contract for the prompts of all jobs: shipped, printed, replaced, sent."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from runner.cli.main import exit_code
from runner.job import Task
from runner.prompts import REASK, PromptBook, PromptCatalog, written
from runner.registry import job_names, load_job
from runner.workload import validated
from store.database import open_reader
from store.read.status import run_started
from store.runs import RunFolder

JOBS = Path(__file__).parents[4] / "jobs"
REVIEW = JOBS / "review_benchmark/sample/extraction/review.txt"
QUESTIONS = JOBS / "paper_investigation/sample/questions"
LOCAL = "baseline/lexical"

PLAIN = "--structured=off"
CLOSED = ["--mode=questions", "--closed-book=true", f"--questions={QUESTIONS}"]

RUNS = {
    "ask": [[], [PLAIN]],
    "screening": [
        ["--criteria-source=llm", "--stages=title,abstract,fulltext"],
        [PLAIN],
    ],
    "evidence-retrieval": [
        ["--tasks=assess,rerank"],
        ["--set=batch=post", PLAIN],
    ],
    "property-extraction": [
        ["--names=free", "--requote=1"],
        ["--names=listed", PLAIN],
        ["--properties=truth"],
        ["--properties=rubric", "--names=listed", PLAIN],
        ["--mode=verify"],
        ["--mode=verify", "--set=verify=choice", PLAIN],
    ],
    "review-benchmark": [
        ["--verdict=judge", f"--judge-model={LOCAL}"],
        ["--scale=0-1", PLAIN],
        ["extract", str(REVIEW), "--set=with_excluded=true", "--out=out"],
    ],
    "paper-investigation": [
        [],
        [PLAIN],
        ["--profile=clinpgx-qa"],
        ["--batch-questions=true"],
        ["--mode=extract", "--reference-alleles=leave_out"],
        CLOSED,
        [*CLOSED, "--batch-questions=true"],
    ],
}
"""Runs on the shipped samples that together send every prompt of a job."""

UNSENT = {
    "ask": {"check.system", "check.user"},
    "property-extraction": {"requote.system", "requote.user"},
    "review-benchmark": {"x.places.system", "x.places.user", "reask.user"},
    "screening": {"reask.user"},
    "paper-investigation": {"reask.user"},
}
"""Texts that no run on a sample sends: every quote of the baseline is in the paper, the
sample's headings name all sections, every reply of the baseline can be read, and the
sample's recipe checks nothing."""

OWN = {"ask": "[check]\nuser = 'Read {values}'\n"}
"""A user's file, where a system message alone lacks what a job needs in it."""


WITH_PROMPTS = tuple(name for name in job_names() if name != "replies")
"""Jobs with texts of their own; `replies` sends the prompts of its files."""


def catalog_of(name: str) -> PromptCatalog:
    catalog = load_job(name).prompts
    assert catalog is not None
    return catalog


@pytest.mark.parametrize("name", WITH_PROMPTS)
def test_the_shipped_file_is_what_siftlog_prints(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = catalog_of(name)
    assert exit_code(["prompts", name]) == 0
    assert capsys.readouterr().out == catalog.file.read_text("utf-8")
    stages = {stage.name for stage in load_job(name).stages}
    for block in catalog.blocks:
        if block is not REASK:
            assert any(f"{block.name}.".startswith(f"{stage}.") for stage in stages)
            assert {"system", "user"} <= block.parts.keys()
    can_ask_again = "reask" in load_job(name).Settings.model_fields
    assert (REASK in catalog.blocks) == can_ask_again


@pytest.mark.parametrize("name", WITH_PROMPTS)
def test_the_printed_file_makes_identical_requests(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["prompts", name]) == 0
    file = tmp_path / "prompts.toml"
    file.write_text(capsys.readouterr().out, "utf-8")
    job = load_job(name)
    shipped = job.with_sample(validated(job, {}))
    first, own = (
        job.load(settings)
        for settings in (shipped, shipped.model_copy(update={"prompts": file}))
    )
    assert own.prompts == first.prompts
    specs = [spec for spec in job.plan(first) if spec.skip is None]
    assert specs
    for spec in specs[:20]:
        task = Task(
            number=1,
            stage=spec.stage,
            key=spec.key,
            model="m",
            replicate=1,
            context=spec.context,
        )
        assert job.request(own, task) == job.request(first, task)


@pytest.mark.parametrize("name", WITH_PROMPTS)
def test_every_text_can_be_replaced_and_the_baseline_still_answers(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    catalog = catalog_of(name)
    shipped = catalog.shipped().texts
    marked = PromptBook(texts={own: f"({own}) {text}" for own, text in shipped.items()})
    file = tmp_path / "own.toml"
    file.write_text(written(catalog, marked), "utf-8")
    sent: set[str] = set()
    for number, words in enumerate(RUNS[name]):
        run = f"r{number}"
        verb = "prepare" if words[:1] == ["extract"] else "generate"
        given = [f"--prompts={file}", f"--run-id={run}", f"--model={LOCAL}"]
        code = exit_code([verb, name, *words, *given, "--no-cache"])
        assert code == 0, capsys.readouterr().err
        capsys.readouterr()
        assert exit_code(["prompts", run, "--json"]) == 0
        for line in capsys.readouterr().out.splitlines():
            said = "".join(each["content"] for each in json.loads(line)["messages"])
            sent |= {text for text in shipped if f"({text}) " in said}
        with open_reader(RunFolder(tmp_path / "runs" / run).log) as reader:
            inputs = {each.setting: each.path for each in run_started(reader).inputs}
        assert inputs["prompts"] == str(file)
        assert exit_code(["tasks", run, "--json", "--filter", "parse:*"]) == 0
        unread = map(json.loads, capsys.readouterr().out.splitlines())
        # a review of the sample says too little to state criteria from
        assert {each["reason"] for each in unread} <= {"no_criteria"}
    assert shipped.keys() - sent == UNSENT.get(name, set())


@pytest.mark.parametrize("name", ["paper-investigation", "screening"])
def test_a_bundle_holds_the_prompts_and_is_verified_without_them(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "own.toml"
    text = OWN.get(name, "system = 'Read carefully.'\n")
    file.write_text(text)
    words = ["run", name, f"--prompts={file}", "--run-id=r", "--no-report"]
    if "limit" in load_job(name).Settings.model_fields:
        words.append("--limit=4")
    assert exit_code([*words, "--boot-b=0"]) == 0, capsys.readouterr().err
    assert exit_code(["bundle", "r", "--no-report"]) == 0, capsys.readouterr().err
    file.unlink()
    (bundle,) = (tmp_path / "runs/r/exports").glob("*.zip")
    with zipfile.ZipFile(bundle) as members:
        (kept,) = (m for m in members.namelist() if "inputs/prompts/" in m)
        assert members.read(kept) == text.encode()
    assert exit_code(["verify", str(bundle)]) == 0, capsys.readouterr().err
