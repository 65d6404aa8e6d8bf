"""The job as a whole: its interface, its stages, and what stays unloaded.

The job's own files: names that cannot collide, lines that can be read again.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from jobs.kit.testing import MemoryAnswers, artifact_texts
from jobs.kit.text_format import slugs
from jobs.paper_investigation.artifacts import file_name
from jobs.paper_investigation.data import InvestigationDataset
from jobs.paper_investigation.importer import importer
from jobs.paper_investigation.inputs import load
from jobs.paper_investigation.job import job
from jobs.paper_investigation.parsing import Letter, StudyAnswer
from jobs.paper_investigation.prompts import batch_context
from jobs.paper_investigation.records import StoredQuestion, encode
from jobs.paper_investigation.settings import InvestigationSettings
from runner.job import Importer, Job, Task
from runner.messages import ParseFailure, Reply
from runner.scorecard import Metric, Scorecard
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


RESPONSES = "model_paper_investigation_responses.jsonl"
RESULTS = "model_paper_investigation_eval_results.jsonl"


def answer(task: Task) -> str | None:
    if task.stage == "extract":
        return None if task.key == "PMC2" else '["rs1", "RS2", "rs9"]'
    if "study_param" in task.key:
        return '{"p_value": "0.04", "significance": "yes"}'
    return "b" if task.key.endswith("1") else "The answer is c."


@pytest.fixture
def data() -> InvestigationDataset:
    return dataset(
        {"PMC1": ["rs1", "rs2"], "PMC2": ["rs1"], "PMC3": ["rs3"]},
        [
            choice("PMC1", "rs1, rs2", "1", annotation_id="77"),
            choice("PMC1", "rs2", "2"),
            study("PMC1", "rs1", "1"),
        ],
    )


@pytest.fixture
def card(data: InvestigationDataset) -> Scorecard:
    return job.score(data, MemoryAnswers.of_run(job, data, answer))


def records(card: Scorecard, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in artifact_texts(card)[name].splitlines()]


def metrics(card: Scorecard) -> dict[str, Metric]:
    return {metric.path: metric for metric in card.models["model"]}


def test_file_names_hold_safe_characters_only() -> None:
    assert slugs(["openai/gpt 4o", "../../etc/x", "plain-1.0_b"]) == {
        "openai/gpt 4o": "openai_gpt_4o",
        "../../etc/x": "_._.._etc_x",
        "plain-1.0_b": "plain-1.0_b",
    }


def test_models_with_one_slug_get_names_apart() -> None:
    named = slugs(["a/b", "a_b", "c"])
    assert len(set(named.values())) == 3
    assert named["c"] == "c"
    assert named["a/b"].startswith("a_b-")
    assert len(named["a/b"]) == len("a_b-") + 6
    assert named == slugs(["c", "a_b", "a/b"])


def test_names_that_differ_in_case_alone_are_no_file_twice() -> None:
    named = slugs(["lab/M", "lab/m"])
    assert len({name.lower() for name in named.values()}) == 2


@pytest.mark.parametrize(
    "model", ["figures", "Figures", "metrics.csv", "scorecard.json", "report.html", ""]
)
def test_a_model_called_like_a_file_of_a_scoring_is_not_in_its_way(model: str) -> None:
    (named,) = slugs([model]).values()
    assert named.startswith(model or "_")
    assert named[len(model) :].lstrip("_").startswith("-")


def test_replicates_above_the_first_are_marked_before_the_suffix() -> None:
    assert file_name("m", 1, "x_summary.txt") == "m_x_summary.txt"
    assert file_name("m", 2, "x_summary.txt") == "m_x_summary_r2.txt"


def test_responses_hold_every_paper_in_bench_order(card: Scorecard) -> None:
    found = records(card, RESPONSES)
    assert [each["pmcid"] for each in found] == ["PMC1", "PMC2", "PMC3"]
    assert [each["skip_reason"] for each in found] == [None, "extraction_failed", None]
    assert found[1]["predicted_variants"] is None
    # as the reply and the truth spell them
    assert found[0]["predicted_variants"] == ["rs1", "RS2", "rs9"]
    assert found[0]["recalled_variants"] == ["rs1", "rs2"]


def test_joined_question_stands_under_each_variant_marked_shared(
    card: Scorecard,
) -> None:
    results = records(card, RESPONSES)[0]["variant_results"]
    assert list(results) == ["rs1", "rs2"]
    shared = [
        (variant, response["question_id"])
        for variant, result in results.items()
        for response in result["responses"]
        if response.get("shared")
    ]
    assert shared == [("rs1", "1"), ("rs2", "1")]
    response = results["rs2"]["responses"][1]
    assert response["parsed"] == "c"
    assert response["rule"] == "stated"
    assert response["correct"] is False
    assert response["expected_answer"] == "b"
    assert response["question"]["option_b"] == "warfarin"
    sentence = response["question"]["original_sentence"]
    assert sentence == "Warfarin is cleared more slowly by carriers."


def test_eval_results_hold_scored_papers_with_their_rates(card: Scorecard) -> None:
    found = records(card, RESULTS)
    assert [each["pmcid"] for each in found] == ["PMC1", "PMC3"]
    assert found[0]["precision"] == 2 / 3
    # rs1: one of two right, as the study answer 0.04 is not 0.03; rs2: one of two
    assert found[0]["question_accuracy"] == (0.5 + 0.5) / 2
    assert found[1]["f1"] == 0.0


def test_old_profile_leaves_scored_records_as_they_were(
    data: InvestigationDataset,
) -> None:
    old = InvestigationSettings(profile="clinpgx-qa", batch_questions=False)
    again = InvestigationDataset(
        settings=old,
        bench=data.bench,
        papers=data.papers,
        questions=data.questions,
        sentences={},
    )
    card = job.score(again, MemoryAnswers.of_run(job, again, answer))
    scored = [each for each in records(card, RESPONSES) if not each["skip_reason"]]
    assert records(card, RESULTS) == scored


def test_own_records_import_with_their_questions_and_score_the_same(
    card: Scorecard, tmp_path: Path
) -> None:
    path = tmp_path / RESPONSES
    path.write_text(artifact_texts(card)[RESPONSES])
    settings = InvestigationSettings()
    imported = MemoryAnswers.of_import(
        importer.read((path,), settings, model=None, form=None, replicates={})
    )
    again = job.score(load(settings), imported)
    ours, theirs = metrics(card), metrics(again)
    for name in (
        "avg_variant_recall",
        "avg_question_acc",
        "avg_paper_score",
        "pipeline.TOTAL.correct",
        "pipeline.TOTAL.links",
        "papers_skipped.extraction_failed",
        "question_type.standard.accuracy",
    ):
        assert theirs[name].value == ours[name].value
    assert "correct 3/3" in again.summary
    assert records(again, RESPONSES) == records(card, RESPONSES)


def test_stand_alone_results_import_again(
    data: InvestigationDataset, tmp_path: Path
) -> None:
    alone = InvestigationDataset(
        settings=InvestigationSettings(mode="questions"),
        bench=data.bench,
        papers=data.papers,
        questions=data.questions,
        sentences={},
    )
    card = job.score(alone, MemoryAnswers.of_run(job, alone, answer))
    files = {n: t for n, t in artifact_texts(card).items() if n.endswith(".jsonl")}
    assert list(files) == [
        "model_mcq_drug_eval_results.jsonl",
        "model_study_param_eval_results.jsonl",
    ]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    settings = InvestigationSettings()
    imported = MemoryAnswers.of_import(
        importer.read(
            tuple(tmp_path / name for name in files),
            settings,
            model=None,
            form=None,
            replicates={},
        )
    )
    again = job.score(load(settings), imported)
    path = "pipeline.TOTAL.accuracy"
    assert metrics(again)[path] == metrics(card)[path]
    assert {n: t for n, t in artifact_texts(again).items() if n in files} == files


def test_no_models_name_makes_a_file_hidden_too_long_or_a_neighbours() -> None:
    models = ["../../up", ".hidden", "-rf", "m" * 300, "m" * 299 + "n", "a/b", "a b"]
    found = slugs(models)
    assert len(set(found.values())) == len(models)
    assert all(
        re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,110}", s) for s in found.values()
    )
