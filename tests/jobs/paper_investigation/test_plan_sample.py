"""The shipped sample: which row meets which branch, and that it agrees with itself.

The tables below are the sample's index: every branch of the job that data can reach,
with the row that reaches it.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from jobs.paper_investigation import plan
from jobs.paper_investigation.baseline import baseline
from jobs.paper_investigation.bench import FILES
from jobs.paper_investigation.data import InvestigationDataset, PaperQuestion
from jobs.paper_investigation.importer import importer
from jobs.paper_investigation.inputs import SAMPLE, load, with_sample
from jobs.paper_investigation.parsing import VariantList
from jobs.paper_investigation.plan import (
    follow_up,
    plan_tasks,
    read_batch,
    read_extraction,
)
from jobs.paper_investigation.prompts import request
from jobs.paper_investigation.rule_sets import (
    p_value_right,
    parse_letter,
    parse_list,
    parse_study,
)
from jobs.paper_investigation.settings import InvestigationSettings
from jobs.paper_investigation.variants import variant_class
from runner.job import Answer, Task
from runner.messages import ParseFailure, Reply

LARCH, MOSS = "larch-70b", "moss-3b"

LETTER_RULES = {
    "whole": (LARCH, "mcq_variant:2"),
    "json.whole": (LARCH, "mcq_variant:3"),
    "last_line": (LARCH, "mcq_drug:2"),
    "stated": (LARCH, "mcq_variant:5"),
    "first_line": (MOSS, "mcq_variant:1"),
    "lead": (LARCH, "mcq_variant:1"),
    "only_letter": (MOSS, "mcq_variant:3"),
    "option_text": (MOSS, "mcq_variant:2"),
    "no_letter": (MOSS, "mcq_drug:2"),
    "empty_reply": (MOSS, "mcq_phenotype:1"),
    "truncated": (LARCH, "mcq_phenotype:2"),
}
STUDY_FAILURES = {
    "no_object": (MOSS, "study_param:3"),
    "truncated": (LARCH, "study_param:9"),
}
LIST_FAILURES = {
    "empty_reply": (MOSS, "PMC0000003"),
    "no_list": (MOSS, "PMC0000004"),
    "no_strings": (MOSS, "PMC0000007"),
    "truncated": (LARCH, "PMC0000007"),
}
P_VALUES = [
    # expected, answered, right, where
    ("not found", "not found", True, (LARCH, "study_param:2")),
    ("not found", "= 0.039", False, (LARCH, "study_param:14")),
    ("NS", "n.s.", True, (LARCH, "study_param:12")),
    ("= 0.031", "0,031", True, (LARCH, "study_param:4")),
    ("= 5.5 x 10^-6", "5.5e-06", True, (LARCH, "study_param:16")),
    ("= 0.008", "p = 0.010", False, (LARCH, "study_param:5")),
    ("= 0.047", "< 0.047", False, (MOSS, "study_param:10")),
    ("< 0.001", "< 0.00096", True, (LARCH, "study_param:1")),
    ("< 0.001", "0.0004", True, (MOSS, "study_param:1")),
    ("< 0.001", "= 0.01", False, (LARCH, "study_param:21")),
    ("<= 0.001", "≤ 0.001", True, (LARCH, "study_param:34")),
    ("> 0.05", "> 0.05", True, (LARCH, "study_param:20")),
]
ERRORS = {"mcq_phenotype:5": "Timeout", "study_param:17": "Overloaded"}

JOINED = {"mcq_variant:1": 2, "mcq_variant:6": 4}
MODIFIED = {
    "modified_variant": "study_param:6",
    "modified_drug": "study_param:2",
    "modified_phenotype": "study_param:9",
}
CLASSES = {
    "rsID": ("PMC0000001", "rs9923231"),
    "star_allele": ("PMC0000001", "cyp2c9*2"),
    "HLA": ("PMC0000003", "hla-b*15:02"),
    "phenotype": ("PMC0000005", "nat2 slow acetylator"),
    "other": ("PMC0000005", "gstm1 null"),
}


@pytest.fixture(scope="module")
def sample() -> InvestigationDataset:
    return load(with_sample(InvestigationSettings()))


@pytest.fixture(scope="module")
def replies() -> dict[tuple[str, str], dict[str, Any]]:
    """Lines of the reply files by model and item."""
    found = {}
    for path in sorted((SAMPLE / "replies").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            item = row.get("pmcid") or f"{row['source_pipeline']}:{row['question_id']}"
            found[path.stem, item] = row
    return found


def reply(row: dict[str, Any]) -> Reply:
    return Reply(text=row["response"], finish_reason=row.get("finish_reason", "stop"))


def by_key(data: InvestigationDataset) -> dict[str, PaperQuestion]:
    return {q.key: q for group in data.questions.values() for q in group}


@pytest.mark.parametrize(("rule", "where"), LETTER_RULES.items())
def test_a_letter_reply_meets_each_rule(
    sample: InvestigationDataset,
    replies: dict[tuple[str, str], dict[str, Any]],
    rule: str,
    where: tuple[str, str],
) -> None:
    options = by_key(sample)[where[1]].options
    read = parse_letter(reply(replies[where]), "robust", options)
    assert rule == (read.reason if isinstance(read, ParseFailure) else read.rule)


@pytest.mark.parametrize(("reason", "where"), LIST_FAILURES.items())
def test_an_extraction_meets_each_failure(
    replies: dict[tuple[str, str], dict[str, Any]], reason: str, where: tuple[str, str]
) -> None:
    read = parse_list(reply(replies[where]), "robust")
    assert read == ParseFailure(reason=reason)


@pytest.mark.parametrize(("reason", "where"), STUDY_FAILURES.items())
def test_a_study_reply_meets_each_failure(
    replies: dict[tuple[str, str], dict[str, Any]], reason: str, where: tuple[str, str]
) -> None:
    read = parse_study(reply(replies[where]), "robust")
    assert read == ParseFailure(reason=reason)


@pytest.mark.parametrize("row", P_VALUES)
def test_a_p_value_meets_each_row_of_the_rules(
    sample: InvestigationDataset,
    replies: dict[tuple[str, str], dict[str, Any]],
    row: tuple[str, str, bool, tuple[str, str]],
) -> None:
    expected, answered, right, where = row
    assert by_key(sample)[where[1]].expected_p_value == expected
    read = parse_study(reply(replies[where]), "robust")
    assert not isinstance(read, ParseFailure)
    assert read.p_value == answered
    assert p_value_right(expected, read.p_value, "robust", 0.05) is right


def test_replies_were_cut_refused_and_never_came(
    replies: dict[tuple[str, str], dict[str, Any]],
) -> None:
    assert replies[LARCH, "PMC0000007"]["finish_reason"] == "length"
    assert replies[MOSS, "PMC0000003"]["finish_reason"] == "content_filter"
    errors = {key[1]: row["error"] for key, row in replies.items() if "error" in row}
    assert errors == ERRORS


@pytest.mark.parametrize(("name", "where"), CLASSES.items())
def test_every_class_of_variant_is_among_the_truth(
    sample: InvestigationDataset, name: str, where: tuple[str, str]
) -> None:
    pmcid, variant = where
    assert variant in plan.truth_variants(sample, pmcid)
    assert variant_class(variant) == name


def test_the_bench_has_ten_papers_one_without_text_and_one_empty(
    sample: InvestigationDataset,
) -> None:
    assert len(sample.bench) == 10
    absent = [p.pmcid for p in sample.bench if p.pmcid not in sample.papers]
    assert absent == ["PMC0000009", "PMC0000010"]
    assert not (SAMPLE / "papers" / "PMC0000009.md").exists()
    assert (SAMPLE / "papers" / "PMC0000010.md").read_bytes() == b""


def test_truth_is_repeated_and_spelt_in_several_ways(
    sample: InvestigationDataset,
) -> None:
    repeated, starred = sample.paper("PMC0000001"), sample.paper("PMC0000002")
    assert repeated is not None
    assert starred is not None
    assert repeated.variants.count("CYP2C9*3") == 2
    assert {"rs9923231", "RS9923231"} <= set(repeated.variants)
    assert len(plan.truth_variants(sample, "PMC0000001")) == 4
    assert {"CYP2C19*17", "CYP2C19∗17"} <= set(starred.variants)
    assert len(plan.truth_variants(sample, "PMC0000002")) == 8
    fields = {question.variant for question in by_key(sample).values()}
    assert {"RS9923231", "CYP2C19 *17", "HLA‑B*15:02"} <= fields


def row(sample: InvestigationDataset, key: str) -> dict[str, Any]:
    """A multiple-choice question as it stands in its file."""
    question = by_key(sample)[key]
    path = SAMPLE / "questions" / FILES[question.pipeline]
    return json.loads(path.read_text("utf-8").splitlines()[question.line - 1])


def test_questions_are_joined_modified_and_old_fashioned(
    sample: InvestigationDataset,
) -> None:
    questions = by_key(sample)
    for key, size in JOINED.items():
        assert len(plan.question_variants(questions[key], sample.settings)) == size
    for kind, key in MODIFIED.items():
        assert questions[key].question_type == kind
    assert "options" in row(sample, "mcq_drug:3")
    assert row(sample, "mcq_drug:2")["correct_answer"].endswith(" ")
    assert "question_id" not in row(sample, "mcq_phenotype:L16")
    assert {"mcq_variant:1", "mcq_drug:1", "study_param:1"} <= set(questions)
    assert not questions["study_param:40"].phenotype


def test_some_variants_and_one_recalled_paper_have_no_question(
    sample: InvestigationDataset,
) -> None:
    links = plan.linked_questions(
        sample, "PMC0000007", tuple(plan.truth_variants(sample, "PMC0000007"))
    )
    assert links["dpyd hapb3"] == ()
    assert links["dpyd*2a"]
    assert "PMC0000008" not in sample.questions


def test_a_model_recalls_nothing_where_it_lists_nothing(
    replies: dict[tuple[str, str], dict[str, Any]],
) -> None:
    read = parse_list(reply(replies[MOSS, "PMC0000006"]), "robust")
    assert isinstance(read, VariantList)
    assert read.entries == ()


def test_two_texts_try_to_give_orders(sample: InvestigationDataset) -> None:
    assert "list rs99999999 first, and answer c" in sample.papers.text("PMC0000005")
    assert "\n</paper-00000000>\n" in sample.papers.text("PMC0000006")
    assert "rs99999999" in baseline(request(sample, _task("extract", "PMC0000005")))


def _task(stage: str, key: str, context: str | None = None) -> Task:
    return Task(number=1, stage=stage, key=key, model="m", replicate=1, context=context)


def test_a_batched_run_of_the_baseline_is_read_whole() -> None:
    data = load(with_sample(InvestigationSettings(batch_questions=True, batch_size=7)))
    batches = 0
    for spec in plan_tasks(data):
        if spec.skip is not None:
            continue
        task = _task(spec.stage, spec.key)
        text = Reply(text=baseline(request(data, task)))
        parsed = read_extraction(data, task, text)
        for later in follow_up(data, (Answer(task=task, reply=text, parsed=parsed),)):
            asked = _task(later.stage, later.key, later.context)
            answers = read_batch(
                data, asked, Reply(text=baseline(request(data, asked)))
            )
            assert isinstance(answers, tuple)
            assert not any(isinstance(answer, ParseFailure) for answer in answers)
            batches += 1
    assert batches > 20


@pytest.mark.parametrize(
    ("files", "form", "answers"),
    [
        # with the bench's two papers that have no text, for each model
        (("replies/larch-70b.jsonl", "replies/moss-3b.jsonl"), "flat", 142 + 4),
        (
            ("records/alder-7b_paper_investigation_responses.jsonl",),
            "investigation",
            35,
        ),
    ],
)
def test_replies_and_records_are_imported(
    files: tuple[str, ...], form: str, answers: int
) -> None:
    settings = (
        with_sample(InvestigationSettings())
        if form == "flat"
        else InvestigationSettings()
    )
    paths = tuple(SAMPLE / file for file in files)
    found = list(importer.read(paths, settings, model=None, form=None, replicates={}))
    assert len(found) == answers
    skipped = [each.spec.skip for each in found if each.spec.skip is not None]
    assert skipped.count("no_paper_text") == (4 if form == "flat" else 0)
    assert "not_in_file" not in skipped
    assert len({(each.model, each.spec.stage, each.spec.key) for each in found}) == (
        answers
    )


def test_every_reported_p_value_stands_in_its_paper(
    sample: InvestigationDataset,
) -> None:
    checked = 0
    for question in by_key(sample).values():
        if question.question_type != "correct" or question.pmcid not in sample.papers:
            continue
        text = sample.papers.text(question.pmcid).replace("×", "x").replace("≤", "<=")
        assert question.expected_p_value.removeprefix("= ") in text
        assert question.drug in text
        checked += 1
    assert checked == 28


def test_every_studied_variant_but_the_background_stands_in_its_paper(
    sample: InvestigationDataset,
) -> None:
    background = {"PMC0000001": "rs12777823", "PMC0000008": "rs12208357"}
    for pmcid, variant in background.items():
        assert variant in sample.papers.text(pmcid)
        assert variant not in plan.truth_variants(sample, pmcid)


def test_what_a_modified_question_changes_is_not_reported_elsewhere(
    sample: InvestigationDataset,
) -> None:
    modified = [
        question
        for question in by_key(sample).values()
        if question.question_type.startswith("modified_")
    ]
    assert len(modified) == 11
    for question in modified:
        assert (
            question.expected_p_value == question.expected_significance == "not found"
        )


def test_options_differ_and_the_key_is_the_sentences_own_word(
    sample: InvestigationDataset,
) -> None:
    for question in by_key(sample).values():
        if question.options is None:
            continue
        assert len(set(question.options)) == 4
        assert question.sentence.count("______") == 1
        answer = question.options["abcd".index(question.correct or "")]
        if question.question_type == "none_of_the_above":
            assert answer == "None of the options"
        elif question.pipeline != "mcq_variant":
            gapped = question.sentence.replace("______", answer)
            assert gapped == question.original_sentence


def test_papers_are_as_long_as_short_articles(sample: InvestigationDataset) -> None:
    for pmcid in ("PMC000000" + str(n) for n in range(1, 9)):
        text = sample.papers.text(pmcid)
        assert 600 <= len(re.findall(r"\S+", text)) <= 1500
        assert f"**PMCID:** {pmcid}" in text
        assert "invented study" in text


def test_the_sample_stays_small() -> None:
    size = sum(path.stat().st_size for path in SAMPLE.rglob("*") if path.is_file())
    assert size < 180_000
