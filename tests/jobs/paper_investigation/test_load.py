"""All inputs together: the sample, what a mode needs, limits, and what is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.paper_investigation.inputs import SAMPLE, inputs, load, with_sample
from jobs.paper_investigation.plan import plan_tasks
from jobs.paper_investigation.settings import InvestigationSettings
from runner.errors import UsageError

BENCH = SAMPLE / "variant_bench.jsonl"
PAPERS = SAMPLE / "papers"
QUESTIONS = SAMPLE / "questions"


def test_without_any_input_the_sample_is_used_and_the_caller_can_tell() -> None:
    given = InvestigationSettings(mode="extract")
    filled = with_sample(given)
    assert filled is not given
    assert (filled.bench, filled.papers, filled.questions) == (BENCH, PAPERS, QUESTIONS)
    assert filled.mode == "extract"


def test_with_any_input_nothing_is_filled_in() -> None:
    given = InvestigationSettings(bench=BENCH, papers=PAPERS, questions=QUESTIONS)
    assert with_sample(given) is given


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        (InvestigationSettings(papers=PAPERS), "investigate needs --bench"),
        (InvestigationSettings(bench=BENCH), "investigate needs --papers"),
        (
            InvestigationSettings(bench=BENCH, papers=PAPERS),
            "investigate needs --questions",
        ),
        (InvestigationSettings(mode="extract", papers=PAPERS), "extract needs --bench"),
        (
            InvestigationSettings(mode="questions", questions=QUESTIONS),
            "questions needs --papers",
        ),
        (
            InvestigationSettings(
                bench=BENCH, papers=PAPERS, mcq_drug=BENCH, pipelines=("study_param",)
            ),
            "needs --questions, or a file for one of study_param",
        ),
    ],
)
def test_a_mode_that_lacks_an_input_says_which(
    given: InvestigationSettings, needed: str
) -> None:
    with pytest.raises(UsageError, match=needed):
        with_sample(given)


@pytest.mark.parametrize(
    "given",
    [
        InvestigationSettings(mode="extract", bench=BENCH, papers=PAPERS),
        InvestigationSettings(mode="questions", questions=QUESTIONS, papers=PAPERS),
        InvestigationSettings(mode="questions", questions=QUESTIONS, closed_book=True),
    ],
)
def test_a_mode_needs_no_more_than_it_reads(given: InvestigationSettings) -> None:
    assert with_sample(given) is given


def test_inputs_are_the_files_that_are_read() -> None:
    settings = with_sample(InvestigationSettings(pipelines=("mcq_drug", "study_param")))
    assert [each.setting for each in inputs(settings)] == [
        "bench",
        "papers",
        "mcq_drug",
        "study_param",
        "sentence_bench",
    ]
    assert all(each.path.exists() for each in inputs(settings))


def test_an_imported_run_may_name_no_input() -> None:
    dataset = load(InvestigationSettings())
    assert (dataset.bench, dataset.questions, dataset.findings) == ((), {}, ())


def test_a_limit_keeps_the_order_of_papers_and_changes_no_task() -> None:
    whole = list(plan_tasks(load(with_sample(InvestigationSettings()))))
    cut = list(plan_tasks(load(with_sample(InvestigationSettings(limit=3)))))
    assert len(cut) == 3
    assert cut == [spec for spec in whole if spec in cut]


def test_in_mode_questions_a_limit_is_a_number_of_questions() -> None:
    whole = list(plan_tasks(load(with_sample(InvestigationSettings(mode="questions")))))
    cut = list(
        plan_tasks(load(with_sample(InvestigationSettings(mode="questions", limit=6))))
    )
    assert len(cut) == 6
    assert cut == [spec for spec in whole if spec in cut]
    pipelines = {spec.key.partition("/")[2].partition(":")[0] for spec in cut}
    assert pipelines == {"mcq_drug", "mcq_phenotype", "mcq_variant", "study_param"}


def test_sentences_outside_the_sentence_bench_are_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "sentences.jsonl"
    path.write_text(
        '{"pmcid": "PMC0000009", "variant": "cyp3a5 *3", "sentences": ["Other."]}',
        encoding="utf-8",
    )
    settings = with_sample(InvestigationSettings()).model_copy(
        update={"sentence_bench": path}
    )
    found = {
        finding.where: finding
        for finding in load(settings).findings
        if finding.code == "sentence_not_in_bench"
    }
    # everything but the modified questions, which change a fact on purpose
    assert {where: finding.n for where, finding in found.items()} == {
        "mcq_variant": 23,
        "mcq_drug": 19,
        "mcq_phenotype": 16,
        "study_param": 29,
    }


def test_a_cut_of_long_papers_is_recorded() -> None:
    codes = {
        f.code: f
        for f in load(with_sample(InvestigationSettings(max_chars=6_400))).findings
    }
    assert codes["papers_cut"].n == 3
    whole = load(with_sample(InvestigationSettings(max_chars=20_000))).findings
    assert "papers_cut" not in {finding.code for finding in whole}


def test_the_sentence_bench_is_looked_up_by_normalised_variants() -> None:
    dataset = load(with_sample(InvestigationSettings()))
    assert dataset.sentences["PMC0000003", "hla-b*15:02"]
    assert "sentence_not_in_bench" not in {f.code for f in dataset.findings}
