"""Metrics of declared measures come out of an encoded frame as a scoring has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.evaluation import SourceFrame, SourceMeasures
from jobs.kit.measures import RateMeasure
from jobs.kit.metrics import Ratio
from jobs.kit.question_results import AnsweredRows, QuestionFrame, evaluation
from jobs.kit.testing import MemoryAnswers
from jobs.replies.score import ToolScores
from runner.bundle.commitments import RedactionSecret, SaltedCommitter
from runner.bundle.frame import decoded_frame, encoded_frame
from runner.bundle.redaction import Redactor
from runner.evaluation import STAYS, Evaluation
from runner.registry import load_job
from runner.scorecard import Metric, Scorecard
from tests.jobs.kit.sixth_job import Treatments
from tests.jobs.kit.test_questions import ROWS, settings
from tests.processes import siftlog
from tests.reference import DOCS

EXAMPLE = DOCS / "example"

Metrics = Mapping[str, tuple[Metric, ...]]


def from_redacted(of: Evaluation[Any], frame: object) -> Metrics:
    """The metrics that a reader of a redacted bundle computes."""
    secret = RedactionSecret(run="r", scoring=1, key=bytes(32))
    redactor = Redactor(
        commit=SaltedCommitter(secret, b""), part=lambda _: b"", choices=frozenset()
    )
    content = encoded_frame(frame, redactor, set())
    metrics = of.metrics(decoded_frame(content, of.frame))
    return {model: tuple(listed) for model, listed in metrics.items()}


def scored(tmp_path: Path, rows: str, *, has_truth: bool = True) -> Scorecard:
    job, path = Treatments(), tmp_path / "rows.csv"
    path.write_text(rows if has_truth else rows.replace("drug", "other"))
    dataset = job.load(settings(path))
    replies = {"a1/1": "warfarin", "a1/2": "x", "a2/1": "aspirin", "b1/1": "7 drugs"}
    answers = MemoryAnswers.of_run(
        job,
        dataset,
        lambda task: replies.get(f"{task.key}/{task.replicate}"),
        replicates=2,
    )
    return job.score(dataset, answers)


@pytest.mark.parametrize("has_truth", [True, False])
def test_a_question_job_and_its_own_measures_need_no_text(
    tmp_path: Path, *, has_truth: bool
) -> None:
    card = scored(tmp_path, ROWS, has_truth=has_truth)
    assert card.frame is not None
    assert from_redacted(evaluation(Treatments()), card.frame()) == card.models
    (listed,) = card.models.values()
    paths = {metric.path for metric in listed}
    assert ("accuracy~majority" in paths) is has_truth
    assert not any("warfarin" in metric.definition for metric in listed)


shares = st.sampled_from([0.0, 1 / 3, 0.5, 1.0, float("nan")])


@given(rows=st.lists(st.tuples(shares, shares), min_size=1), judged=st.integers(0, 9))
def test_scores_of_other_tools_are_drawn_again_to_the_last_digit(
    rows: list[tuple[float, float]], judged: int
) -> None:
    right, score = (np.array(column) for column in zip(*rows, strict=True))
    frame = QuestionFrame(
        rows={"m": AnsweredRows(right=right, replies=len(rows), unread=0)},
        document=np.arange(len(rows)),
        judged=judged,
        commonest=judged // 2,
        further=SourceFrame(
            models={"m": ToolScores(by_name={"f1": score})},
            # the order of the names is not that of the rows
            documents=tuple(
                f"item {(row * 7) % 11:02d}-{row}" for row in range(len(rows))
            ),
            cluster="row",
            boot_b=20,
        ),
    )
    of = load_job("replies").evaluation
    assert of is not None
    expected = {model: tuple(listed) for model, listed in of.metrics(frame).items()}
    assert from_redacted(of, frame) == expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Doses:
    right: tuple[int, ...]
    judged: tuple[int, ...]
    unit: str = field(metadata=STAYS)


def test_a_job_of_another_form_declares_source_and_measures() -> None:
    doses = SourceMeasures(
        source=Doses,
        measures={
            "accuracy": RateMeasure(
                "Accuracy",
                "Share of doses that were answered right",
                "higher",
                of=lambda of: Ratio(of.right, of.judged),
                definition="accuracy@1(right / judged)",
            )
        },
    )
    frame = SourceFrame(
        models={"atlas": Doses(right=(1, 0, 2), judged=(2, 1, 2), unit="mg")},
        documents=("paper z", "paper a", "paper m"),
        cluster="paper",
        boot_b=50,
    )
    (accuracy,) = doses.evaluation.metrics(frame)["atlas"]
    assert (accuracy.value, accuracy.n, accuracy.name) == (0.6, 5, "Accuracy")
    assert accuracy.lo is not None
    assert from_redacted(doses.evaluation, frame) == {"atlas": (accuracy,)}


def test_the_file_of_a_job_is_named_to_compute_its_metrics_again(
    tmp_path: Path,
) -> None:
    for name in ("participants.py", "near.py", "trials.jsonl"):
        (tmp_path / name).write_text((EXAMPLE / name).read_text())
    run = ("run", "near.py", "--rows", "trials.jsonl", "--run-id", "r", "--no-report")
    siftlog(*run, cwd=tmp_path)
    siftlog("bundle", "r", "--redact", "--out", "r.zip", cwd=tmp_path)
    without = siftlog("verify", "r.zip", cwd=tmp_path).stdout
    assert "near is a job of a Python file: name it with --job FILE.py" in without
    named = siftlog("verify", "r.zip", "--job", "near.py", cwd=tmp_path).stdout
    assert "4 of 4 metrics of scoring 1 came out the same from numbers" in named
    other = ("verify", "r.zip", "--job", "participants.py")
    refused = siftlog(*other, cwd=tmp_path, check=False)
    assert refused.returncode == 2
    assert "has the job participants, and the bundle is of near" in refused.stderr
