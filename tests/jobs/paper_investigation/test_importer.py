"""Work made elsewhere: every form is known by its content, every fault is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jobs.kit.testing import MemoryAnswers, table_rows
from jobs.paper_investigation.importer import importer
from jobs.paper_investigation.inputs import load
from jobs.paper_investigation.score import score
from jobs.paper_investigation.settings import InvestigationSettings
from runner.errors import DatasetError
from tests.jobs.paper_investigation.imports import CHOICE, metrics, read, scored, write

RECORD = {
    "pmcid": "PMC1",
    "model": "lab/one",
    "ground_truth_variants": ["rs1", "rs2"],
    "predicted_variants": ["rs1", "rs3"],
    "recalled_variants": ["rs1"],
    "variant_recall": 0.5,
    "variant_results": {
        "rs1": {
            "questions_asked": 2,
            "questions_correct": 1,
            "question_accuracy": 0.5,
            "responses": [
                {
                    "source_pipeline": "mcq_drug",
                    "annotation_id": "9",
                    "model_response": "a",
                    "correct": True,
                    "expected_answer": "a",
                },
                {
                    "source_pipeline": "study_param",
                    "annotation_id": "9",
                    "model_response": '{"p_value": "0.03", "significance": "no"}',
                    "correct": False,
                    "expected_answer": "p== 0.03, sig=yes",
                },
            ],
        }
    },
    "paper_score": 0.25,
}
VARIANTS = {
    "pmcid": "PMC1",
    "article_title": "A study",
    "ground_truth": ["rs1"],
    "raw_response": '["rs1"]',
    "model": "lab/one",
    "recall": 1.0,
}
STUDY = {
    "question_id": 7,
    "pmcid": "PMC1",
    "question_type": "correct",
    "expected_answer_p_value": "< 0.05",
    "expected_answer_significance": "yes",
    "response": '{"p_value": "< 0.05", "significance": "yes"}',
    "model": "lab/one",
    "both_correct": True,
}


def test_investigation_record_becomes_a_list_and_its_answers(tmp_path: Path) -> None:
    first, *rest = read(write(tmp_path / "x.jsonl", RECORD))
    assert (first.spec.stage, first.spec.key, first.descends) == (
        "extract",
        "PMC1",
        False,
    )
    assert (first.text, first.model, first.replicate) == ('["rs1","rs3"]', "lab/one", 1)
    assert [(each.spec.key, each.text, each.descends) for each in rest] == [
        ("PMC1/mcq_drug:rs1#1", "a", True),
        ("PMC1/study_param:rs1#2", '{"p_value": "0.03", "significance": "no"}', True),
    ]


def test_value_of_a_study_answer_may_begin_with_a_sign_or_hold_the_separator(
    tmp_path: Path,
) -> None:
    record = json.loads(json.dumps(RECORD))
    response = record["variant_results"]["rs1"]["responses"][1]
    response["expected_answer"] = "p=< 0.01, sig=high, sig=no"
    card = scored(write(tmp_path / "x.jsonl", record))
    expected = [row["expected"] for row in table_rows(card, "questions")]
    assert expected == ["a", "p=< 0.01, sig=high, sig=no"]
    response["expected_answer"] = "0.01"
    with pytest.raises(DatasetError, match=r"x\.jsonl line 1: expected_answer is"):
        read(write(tmp_path / "x.jsonl", record))


def test_agreement_is_told_under_both_profiles(tmp_path: Path) -> None:
    card = scored(write(tmp_path / "x.jsonl", RECORD))
    assert [tuple(row.values()) for row in table_rows(card, "agreement")] == [
        (profile, fact, n, n)
        for profile in ("siftlog", "clinpgx-qa")
        for fact, n in (("variant_recall", 1), ("paper_score", 1), ("correct", 2))
    ]
    assert table_rows(card, "differences") == []


def test_recall_that_contradicts_its_own_lists_is_found(tmp_path: Path) -> None:
    card = scored(write(tmp_path / "x.jsonl", {**RECORD, "variant_recall": 1.0}))
    assert metrics(card)["avg_variant_recall"].value == 0.5
    (found,) = (f for f in card.findings if f.code == "recall_contradicts_lists")
    assert found.example == "lab/one PMC1"
    assert "variant_recall: 1.0 there, 0.5 here" in card.summary


def test_only_the_first_differences_are_listed(tmp_path: Path) -> None:
    wrong = [{**RECORD, "pmcid": f"PMC{n}", "paper_score": 1.0} for n in range(1, 31)]
    card = scored(write(tmp_path / "x.jsonl", *wrong))
    listed = [row["profile"] for row in table_rows(card, "differences")]
    assert listed == ["siftlog"] * 10 + ["clinpgx-qa"] * 10
    (found,) = (f for f in card.findings if f.code == "differs_from_file")
    assert found.n == 30


def test_variant_newly_recalled_by_folding_counts_as_without_questions(
    tmp_path: Path,
) -> None:
    record = {**RECORD, "predicted_variants": ["RS2", "rs1"]}
    card = scored(write(tmp_path / "x.jsonl", record))
    found = metrics(card)
    assert found["avg_variant_recall"].value == 1.0
    assert found["recalled_not_asked"].value == 1
    assert found["avg_variant_recall~case_sensitive"].value == 0.5


def test_null_list_is_a_skip_for_a_reason_nobody_knows(tmp_path: Path) -> None:
    record = {**RECORD, "predicted_variants": None, "variant_results": {}}
    card = scored(write(tmp_path / "x.jsonl", record))
    assert metrics(card)["papers_skipped.unknown_skip"].value == 1
    named = {**record, "skip_reason": "paper_too_long"}
    card = scored(write(tmp_path / "x.jsonl", named))
    assert metrics(card)["papers_skipped.paper_too_long"].value == 1


def test_null_list_of_a_paper_known_to_be_missing_says_so(tmp_path: Path) -> None:
    record = {**RECORD, "predicted_variants": None, "variant_results": {}}
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "PMC2.md").write_text("text")
    bench = write(
        tmp_path / "bench.jsonl",
        {"pmcid": "PMC1", "variants": ["rs1"]},
        {"pmcid": "PMC2", "variants": ["rs1"]},
    )
    settings = InvestigationSettings(papers=papers, bench=bench)
    file = write(tmp_path / "x.jsonl", record, {**record, "pmcid": "PMC2"})
    found = metrics(scored(file, settings=settings))
    assert found["papers_skipped.no_paper_text"].value == 1
    assert found["papers_skipped.unknown_skip"].value == 1


@pytest.mark.parametrize(
    ("name", "row", "stage"),
    [
        ("any.jsonl", VARIANTS, "extract"),
        ("m_mcq_drug_responses.jsonl", CHOICE, "question"),
        ("any.jsonl", STUDY, "question"),
    ],
)
def test_stand_alone_rows_are_known_by_their_fields(
    tmp_path: Path, name: str, row: Mapping[str, Any], stage: str
) -> None:
    path = write(tmp_path / name, row)
    (answer,) = read(path)
    assert answer.spec.stage == stage
    assert not answer.descends
    card = scored(path)
    assert {tuple(r.values())[2:] for r in table_rows(card, "agreement")} == {(1, 1)}


def test_predicted_list_stands_in_for_a_raw_reply(tmp_path: Path) -> None:
    row = {**VARIANTS, "predicted": ["rs1"]}
    del row["raw_response"]
    (answer,) = read(write(tmp_path / "x.jsonl", row))
    assert answer.text == '["rs1"]'


def test_recorded_lists_are_compared_as_the_profile_compares_variants(
    tmp_path: Path,
) -> None:
    row = {**VARIANTS, "raw_response": '["RS1"]', "true_positives": ["Rs1"]}
    card = scored(write(tmp_path / "x.jsonl", row))
    agreeing = {
        (row["profile"], row["fact"]): row["agreeing"]
        for row in table_rows(card, "agreement")
    }
    assert agreeing["siftlog", "true_positives"] == 1
    assert agreeing["clinpgx-qa", "true_positives"] == 0


def test_truth_that_folds_together_is_noticed_without_a_bench(tmp_path: Path) -> None:
    row = {**VARIANTS, "ground_truth": ["rs1", "RS1"]}
    card = scored(write(tmp_path / "x.jsonl", row))
    (found,) = (f for f in card.findings if f.code == "merged_variants")
    assert found.n == 1


def test_extraction_without_paper_and_reply_is_a_skip(tmp_path: Path) -> None:
    row = {**VARIANTS, "raw_response": None, "had_paper_context": False}
    (answer,) = read(write(tmp_path / "x.jsonl", row))
    assert (answer.spec.skip, answer.text) == ("no_paper_text", None)


def test_pipeline_of_choices_comes_from_the_file_name(tmp_path: Path) -> None:
    for kind in ("variant", "drug", "phenotype"):
        path = write(tmp_path / f"lab_one_mcq_{kind}_eval_results.jsonl", CHOICE)
        assert read(path)[0].spec.key == f"PMC1/mcq_{kind}:7"
    with pytest.raises(DatasetError, match="the pipeline is not known"):
        read(write(tmp_path / "choices.jsonl", CHOICE))
    named = {**CHOICE, "source_pipeline": "mcq_drug"}
    (answer,) = read(write(tmp_path / "choices.jsonl", named))
    assert answer.spec.key == "PMC1/mcq_drug:7"


def test_line_ends_and_byte_order_marks_do_not_matter(tmp_path: Path) -> None:
    plain = write(tmp_path / "a.jsonl", RECORD, {**RECORD, "pmcid": "PMC2"})
    odd = tmp_path / "b.jsonl"
    lines = plain.read_bytes().replace(b"\n", b"\r\n\r\n")
    odd.write_bytes(b"\xef\xbb\xbf" + lines)
    assert read(odd) == read(plain)


def test_same_model_and_paper_in_two_files_is_an_error_that_names_both(
    tmp_path: Path,
) -> None:
    one = write(tmp_path / "one.jsonl", RECORD)
    two = write(tmp_path / "two.jsonl", RECORD)
    with pytest.raises(DatasetError, match=r"two\.jsonl: .* already in one\.jsonl"):
        read(one, two)
    answers = read(one, two, replicates={two: 2})
    assert [a.replicate for a in answers if not a.descends] == [1, 2]
    card = score(load(InvestigationSettings()), MemoryAnswers.of_import(answers))
    assert metrics(card)["replicate.2.avg_paper_score"].value == 0.25


def test_importing_the_same_file_twice_is_an_error(tmp_path: Path) -> None:
    file = write(tmp_path / "one.jsonl", RECORD)
    with pytest.raises(DatasetError, match="already in one"):
        read(file, file)


def test_several_models_become_one_run(tmp_path: Path) -> None:
    one = write(tmp_path / "one.jsonl", RECORD)
    two = write(tmp_path / "two.jsonl", {**RECORD, "model": "lab/two"})
    assert list(scored(one, two).models) == ["lab/one", "lab/two"]


def test_model_named_by_hand_wins(tmp_path: Path) -> None:
    nameless = {key: value for key, value in RECORD.items() if key != "model"}
    path = write(tmp_path / "x.jsonl", nameless)
    with pytest.raises(DatasetError, match=r"line 1: model is missing .*--model"):
        read(path)
    assert read(path, model="lab/three")[0].model == "lab/three"


def test_files_of_different_work_are_refused_together(tmp_path: Path) -> None:
    papers = write(tmp_path / "papers.jsonl", RECORD)
    lists = write(tmp_path / "lists.jsonl", VARIANTS)
    with pytest.raises(DatasetError, match="import them as separate runs"):
        read(papers, lists)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"x": 1}', r"bad\.jsonl: fits no known format .*investigation: "),
        ("", r"bad\.jsonl: it has no rows"),
        ("{oops", r"bad\.jsonl line 1: not valid JSON"),
        (
            json.dumps({**RECORD, "pmcid": "nope"}),
            r"bad\.jsonl line 1: pmcid 'nope' is not a paper id",
        ),
        (
            json.dumps({**RECORD, "variant_results": []}),
            r"bad\.jsonl line 1: variant_results is a list \(an object is expected\)",
        ),
        (
            json.dumps({**RECORD, "variant_results": {"rs1": {"responses": 1}}}),
            r"bad\.jsonl line 1: variant_results\.rs1 has no list of responses",
        ),
        (
            json.dumps({**RECORD, "variant_results": {"rs1": {"responses": ["a"]}}}),
            r"bad\.jsonl line 1: variant_results\.rs1\[0\] is a text \(an object",
        ),
        (
            json.dumps({**RECORD, "replicate": 0.5}),
            r"replicate is 0\.5 \(a whole",
        ),
        (
            json.dumps({**VARIANTS, "raw_response": 1}),
            r"raw_response is a number",
        ),
    ],
)
def test_faults_are_named_by_file_and_line(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(DatasetError, match=message):
        read(path)


def test_expected_letter_must_be_one(tmp_path: Path) -> None:
    record = json.loads(json.dumps(RECORD))
    record["variant_results"]["rs1"]["responses"][0]["expected_answer"] = "e"
    with pytest.raises(DatasetError, match=r"expected_answer is 'e' \(one of a, b"):
        read(write(tmp_path / "x.jsonl", record))


def test_unknown_pipeline_is_named_with_the_known_ones(tmp_path: Path) -> None:
    record = json.loads(json.dumps(RECORD))
    record["variant_results"]["rs1"]["responses"][0]["source_pipeline"] = "mcq_gene"
    with pytest.raises(DatasetError, match=r"'mcq_gene' \(one of mcq_variant, "):
        read(write(tmp_path / "x.jsonl", record))


def test_nothing_is_given_before_all_files_are_checked(tmp_path: Path) -> None:
    good = write(tmp_path / "good.jsonl", RECORD)
    bad = write(tmp_path / "bad.jsonl", RECORD | {"model": "x"}, {"pmcid": "PMC1"})
    answers = importer.read(
        (good, bad), InvestigationSettings(), model=None, form=None, replicates={}
    )
    with pytest.raises(DatasetError, match=r"bad\.jsonl line 2"):
        next(answers)


def test_format_can_be_forced(tmp_path: Path) -> None:
    both = write(tmp_path / "x.jsonl", {**STUDY, "option_a": "no choice"})
    assert read(both, form="study_param")[0].spec.key == "PMC1/study_param:7"


# flat replies
