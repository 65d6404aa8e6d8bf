"""Who is asked in which role, and what people are told of it."""

from __future__ import annotations

import pytest

from runner.errors import UsageError
from runner.imported_answers import ImportSummary, census
from runner.job import Answer, ImportedAnswer, Job, Task, TaskSpec
from runner.options import BASELINE, options_from
from runner.plan import Roles, follow_ups
from runner.roles import assigned, fixed, remarks
from runner.workload import Workload
from store.task import PlannedTask, TaskRow
from tests.runner.rows import task_row
from tests.runner.toy_jobs import PanelJob, ToyJob

ROLES = Roles(
    models={
        "subject": ("a", "b"),
        "judge": ("j",),
        "embed": ("e",),
        "rerank": ("r",),
    },
    replicates=2,
)


def _work(job: Job) -> Workload:
    return Workload(
        job=job, settings=job.Settings(), dataset=None, inputs=[], code_sha256="0"
    )


class ShortPanelJob(PanelJob):
    """Its plan asks no reranker and no judge."""

    def reaches(self, dataset: object) -> frozenset[str]:
        assert dataset is None
        return frozenset({"answer", "embed"})


def _row(number: int, stage: str, model: str) -> TaskRow:
    planned = PlannedTask(
        stage=stage, key="i0", model=model, replicate=1, root=1, group="i0"
    )
    return task_row(number, planned, completed=True)


def _following(
    leader: TaskRow, spec: TaskSpec, family: list[TaskRow]
) -> list[PlannedTask]:
    answer = Answer(
        task=Task(
            number=leader.task,
            stage=leader.stage,
            key="i0",
            model=leader.model,
            replicate=2,
        )
    )
    return follow_ups(PanelJob(), [spec], (answer,), ROLES, root=1, existing=family)


def test_only_the_roles_that_a_job_has_get_models_and_subjects_always() -> None:
    options = options_from({"model": ["a", "b"], "judge_model": "j", "replicates": 2})
    assert assigned(ToyJob(), options).models == {"subject": ("a", "b")}
    assert assigned(PanelJob(), options) == Roles(
        models={
            "subject": ("a", "b"),
            "judge": ("j",),
            "embed": (BASELINE,),
            "rerank": (BASELINE,),
        },
        replicates=2,
    )


def test_a_model_of_several_roles_is_one_model_with_all_their_stages() -> None:
    options = options_from({"model": ["a"], "judge_model": "a", "embed_model": "a"})
    roles = assigned(PanelJob(), options)
    assert roles.all_models == ("a", BASELINE)
    assert roles.stages_of(PanelJob(), "a") == ["embed", "answer", "judge", "sum"]
    assert roles.stages_of(PanelJob(), BASELINE) == ["rerank"]


def test_a_runs_first_event_gives_back_the_options_that_made_it() -> None:
    options = options_from(
        {"model": ["a", "b"], "judge_model": "j", "embed_model": "e"}
    )
    models = assigned(PanelJob(), options).models
    again = options_from(fixed({role: list(of) for role, of in models.items()}))
    assert assigned(PanelJob(), again) == assigned(PanelJob(), options)


def test_people_are_told_which_stages_ask_the_baseline_for_want_of_a_name() -> None:
    options = options_from({"model": ["a"], "judge_model": "j"})
    assert remarks(_work(PanelJob()), options) == [
        (
            "Models: subject a; judge j; embed baseline/lexical; "
            "rerank baseline/lexical."
        ),
        (
            "embed: no embed model was named, so baseline/lexical is "
            "used; name one with --embed-model."
        ),
        (
            "rerank: no rerank model was named, so baseline/lexical is "
            "used; name one with --rerank-model."
        ),
    ]


def test_stages_that_the_plan_cannot_reach_are_not_spoken_of() -> None:
    options = options_from({"model": ["a"], "judge_model": "j"})
    assert remarks(_work(ShortPanelJob()), options) == [
        "Models: subject a; embed baseline/lexical.",
        "--judge-model: no stage of this plan uses it.",
        (
            "embed: no embed model was named, so baseline/lexical is "
            "used; name one with --embed-model."
        ),
    ]


def test_a_baseline_that_was_named_needs_no_remark() -> None:
    names = dict.fromkeys(("judge_model", "embed_model", "rerank_model"), BASELINE)
    said = remarks(_work(PanelJob()), options_from(names))
    assert [each for each in said if "--" in each] == []


def test_a_model_that_no_stage_asks_for_is_told_to_be_of_no_use() -> None:
    options = options_from({"judge_model": "j"})
    assert remarks(_work(ToyJob()), options) == [
        "--judge-model: no stage of toy uses it."
    ]


def test_a_model_may_have_options_of_its_own_in_any_role_but_must_be_asked() -> None:
    own = {"models": {"j": {"rpm": 60}}}
    assert options_from({"judge_model": "j", **own}).of("j").rpm == 60
    with pytest.raises(UsageError, match="does not use"):
        options_from(own)


def test_subjects_that_follow_an_embedding_are_all_asked() -> None:
    root = _row(1, "embed", "e")
    spec = TaskSpec(stage="answer", key="i0")
    found = _following(root, spec, [root])
    assert [(task.model, task.replicate) for task in found] == [("a", 2), ("b", 2)]


def test_a_judge_follows_each_subject() -> None:
    root, answer = _row(1, "embed", "e"), _row(2, "answer", "b")
    found = _following(answer, TaskSpec(stage="judge", key="i0/b"), [root, answer])
    assert [task.model for task in found] == ["j"]


def test_what_follows_a_verdict_on_a_subject_goes_to_that_subject() -> None:
    root, verdict = _row(1, "answer", "b"), _row(2, "judge", "j")
    found = _following(verdict, TaskSpec(stage="answer", key="i1"), [root, verdict])
    assert [task.model for task in found] == ["b"]


def test_a_judge_that_answered_elsewhere_is_no_subject() -> None:
    answers = [
        ImportedAnswer(
            spec=TaskSpec(stage=stage, key="i0"), model=model, replicate=1, text="yes"
        )
        for stage, model in (("answer", "b"), ("judge", "j"), ("answer", "a"))
    ]
    assert census(PanelJob(), answers) == ImportSummary(
        models=("b", "a"), replicates=1, answers=3
    )
