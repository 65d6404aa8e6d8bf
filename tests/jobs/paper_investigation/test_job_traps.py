"""Traps of the method that only a whole run can fall into: its command line and log.

The others stand beside the modules that avoid them.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from jobs.kit.testing import MemoryAnswers, artifact_texts, table_rows
from jobs.paper_investigation.baseline import baseline
from jobs.paper_investigation.data import InvestigationDataset
from jobs.paper_investigation.inputs import load, with_sample
from jobs.paper_investigation.job import job
from jobs.paper_investigation.prompts import request
from jobs.paper_investigation.settings import InvestigationSettings
from runner.messages import Reply
from tests.answering import answering
from tests.commands import siftlog
from tests.jobs.paper_investigation.small_datasets import choice, dataset
from tests.jobs.paper_investigation.small_run import (
    ENGINE,
    JOB,
    inputs,
    is_about,
    listing,
    question,
    scorecard,
    values,
)
from tests.processes import start, status

# what was paid for


def test_a_joined_question_is_paid_once_over_a_kill_and_a_resume(
    tmp_path: Path,
) -> None:
    data = inputs(
        tmp_path,
        {"PMC1": ["rs1", "rs2"]},
        [question("joined", "PMC1", "rs1, rs2"), question("own", "PMC1", "rs1")],
    )
    reached, killed = threading.Event(), threading.Event()

    def answer(prompt: str) -> str | int:
        if is_about("own", prompt):
            reached.set()
            killed.wait(100)
        return listing("rs1", "rs2")(prompt)

    with answering(answer) as endpoint:
        url = f"--base-url={endpoint.url}"
        process = start("run", JOB, *data, *ENGINE, url, cwd=tmp_path)
        assert reached.wait(100)
        process.kill()
        process.wait(20)
        killed.set()
        siftlog("resume", "r", cwd=tmp_path)
        joined = [is_about("joined", prompt) for prompt in endpoint.asked]
        own = [is_about("own", prompt) for prompt in endpoint.asked]
    assert (len(joined), sum(joined), sum(own)) == (4, 1, 2)
    assert status(tmp_path, "r")["attempts"]["unknown"] == 1
    found = values(scorecard(tmp_path, 1))
    assert found["pipeline.TOTAL.questions"] == 2
    assert found["pipeline.TOTAL.links"] == 3


def test_a_variant_that_only_a_better_parser_recalls_costs_no_call_for_what_it_shares(
    tmp_path: Path,
) -> None:
    data = inputs(
        tmp_path,
        {"PMC1": ["rs1", "rs2"]},
        [question("joined", "PMC1", "rs1, rs2"), question("own", "PMC1", "rs2")],
    )

    def answer(prompt: str) -> str | int:
        return "b" if "<question-" in prompt else '["rs1", {"variant": "rs2"}]'

    with answering(answer) as endpoint:
        url = f"--base-url={endpoint.url}"
        old = "--list-rules=clinpgx-qa"
        siftlog("run", JOB, *data, *ENGINE, url, old, cwd=tmp_path)
        assert len(endpoint.asked) == 2
        siftlog("score", "r", "--list-rules=robust", cwd=tmp_path)
        assert len(endpoint.asked) == 2
        siftlog("resume", "r", "--list-rules=robust", cwd=tmp_path)
        assert len(endpoint.asked) == 3
        assert is_about("own", endpoint.asked[-1])
    links = [values(scorecard(tmp_path, n))["pipeline.TOTAL.links"] for n in (1, 2, 3)]
    assert links == [1, 2, 3]
    assert [scorecard(tmp_path, n)["missing"] for n in (1, 2, 3)] == [0, 1, 0]


def test_after_a_retry_the_scorecard_is_that_of_a_run_that_never_failed(
    tmp_path: Path,
) -> None:
    rows = [question(name, "PMC1", "rs1") for name in ("one", "two")]
    data = inputs(tmp_path, {"PMC1": ["rs1"]}, rows)
    is_down = True

    def answer(prompt: str) -> str | int:
        if is_about("two", prompt):
            return 400 if is_down else "a"
        return listing("rs1")(prompt)

    with answering(answer) as endpoint:
        url = f"--base-url={endpoint.url}"
        failed = siftlog("run", JOB, *data, *ENGINE, url, cwd=tmp_path, check=False)
        assert failed.returncode == 3
        found = values(scorecard(tmp_path, 1))
        assert found["pipeline.TOTAL.missing"] == 1
        assert found["pipeline.TOTAL.accuracy"] == found["avg_paper_score"] == 1.0
        is_down = False
        siftlog("retry", "r", cwd=tmp_path)
        siftlog("resume", "r", cwd=tmp_path)
        calm = ("--run-id=calm", *ENGINE[1:], url)
        siftlog("run", JOB, *data, *calm, cwd=tmp_path)
    assert values(scorecard(tmp_path, 2))["avg_paper_score"] == 0.5
    assert scorecard(tmp_path, 2) == scorecard(tmp_path, 1, "calm")


def test_a_paper_that_fails_in_one_replicate_is_scored_by_the_other(
    tmp_path: Path,
) -> None:
    bench = {"PMC1": ["rs1"], "PMC2": ["rs1"]}
    rows = [question(f"of-{pmcid}", pmcid, "rs1") for pmcid in bench]
    data = inputs(tmp_path, bench, rows)
    first: list[str] = []
    refused: list[str] = []

    def answer(prompt: str) -> str | int:
        # the second of two replicates: before a model has answered, a refusal may be
        # one that all tasks share, and is not final
        if prompt in first and not refused:
            refused.append(prompt)
            return 400
        if 'id="PMC1"' in prompt and not first:
            first.append(prompt)
        return listing("rs1")(prompt)

    with answering(answer) as endpoint:
        words = (*ENGINE, "--replicates=2", f"--base-url={endpoint.url}")
        done = siftlog("run", JOB, *data, *words, cwd=tmp_path, check=False)
    assert done.returncode == 3
    found = values(scorecard(tmp_path, 1))
    scored = [found[f"replicate.{n}.papers_scored"] for n in (1, 2)]
    assert sorted(scored) == [1, 2]
    assert found["papers_scored"] == 2
    assert found["avg_paper_score"] == 1.0
    assert found["pipeline.TOTAL.missing"] == 0


def test_batched_and_single_calls_of_the_same_answers_give_the_same_scorecard(
    tmp_path: Path,
) -> None:
    text = "--structured=off"  # the other profile's rules read no schema's form
    siftlog("run", JOB, text, "--run-id=single", cwd=tmp_path)
    batched = ("--run-id=batched", "--batch-questions=true", "--batch-size=7")
    siftlog("run", JOB, text, *batched, cwd=tmp_path)
    single, batch = (scorecard(tmp_path, 1, run) for run in ("single", "batched"))
    assert status(tmp_path, "batched")["tasks"] != status(tmp_path, "single")["tasks"]
    for card in (single, batch):
        del card["settings"]
        (own,) = card["models"].values()
        for path in [name for name in own["metrics"] if name.startswith("replies.")]:
            del own["metrics"][path]
    assert batch == single


def test_a_run_under_the_old_profile_asks_in_a_form_that_its_rules_can_read() -> None:
    data = load(with_sample(InvestigationSettings(profile="clinpgx-qa")))
    answers = MemoryAnswers.of_run(
        job, data, lambda task: baseline(request(data, task))
    )
    (metrics,) = job.score(data, answers).models.values()
    found = {metric.path: metric.value for metric in metrics}
    assert found["pipeline.TOTAL.questions"] == 66
    assert found["pipeline.TOTAL.unparsed"] == 0


# what was not scored


def alone(reason: str) -> tuple[InvestigationDataset, Reply | str | None]:
    """A run in which one paper is skipped for one reason, and what the model says."""
    bench = {"PMC1": ["rs1"]}
    if reason == "no_paper_text":
        return dataset(bench, texts={}), None
    if reason == "paper_too_long":
        return dataset(bench, context_tokens=2_049), None
    if reason == "extraction_failed":
        return dataset(bench), None
    if reason == "questions_failed":
        return dataset(bench, [choice("PMC1", "rs1", "1")]), '["rs1"]'
    return dataset(bench), Reply(text='["rs1"', finish_reason="length")


@pytest.mark.parametrize(
    "reason",
    [
        "no_paper_text",
        "paper_too_long",
        "extraction_failed",
        "extraction_unparsed",
        "questions_failed",
    ],
)
def test_a_run_that_skips_every_paper_for_one_reason_says_so_and_nothing_else(
    reason: str,
) -> None:
    data, reply = alone(reason)
    answers = MemoryAnswers.of_run(
        job, data, lambda task: reply if task.stage == "extract" else None
    )
    card = job.score(data, answers)
    (metrics,) = card.models.values()
    found = {metric.path: metric.value for metric in metrics}
    skips = {path for path in found if path.startswith("papers_skipped.")}
    assert skips == {f"papers_skipped.{reason}"}
    for path in ("avg_variant_recall", "avg_question_acc", "avg_paper_score"):
        assert found[path] is None
    (row,) = (r for r in table_rows(card, "skipped") if r["level"] == "paper")
    assert row["reason"] == reason
    assert row["detail"] == ("truncated" if reason == "extraction_unparsed" else None)
    text = artifact_texts(card)["model_paper_investigation_summary.txt"]
    assert "Avg Paper Score:      n/a" in text
    assert "n/a" in card.summary
