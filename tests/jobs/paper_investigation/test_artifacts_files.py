"""The job's own files: names that cannot collide, lines that can be read again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from jobs.paper_investigation.artifacts import file_name
from jobs.paper_investigation.data import InvestigationDataset
from jobs.paper_investigation.importer import importer
from jobs.paper_investigation.inputs import load
from jobs.paper_investigation.job import job
from jobs.paper_investigation.settings import InvestigationSettings
from jobs.testing import MemoryAnswers, artifact_texts
from jobs.text_format import slugs
from runner.job import Task
from runner.scorecard import Metric, Scorecard
from tests.jobs.paper_investigation.small_datasets import choice, dataset, study

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
