"""Recorded verdicts: reproduced by the profile, and what the default rules change."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from jobs.paper_investigation.parsing import Letter, StudyAnswer, VariantList
from jobs.paper_investigation.rule_sets import (
    p_value_right,
    parse_letter,
    parse_list,
    parse_study,
    significance_right,
)
from jobs.paper_investigation.settings import Rules
from jobs.paper_investigation.variants import distinct
from runner.messages import Reply

pytestmark = pytest.mark.realdata

Row: TypeAlias = Mapping[str, Any]

PROFILE: Rules = "clinpgx-qa"
UNREADABLE = StudyAnswer(p_value="parse_error", significance="parse_error", rule="")
HAIKU = "anthropic/claude-haiku-4-5-20251001"
OPUS = "anthropic/claude-opus-4-6"
SONNET = "anthropic/claude-sonnet-4-5-20250929"
GEMINI = "gemini/gemini-2.5-pro"


@pytest.fixture(scope="module")
def folder(realdata: Path) -> Path:
    return realdata / "clinpgx_qa"


def rows(*paths: Path) -> Iterator[Row]:
    for path in sorted(paths):
        for line in path.read_bytes().splitlines():
            yield json.loads(line)


def is_right(row: Row, rules: Rules) -> bool:
    """The verdict on a row that holds the expected answer and not the question."""
    reply, expected = Reply(text=row["model_response"]), row["expected_answer"]
    if row["source_pipeline"] != "study_param":
        return letter(reply, rules, None) == str(expected)
    p_value, _, significance = expected.removeprefix("p=").rpartition(", sig=")
    return all(study_verdicts(study(reply, rules), p_value, significance, rules))


def letter(
    reply: Reply, rules: Rules, texts: tuple[str, str, str, str] | None
) -> str | None:
    read = parse_letter(reply, rules, texts)
    return read.letter if isinstance(read, Letter) else None


def options(row: Row) -> tuple[str, str, str, str]:
    return row["option_a"], row["option_b"], row["option_c"], row["option_d"]


def study(reply: Reply, rules: Rules) -> StudyAnswer:
    read = parse_study(reply, rules)
    return read if isinstance(read, StudyAnswer) else UNREADABLE


def study_verdicts(
    answer: StudyAnswer, p_value: str, significance: str, rules: Rules
) -> tuple[bool, bool]:
    return (
        p_value_right(p_value, answer.p_value, rules, 0.05),
        significance_right(significance, answer.significance),
    )


def investigated(folder: Path, run: str) -> Iterator[Row]:
    paths = (folder / "paper_investigation").glob(f"*_{run}_*/*_responses.jsonl")
    for record in rows(*paths):
        for variant in (record["variant_results"] or {}).values():
            yield from variant["responses"]


def test_the_profile_reproduces_every_graded_answer(folder: Path) -> None:
    graded = list(rows(folder / "graded_answers.jsonl"))
    assert [is_right(row, PROFILE) for row in graded] == [r["correct"] for r in graded]
    assert (len(graded), sum(row["correct"] for row in graded)) == (4399, 3807)


def test_the_default_rules_flip_two_graded_answers_of_one_model(folder: Path) -> None:
    flips = [
        (row["model"], row["pmcid"], row["variant"], is_right(row, "robust"))
        for row in rows(folder / "graded_answers.jsonl")
        if is_right(row, "robust") != row["correct"]
    ]
    assert flips == [
        (HAIKU, "PMC12166262", "rs8140869", True),
        (HAIKU, "PMC1975838", "rs1799853", False),
    ]


def test_right_and_asked_by_model_and_pipeline_are_the_known_counts(
    folder: Path,
) -> None:
    asked: Counter[tuple[str, str]] = Counter()
    right: Counter[tuple[str, str]] = Counter()
    for row in rows(folder / "graded_answers.jsonl"):
        key = (row["model"], row["source_pipeline"])
        asked[key] += 1
        right[key] += is_right(row, "robust")

    pipelines = ("mcq_variant", "mcq_drug", "mcq_phenotype", "study_param")
    known = {
        OPUS: [(285, 312), (286, 288), (52, 52), (271, 331)],
        "gpt-5.2": [(276, 308), (278, 284), (49, 50), (252, 323)],
        SONNET: [(222, 256), (230, 232), (36, 36), (199, 255)],
        HAIKU: [(247, 304), (268, 280), (41, 50), (238, 319)],
        "gpt-4o-mini": [(181, 224), (189, 210), (37, 50), (170, 235)],
    }
    for model, counts in known.items():
        found = [(right[model, p], asked[model, p]) for p in pipelines]
        assert found == counts, model


@pytest.mark.parametrize(
    ("run", "count"), [("031950", 666), ("043720", 292), ("053253", 4399)]
)
def test_the_profile_reproduces_every_verdict_of_an_investigation(
    folder: Path, run: str, count: int
) -> None:
    answers = list(investigated(folder, run))
    assert [is_right(row, PROFILE) for row in answers] == [
        row["correct"] for row in answers
    ]
    assert len(answers) == count


@pytest.mark.parametrize("run", ["031950", "043720"])
def test_the_default_rules_read_one_reply_in_prose_that_was_misread(
    folder: Path, run: str
) -> None:
    flips = [
        row
        for row in investigated(folder, run)
        if is_right(row, "robust") != row["correct"]
    ]
    assert [row["correct"] for row in flips] == [False]


def test_the_stand_alone_letters_are_reproduced(folder: Path) -> None:
    files = list((folder / "mcq").glob("*/*_eval_results.jsonl"))
    asked = list(rows(*files))
    for row in asked:
        read = letter(Reply(text=row["response"]), PROFILE, options(row))
        assert read == row["prediction_parsed"]
        assert (read == row["correct_answer"]) is row["correct"]
    assert (len(files), len(asked)) == (21, 210)


def test_the_default_rules_count_the_stand_alone_letters_as_known(
    folder: Path,
) -> None:
    known = {
        HAIKU: (7, 10, 4),
        OPUS: (8, 10, 7),
        SONNET: (6, 10, 6),
        "gpt-4o-mini": (5, 10, 6),
        "gpt-5.2": (10, 10, 6),
        "gpt-5": (10, 10, 5),
        GEMINI: (0, 0, 0),
    }
    for rules in ("robust", PROFILE):
        right: Counter[tuple[str, str]] = Counter()
        unread: Counter[tuple[str, str]] = Counter()
        for pipeline in ("variant", "drug", "phenotype"):
            files = (folder / "mcq").glob(f"*/*_mcq_{pipeline}_eval_results.jsonl")
            for row in rows(*files):
                read = letter(Reply(text=row["response"]), rules, options(row))
                right[row["model"], pipeline] += read == row["correct_answer"]
                unread[row["model"], pipeline] += read is None
        for model, counts in known.items():
            found = tuple(right[model, p] for p in ("variant", "drug", "phenotype"))
            assert found == counts, (rules, model)
        prose = {(HAIKU, "phenotype"): 1} if rules == PROFILE else {}
        silent = {(GEMINI, p): 10 for p in ("variant", "drug", "phenotype")}
        assert +unread == silent | prose


def test_the_stand_alone_study_answers_are_reproduced_in_all_fields(
    folder: Path,
) -> None:
    files = list((folder / "study_param").glob("*/*_eval_results.jsonl"))
    asked = list(rows(*files))
    both: dict[str, Counter[str]] = {"robust": Counter(), PROFILE: Counter()}
    for row in asked:
        expected = (
            row["expected_answer_p_value"],
            row["expected_answer_significance"],
        )
        for rules in ("robust", PROFILE):
            answer = study(Reply(text=row["response"]), rules)
            verdicts = study_verdicts(answer, *expected, rules)
            both[rules][row["model"]] += all(verdicts)
            if rules == PROFILE:
                assert answer.p_value == row["response_p_value"]
                assert answer.significance == row["response_significance"]
                assert verdicts == (row["p_value_correct"], row["significance_correct"])
                assert all(verdicts) is row["both_correct"]
    assert (len(files), len(asked)) == (7, 70)
    assert both["robust"] == both[PROFILE]
    assert dict(both["robust"]) == {
        HAIKU: 7,
        OPUS: 7,
        SONNET: 8,
        "gpt-4o-mini": 8,
        "gpt-5.2": 7,
        "gpt-5": 7,
        GEMINI: 0,
    }


def test_the_profile_reproduces_every_extracted_list(folder: Path) -> None:
    files = (folder / "variant_extraction").glob("*/*_eval_results.jsonl")
    papers = list(rows(*files))
    for row in papers:
        read = parse_list(Reply(text=row["raw_response"]), PROFILE)
        assert (not isinstance(read, VariantList)) is row["parse_failure"]
        entries = read.entries if isinstance(read, VariantList) else ()
        assert sorted(distinct(entries, "keep")) == row["predicted"]
    assert len(papers) == 30


def test_the_default_rules_read_the_one_list_of_objects(folder: Path) -> None:
    files = (folder / "variant_extraction").glob("*/*_eval_results.jsonl")
    changed = {
        (row["model"], row["pmcid"])
        for row in rows(*files)
        if parse_entries(row, "robust") != parse_entries(row, PROFILE)
    }
    assert changed == {(SONNET, "PMC7655626")}


def parse_entries(row: Row, rules: Rules) -> tuple[str, ...] | None:
    read = parse_list(Reply(text=row["raw_response"]), rules)
    return read.entries if isinstance(read, VariantList) else None
