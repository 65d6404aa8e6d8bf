"""The job as a whole: its interface, its stages, and what stays unloaded."""

from __future__ import annotations

import subprocess
import sys
from typing import cast

import pytest

from jobs.paper_investigation.inputs import with_sample
from jobs.paper_investigation.job import job
from jobs.paper_investigation.parsing import Letter, StudyAnswer, VariantList
from jobs.paper_investigation.prompts import batch_context
from jobs.paper_investigation.records import StoredQuestion, encode
from jobs.paper_investigation.settings import InvestigationSettings
from runner.job import Importer, Job, Task
from runner.messages import ParseFailure, Reply
from tests.jobs.paper_investigation.small_datasets import choice, dataset, study

STAGES = {stage.name: stage for stage in job.stages}


def task(stage: str, key: str, context: str | None = None) -> Task:
    return Task(number=1, stage=stage, key=key, model="m", replicate=1, context=context)


def test_it_is_a_job_with_an_importer_and_a_check() -> None:
    whole: Job = job
    reader: Importer = job.importer
    assert whole.name == "paper-investigation"
    assert "flat" in reader.formats
    assert list(job.prepare) == ["check"]
    assert job.Settings is InvestigationSettings


def test_only_extractions_have_follow_ups() -> None:
    assert {name: stage.follows for name, stage in STAGES.items()} == {
        "extract": True,
        "question": False,
        "batch": False,
    }
    assert {stage.role for stage in job.stages} == {"subject"}
    assert not any(stage.gathers for stage in job.stages)


def test_finding_a_job_loads_no_heavy_library() -> None:
    code = (
        "import sys, jobs.review_benchmark.job; from jobs.paper_investigation import "
        "job; heavy = {'numpy', 'scipy', 'pandas', 'matplotlib', 'sklearn', "
        "'rapidfuzz', 'litellm'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_sample_runs_from_plan_to_reply() -> None:
    settings = cast("InvestigationSettings", job.with_sample(InvestigationSettings()))
    data = job.load(settings)
    assert job.inputs(settings) == job.inputs(with_sample(InvestigationSettings()))
    first = next(iter(job.plan(data)))
    asked = job.request(data, task(first.stage, first.key))
    text = job.baseline(asked)
    parsed = STAGES[first.stage].parse(
        data, task(first.stage, first.key), Reply(text=text)
    )
    assert isinstance(parsed, VariantList)


def test_each_stage_reads_its_replies_by_the_settings_rules() -> None:
    questions = (choice("PMC1", "rs1", "1"), study("PMC1", "rs1", "1"))
    prose = Reply(text="The answer is B.")
    for rules, expected in (
        ("robust", Letter(letter="b", rule="stated")),
        ("clinpgx-qa", ParseFailure(reason="no_letter")),
    ):
        data = dataset({"PMC1": ["rs1"]}, questions, letter_rules=rules)
        read = STAGES["question"].parse(
            data, task("question", "PMC1/mcq_drug:1"), prose
        )
        assert read == expected
    data = dataset({"PMC1": ["rs1"]}, questions)
    read = STAGES["question"].parse(
        data,
        task("question", "PMC1/study_param:1"),
        Reply(text='{"p_value": "0.03", "significance": "yes"}'),
    )
    assert isinstance(read, StudyAnswer)


def test_the_options_of_the_data_help_to_read_a_letter() -> None:
    data = dataset({"PMC1": ["rs1"]}, [choice("PMC1", "rs1", "1")])
    read = STAGES["question"].parse(
        data, task("question", "PMC1/mcq_drug:1"), Reply(text="Warfarin.")
    )
    assert read == Letter(letter="b", rule="option_text")


@pytest.mark.parametrize(
    ("text", "finish", "expected"),
    [
        ("1. b", "stop", ["b", "missing_in_batch"]),
        ("nothing", "stop", "missing_in_batch"),
        ("1.", "length", "truncated"),
        ("", "stop", "empty_reply"),
    ],
)
def test_a_batch_fails_as_a_whole_only_where_nothing_was_read(
    text: str, finish: str, expected: list[str] | str
) -> None:
    questions = (choice("PMC1", "rs1", "1"), choice("PMC1", "rs1", "2"))
    data = dataset({"PMC1": ["rs1"]}, questions)
    asked = task("batch", "PMC1/b/mcq_drug:1", batch_context(questions))
    read = STAGES["batch"].parse(data, asked, Reply(text=text, finish_reason=finish))
    if isinstance(expected, str):
        assert read == ParseFailure(reason=expected)
    else:
        assert isinstance(read, tuple)
        assert [
            each.reason if isinstance(each, ParseFailure) else each.letter
            for each in read
        ] == expected


@pytest.mark.parametrize(
    ("stage", "key", "context"),
    [
        ("question", "PMC1/mcq_drug:9", None),
        ("batch", "PMC1/b/mcq_drug:9", '["mcq_drug:9"]'),
    ],
)
def test_a_reply_to_a_question_that_the_data_lost_is_a_failure(
    stage: str, key: str, context: str | None
) -> None:
    data = dataset({"PMC1": ["rs1"]})
    read = STAGES[stage].parse(data, task(stage, key, context), Reply(text="b"))
    assert read == ParseFailure(reason="unknown_question")


def test_an_imported_question_brings_what_its_reply_is_read_by() -> None:
    stored = encode(StoredQuestion(question=choice("PMC7", "rs1", "1")))
    asked = task("question", "PMC7/mcq_drug:1", stored)
    read = STAGES["question"].parse(dataset({}), asked, Reply(text="warfarin"))
    assert read == Letter(letter="b", rule="option_text")


def test_a_profile_bundles_settings_and_an_explicit_one_wins() -> None:
    profile = InvestigationSettings(profile="clinpgx-qa", max_questions_per_variant=5)
    assert profile.variant_link == "whole"
    assert profile.batch_questions
    assert profile.profile_changes == ("max_questions_per_variant=5",)
    assert InvestigationSettings(profile="clinpgx-qa").profile_changes == ()
