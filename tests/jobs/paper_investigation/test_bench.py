"""The bench: ids, empty and repeated variants, and what is noticed.

Question files: both forms of options, ids, and what is left out or noticed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from jobs.kit.inputs.rows import InputFindings
from jobs.paper_investigation.bench import FILES, read_bench, read_questions
from jobs.paper_investigation.data import BenchPaper, PaperQuestion
from jobs.paper_investigation.settings import InvestigationSettings, Pipeline
from runner.errors import DatasetError
from runner.scorecard import Finding


def bench(
    folder: Path, *rows: dict[str, Any], **settings: Any
) -> tuple[tuple[BenchPaper, ...], dict[str, Finding]]:
    path = folder / "variant_bench.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    noticed = InputFindings()
    papers = read_bench(path, InvestigationSettings(**settings), noticed)
    return papers, {finding.code: finding for finding in noticed.findings()}


def test_papers_keep_file_order_and_their_variants_as_they_stand(
    tmp_path: Path,
) -> None:
    papers, found = bench(
        tmp_path,
        {"pmcid": "PMC2", "variants": [" rs1 ", "", None, "CYP2C9 *2"], "pmid": 12},
        {"pmcid": "PMC1", "variants": ["rs1"], "raw_variants": [["rs1", "rs1"]]},
    )
    assert [paper.pmcid for paper in papers] == ["PMC2", "PMC1"]
    assert papers[0].variants == ("rs1", "CYP2C9 *2")
    assert papers[0].pmid == "12"
    assert papers[1].raw_variants == (("rs1", "rs1"),)
    assert papers[1].line == 2
    assert not found


@pytest.mark.parametrize("variants", [[], ["", "  "], None])
def test_a_paper_without_variants_is_an_error(
    tmp_path: Path, variants: list[str] | None
) -> None:
    rows = (
        {"pmcid": "PMC1", "variants": ["rs1"]},
        {"pmcid": "PMC2", "variants": variants},
    )
    with pytest.raises(
        DatasetError,
        match=(
            r"^variant_bench\.jsonl line 2: variants is empty "
            r"\(a paper needs at least one truth variant\)\.$"
        ),
    ):
        bench(tmp_path, *rows)


def test_the_profile_accepts_a_paper_without_variants(tmp_path: Path) -> None:
    papers, _ = bench(tmp_path, {"pmcid": "PMC1", "variants": []}, profile="clinpgx-qa")
    assert papers[0].variants == ()


def test_a_paper_named_twice_names_both_lines(tmp_path: Path) -> None:
    row = {"pmcid": "PMC1", "variants": ["rs1"]}
    with pytest.raises(DatasetError, match=r"line 2: PMC1 occurs on line 1 already"):
        bench(tmp_path, row, row)


@pytest.mark.parametrize("pmcid", ["12", "pmc1", "PMC", "PMC1/x", "PMC１"])
def test_other_ids_than_pmc_and_digits_are_refused(tmp_path: Path, pmcid: str) -> None:
    with pytest.raises(DatasetError, match=r"is not a paper id .*--any-id"):
        bench(tmp_path, {"pmcid": pmcid, "variants": ["rs1"]})


@pytest.mark.parametrize(("pmcid", "fits"), [("a.b-c_9", True), ("a/b", False)])
def test_other_ids_can_be_accepted_as_long_as_they_are_safe(
    tmp_path: Path, pmcid: str, fits: bool
) -> None:
    row = {"pmcid": pmcid, "variants": ["rs1"]}
    if fits:
        assert bench(tmp_path, row, any_id=True)[0][0].pmcid == pmcid
    else:
        with pytest.raises(DatasetError, match="is not a paper id"):
            bench(tmp_path, row, any_id=True)


def test_repeats_are_counted_by_paper(tmp_path: Path) -> None:
    _, found = bench(
        tmp_path,
        {"pmcid": "PMC1", "variants": ["rs1", "rs1 "]},
        {"pmcid": "PMC2", "variants": ["*2", "rs2", "rs2"]},
        {"pmcid": "PMC3", "variants": ["rs2"]},
    )
    assert (found["repeated_variants"].n, found["repeated_variants"].severity) == (
        2,
        "info",
    )
    assert "merged_variants" not in found


def test_spellings_that_fold_to_one_variant_are_reported(tmp_path: Path) -> None:
    rows = ({"pmcid": "PMC1", "variants": ["RS1", "rs1"]},)
    _, found = bench(tmp_path, *rows)
    assert found["merged_variants"].example == "PMC1"
    assert not bench(tmp_path, *rows, variant_case="keep")[1]


@pytest.mark.parametrize("value", ["rs1", [1], [["rs1"]]])
def test_a_list_of_variants_holds_nothing_but_texts(
    tmp_path: Path, value: object
) -> None:
    with pytest.raises(DatasetError, match=r"line 1: variants(\[0\])? is "):
        bench(tmp_path, {"pmcid": "PMC1", "variants": value})


def test_an_empty_bench_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"^variant_bench\.jsonl: no paper in it"):
        bench(tmp_path)


Files: TypeAlias = dict[Pipeline, list[dict[str, Any]]]

MCQ: dict[str, Any] = {
    "question_id": 1,
    "annotation_id": 77,
    "pmcid": "PMC1",
    "variant": "rs1, rs2",
    "blanked_sentence": "______ helps.",
    "original_sentence": "Warfarin helps.",
    "option_a": "aspirin",
    "option_b": "warfarin",
    "option_c": "heparin",
    "option_d": "digoxin",
    "correct_answer": "b",
    "question_type": "standard",
    "colour": "blue",
}
STUDY: dict[str, Any] = {
    "question_id": 1,
    "pmcid": "PMC1",
    "variant": "rs1",
    "sentence": "It helps.",
    "phenotype": None,
    "question_type": "modified_drug",
    "expected_answer_p_value": "= 0.03",
    "expected_answer_significance": "no, sig= unclear",
}


def questions(
    folder: Path, files: Files, **settings: Any
) -> tuple[dict[str, tuple[PaperQuestion, ...]], dict[tuple[str, str], Finding]]:
    for pipeline, rows in files.items():
        path = folder / FILES[pipeline]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    noticed = InputFindings()
    found = read_questions(InvestigationSettings(questions=folder, **settings), noticed)
    return found, {(f.code, f.where): f for f in noticed.findings()}


def one(
    folder: Path, row: dict[str, Any], pipeline: Pipeline = "mcq_drug"
) -> PaperQuestion:
    (question,) = questions(folder, {pipeline: [row]})[0]["PMC1"]
    return question


def test_a_multiple_choice_row_keeps_all_it_says(tmp_path: Path) -> None:
    question = one(tmp_path, MCQ)
    assert question.key == "mcq_drug:1"
    assert question.annotation_id == "77"
    assert question.variant == "rs1, rs2"
    assert question.options == ("aspirin", "warfarin", "heparin", "digoxin")
    assert (question.correct, question.is_mcq, question.line) == ("b", True, 1)


@pytest.mark.parametrize(
    ("value", "text"), [("  x ", "x"), (7, "7"), (0.03, "0.03"), (1e-05, "1e-05")]
)
def test_a_number_is_read_as_its_digits(
    tmp_path: Path, value: object, text: str
) -> None:
    row = {**STUDY, "expected_answer_p_value": value}
    assert one(tmp_path, row, "study_param").expected_p_value == text


@pytest.mark.parametrize("value", [True, [], {}])
def test_a_field_that_is_no_text_is_an_error_with_its_name(
    tmp_path: Path, value: object
) -> None:
    with pytest.raises(DatasetError, match=r"line 1: gene is .* \(put the text in"):
        one(tmp_path, {**STUDY, "gene": value}, "study_param")


def test_a_study_row_keeps_its_expected_texts_as_they_stand(tmp_path: Path) -> None:
    question = one(tmp_path, STUDY, "study_param")
    assert question.expected_p_value == "= 0.03"
    assert question.expected_significance == "no, sig= unclear"
    assert (question.phenotype, question.is_mcq, question.options) == ("", False, None)


@pytest.mark.parametrize("answer", ["B ", " b", "B"])
def test_the_key_is_trimmed_and_any_case(tmp_path: Path, answer: str) -> None:
    assert one(tmp_path, {**MCQ, "correct_answer": answer}).correct == "b"


@pytest.mark.parametrize("answer", ["e", "a, b", ""])
def test_any_other_key_is_an_error(tmp_path: Path, answer: str) -> None:
    with pytest.raises(DatasetError, match=r"line 1: correct_answer is"):
        one(tmp_path, {**MCQ, "correct_answer": answer})


@pytest.mark.parametrize("field", ["blanked_sentence", "option_a", "option_d"])
def test_sentence_and_options_must_be_there(tmp_path: Path, field: str) -> None:
    with pytest.raises(
        DatasetError, match=rf"^drug_mcq_options\.jsonl line 1: {field} is missing"
    ):
        one(tmp_path, {**MCQ, field: " "})


@pytest.mark.parametrize(
    "field", ["expected_answer_p_value", "expected_answer_significance"]
)
def test_what_a_study_question_expects_must_be_there(
    tmp_path: Path, field: str
) -> None:
    row = {name: value for name, value in STUDY.items() if name != field}
    with pytest.raises(DatasetError, match=rf"line 1: {field} is missing"):
        one(tmp_path, row, "study_param")


def older(*options: Any) -> dict[str, Any]:
    row = {name: value for name, value in MCQ.items() if "option" not in name}
    return {**row, "options": list(options)}


def test_the_older_form_of_options_is_read(tmp_path: Path) -> None:
    row = older(
        {"drug": "aspirin", "role": "distractor"},
        {"phenotype": "rash", "role": "distractor"},
        {"variant": "rs9", "role": "correct"},
        {"drug": "digoxin"},
    )
    question = one(tmp_path, row)
    assert question.options == ("aspirin", "rash", "rs9", "digoxin")
    assert question.correct == "c"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ([], "not a list of four"),
        ([{"drug": "x", "role": "correct"}] * 4, "4 entries with role correct"),
        ([{"drug": "x"}] * 4, "0 entries with role correct"),
        ([{"drug": "x"}, {"dose": 1}, {"drug": "x"}, {"drug": "x"}], "entry b: no"),
        (["x"] * 4, "entry a: no text"),
    ],
)
def test_a_broken_older_form_is_an_error(
    tmp_path: Path, options: list[Any], complaint: str
) -> None:
    with pytest.raises(DatasetError, match=complaint):
        one(tmp_path, older(*options))


def test_one_id_may_stand_in_two_files_but_not_twice_in_one(tmp_path: Path) -> None:
    both: Files = {"mcq_variant": [MCQ], "mcq_drug": [MCQ]}
    found, _ = questions(tmp_path, both)
    assert [q.key for q in found["PMC1"]] == ["mcq_variant:1", "mcq_drug:1"]
    with pytest.raises(DatasetError, match=r"line 2: question_id 1 occurs on line 1"):
        questions(tmp_path, {"mcq_drug": [MCQ, {**MCQ, "question_id": "1"}]})


def test_a_missing_id_becomes_the_line(tmp_path: Path) -> None:
    row = {name: value for name, value in MCQ.items() if name != "question_id"}
    found, _ = questions(tmp_path, {"mcq_drug": [MCQ, row]})
    assert [q.question_id for q in found["PMC1"]] == ["1", "L2"]


def test_rows_without_paper_or_variant_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [MCQ, {**MCQ, "pmcid": ""}, {**MCQ, "variant": None}, {"question_id": 4}]
    found, noticed = questions(tmp_path, {"mcq_drug": rows})
    assert [q.line for q in found["PMC1"]] == [1]
    assert noticed["rows_without_key", "drug_mcq_options.jsonl"].n == 3


def test_equal_options_are_a_warning_with_the_id(tmp_path: Path) -> None:
    _, noticed = questions(tmp_path, {"mcq_drug": [{**MCQ, "option_d": "warfarin"}]})
    finding = noticed["equal_options", "drug_mcq_options.jsonl"]
    assert (finding.severity, finding.example) == ("warn", "question_id 1")


def test_a_missing_file_is_a_warning_that_names_its_pipeline(tmp_path: Path) -> None:
    _, noticed = questions(tmp_path, {"mcq_drug": [MCQ]})
    assert [where for code, where in noticed if code == "missing_questions"] == [
        "mcq_variant",
        "mcq_phenotype",
        "study_param",
    ]


def test_a_pipeline_that_was_not_chosen_is_neither_read_nor_missed(
    tmp_path: Path,
) -> None:
    files: Files = {
        "mcq_drug": [MCQ],
        "mcq_variant": [{"pmcid": "PMC1", "variant": "x"}],
    }
    found, noticed = questions(tmp_path, files, pipelines=("mcq_drug",))
    assert len(found["PMC1"]) == 1
    assert not noticed


def test_a_folder_without_any_question_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"no question file in it \(expected: mcq_"):
        questions(tmp_path, {})


def test_without_question_files_only_variants_can_be_extracted(tmp_path: Path) -> None:
    found, noticed = questions(tmp_path, {}, mode="extract")
    assert not found
    assert not noticed


def test_a_file_named_by_itself_wins_over_the_folders(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({**MCQ, "question_id": "mine"}), encoding="utf-8")
    found, _ = questions(tmp_path, {"mcq_drug": [MCQ]}, mcq_drug=path)
    assert [q.question_id for q in found["PMC1"]] == ["mine"]


def test_a_file_named_by_itself_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"gone\.jsonl: No such file"):
        questions(tmp_path, {"mcq_drug": [MCQ]}, study_param=tmp_path / "gone.jsonl")


def test_questions_stand_in_pipeline_order_then_file_order(tmp_path: Path) -> None:
    files: Files = {
        "study_param": [{**STUDY, "question_id": 5}],
        "mcq_phenotype": [{**MCQ, "question_id": 9}, {**MCQ, "question_id": 3}],
        "mcq_variant": [{**MCQ, "question_id": 4}],
    }
    found, _ = questions(tmp_path, files)
    assert [q.key for q in found["PMC1"]] == [
        "mcq_variant:4",
        "mcq_phenotype:9",
        "mcq_phenotype:3",
        "study_param:5",
    ]
