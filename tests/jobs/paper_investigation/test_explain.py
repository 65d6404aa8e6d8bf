"""explain: what a page says of truth, lists, prompts, replies and verdicts."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from jobs.kit.testing import MemoryAnswers
from jobs.paper_investigation.data import InvestigationDataset
from jobs.paper_investigation.importer import importer
from jobs.paper_investigation.inputs import SAMPLE, load, with_sample
from jobs.paper_investigation.job import job
from jobs.paper_investigation.prompts import batch_context
from jobs.paper_investigation.settings import InvestigationSettings
from runner.errors import UsageError
from runner.job import Answer, Task
from runner.messages import Reply
from tests.jobs.paper_investigation.small_datasets import choice, dataset, study


@pytest.fixture(scope="module")
def sample() -> InvestigationDataset:
    return load(with_sample(InvestigationSettings()))


@pytest.fixture(scope="module")
def run(sample: InvestigationDataset) -> MemoryAnswers:
    """The sample's two models, as an import leaves them."""
    files = tuple(SAMPLE / "replies" / f"{m}.jsonl" for m in ("larch-70b", "moss-3b"))
    found = importer.read(files, sample.settings, model=None, form=None, replicates={})
    return MemoryAnswers.of_import(found)


def page(data: InvestigationDataset, answers: MemoryAnswers | None, *items: str) -> str:
    return job.explain(data, answers, items)


def test_before_any_run_truth_and_questions_are_shown(
    sample: InvestigationDataset,
) -> None:
    shown = page(sample, None, "PMC0000001", "CYP2C9 *2")
    assert "truth      4 variants, 6 as listed (fold case, split links)" in shown
    assert "  CYP2C9*2   star_allele   5 questions  in the text\n" in shown
    assert "annotated together: CYP2C9*2, CYP2C9*3" in shown
    assert shown.count("  prompt\n") == 5
    assert "  expected   p<0.001, sig=yes" in shown
    assert "mcq_variant:2 " not in shown
    assert "reply" not in shown


def test_a_page_says_how_each_variant_matched(
    sample: InvestigationDataset, run: MemoryAnswers
) -> None:
    shown = page(sample, run, "PMC0000003", "HLA-A*31:01")
    assert "HLA-B*15:02: by folded signs, from 'HLA‑B*15:02'" in shown
    assert "HLA-A*31:01: by letter case, from 'hla-a*31:01'" in shown
    assert "besides    HLA-B*15:21 (in the text)" in shown
    assert "extraction could not be read: empty_reply" in shown
    invented = page(sample, run, "PMC0000008")
    assert "rs12208358 (not in the text)" in invented
    assert "no question matches the item" in invented


def test_a_question_shows_reply_rule_and_both_verdicts(
    sample: InvestigationDataset, run: MemoryAnswers
) -> None:
    shown = page(sample, run, "PMC0000001/mcq_variant:2")
    larch, moss = shown.split("  sample/larch-70b, replicate 1\n    reply")[1].split(
        "  sample/moss-3b, replicate 1\n"
    )
    assert "robust     right: read c by rule whole" in larch
    assert "clinpgx-qa right: read c by rule whole" in larch
    assert "      | rs9923231\n    counts for rs9923231" in moss
    assert "robust     right: read c by rule option_text" in moss
    assert "clinpgx-qa wrong: could not be read, no_letter" in moss


def test_a_wrong_study_answer_says_what_is_off(
    sample: InvestigationDataset, run: MemoryAnswers
) -> None:
    shown = page(sample, run, "PMC0000002", "study_param:10")
    assert "expected   p=0.047, sig=yes" in shown
    assert "robust     wrong (p-value off): read p<0.047, sig=yes" in shown
    assert "clinpgx-qa right: read p<0.047, sig=yes" in shown


def test_what_was_not_asked_or_not_answered_is_said(
    sample: InvestigationDataset, run: MemoryAnswers
) -> None:
    missed = page(sample, run, "PMC0000002", "rs662")
    assert "not sent: no variant that it names was recalled" in missed
    failed = page(sample, run, "PMC0000003", "study_param:17")
    assert "no reply: Overloaded (task " in failed


def test_a_joined_question_names_all_it_counts_for(
    sample: InvestigationDataset, run: MemoryAnswers
) -> None:
    shown = page(sample, run, "PMC0000001", "mcq_variant:1")
    assert "counts for CYP2C9*2, CYP2C9*3" in shown


def test_several_papers_make_several_pages(sample: InvestigationDataset) -> None:
    shown = page(sample, None, "PMC0000001", "study_param:1", "PMC0000006", "rs4149056")
    assert shown.index("PMC0000001") < shown.index("PMC0000006")
    assert "study_param:32" in shown


@pytest.mark.parametrize(
    ("items", "complaint"),
    [
        (("rs1",), "There is no paper 'rs1' here"),
        (("PMC1",), "There is no paper 'PMC1' here"),
        (("PMC0000001", "rs1"), "PMC0000001 has no variant and no question 'rs1'"),
    ],
)
def test_a_word_that_names_nothing_is_an_error(
    sample: InvestigationDataset, items: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        page(sample, None, *items)


def test_an_imported_record_is_explained_without_any_data() -> None:
    path = SAMPLE / "records" / "alder-7b_paper_investigation_responses.jsonl"
    settings = InvestigationSettings(profile="clinpgx-qa")
    found = importer.read((path,), settings, model=None, form=None, replicates={})
    shown = page(load(settings), MemoryAnswers.of_import(found), "PMC0000006")
    assert "truth      2 variants, 2 as listed (keep case, whole links)" in shown
    assert "(the imported file does not hold it)" in shown
    assert "expected   b" in shown
    assert "clinpgx-qa right" in shown


def answers(*families: Iterable[Answer]) -> MemoryAnswers:
    return MemoryAnswers.of(tuple(family) for family in families)


def answer(stage: str, key: str, text: str, context: str | None = None) -> Answer:
    task = Task(number=1, stage=stage, key=key, model="m", replicate=1, context=context)
    return Answer(task=task, reply=Reply(text=text))


def test_a_batch_shows_its_reply_for_each_question() -> None:
    questions = (choice("PMC1", "rs1", "1"), study("PMC1", "rs1", "2"))
    data = dataset({"PMC1": ["rs1"]}, questions, batch_questions=True)
    asked = answer(
        "batch",
        "PMC1/b/mcq_drug:1",
        '1. b\n2. {"p_value": "0.03", "significance": "no"}',
        batch_context(questions),
    )
    run = answers((answer("extract", "PMC1", '["rs1"]'), asked))
    shown = page(data, run, "PMC1")
    assert shown.count("one of 2 questions") == 2
    assert "robust     right: read b by rule whole" in shown
    assert "robust     wrong (significance off): read p=0.03, sig=no" in shown


def test_in_mode_questions_each_question_stands_alone() -> None:
    data = dataset({}, [choice("PMC1", "rs1", "1")], {"PMC1": "x"}, mode="questions")
    run = answers((answer("question", "PMC1/mcq_drug:1", "c"),))
    shown = page(data, run, "PMC1")
    assert "extraction" not in shown
    assert "counts for" not in shown
    assert "robust     wrong: read c by rule whole" in shown


def test_a_models_text_is_set_off_line_by_line() -> None:
    data = dataset({"PMC1": ["rs1"]})
    run = answers((answer("extract", "PMC1", '["rs1"]\ntruth      9 variants'),))
    shown = page(data, run, "PMC1")
    assert "      | truth      9 variants" in shown
    assert "\ntruth      9" not in shown
