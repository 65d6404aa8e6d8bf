from __future__ import annotations

import pytest

from jobs.paper_investigation.parsing import VariantList
from jobs.paper_investigation.rule_sets import parse_list
from runner.messages import ParseFailure, Reply


def read(text: str, finish_reason: str = "stop") -> VariantList | ParseFailure:
    return parse_list(Reply(text=text, finish_reason=finish_reason), "robust")


def entries(text: str) -> tuple[str, ...]:
    result = read(text)
    assert isinstance(result, VariantList), result
    return result.entries


def test_an_empty_list_is_an_answer_and_an_empty_object_is_none() -> None:
    assert read("[]") == VariantList(entries=(), dropped=0, rule="array")
    assert read("{}") == ParseFailure(reason="no_list")


@pytest.mark.parametrize(
    "text",
    [
        '["rs1", "rs2"]',
        '{"variants": ["rs1", "rs2"]}',
        '```json\n["rs1",\n "rs2"]\n```',
        'Studied (see [3, 4] and [5]):\n["rs1", "rs2"]',
        '[{"variant": "rs1"}, {"name": "rs2"}]',
        '[{"id": "rs1", "type": "rsID"}, {"variant": " ", "name": "rs2", "id": "3"}]',
        '[["rs1", "rs2"], ["rs3"]]',
        '["rs1", "rs2"]\nBackground only: ["rs3"]',
        '[x] ["rs1", "rs2"]',
    ],
)
def test_the_first_array_that_names_a_variant_is_the_list(text: str) -> None:
    assert entries(text) == ("rs1", "rs2")


def test_entries_that_name_nothing_are_dropped_and_counted() -> None:
    text = (
        '["rs1", " ", null, 7, {"gene": "TPMT"}, ["rs9"], {"variant": 5, "id": "rs2"}]'
    )
    assert read(text) == VariantList(entries=("rs1", "rs2"), dropped=5, rule="array")


@pytest.mark.parametrize("text", ['[null, ""]', "[true, {}]"])
def test_an_array_without_a_name_is_no_list_of_variants(text: str) -> None:
    assert read(text) == ParseFailure(reason="no_strings")


@pytest.mark.parametrize("text", ["none [1] of [2, 3.5] them", "no brackets", "] ["])
def test_citations_are_no_list(text: str) -> None:
    assert read(text) == ParseFailure(reason="no_list")


@pytest.mark.parametrize(
    "text",
    [
        '["rs1", "rs2"',
        '["rs1", "rs',
        '["a note [] inside", "rs',
        '[{"variant": "rs1", "aliases": ["x"]}, {"variant": "rs2"',
        '{"variants": ["rs1", ["rs2"], ',
        '["a note [] inside", "rs\\u00',
        '[{"variant": "rs1", "aliases": ["x"]}, nul',
    ],
)
def test_a_cut_array_is_a_failure_and_none_of_its_parts_stands_for_it(
    text: str,
) -> None:
    assert read(text) == ParseFailure(reason="no_list")
    assert read(text, "length") == ParseFailure(reason="truncated")


def test_a_whole_array_before_the_cut_is_read() -> None:
    assert isinstance(read('["rs1"] and fur', "length"), VariantList)


def test_an_empty_reply_is_told_from_one_whose_reasoning_met_the_limit() -> None:
    assert read(" \n") == ParseFailure(reason="empty_reply")
    assert read("", "length") == ParseFailure(reason="truncated")


def test_a_lone_surrogate_can_still_be_written_to_a_file() -> None:
    (entry,) = entries(r'["rs1 \ud83d"]')
    assert entry.encode() == b"rs1 ?"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[1" * 50_000])
def test_deep_nesting_fails_instead_of_raising(text: str) -> None:
    assert read(text) == ParseFailure(reason="no_list")


def test_a_number_too_long_for_python_fails_instead_of_raising() -> None:
    assert read("[" + "9" * 5000 + "]") == ParseFailure(reason="no_list")


def test_the_profile_takes_what_stands_between_the_outermost_brackets() -> None:
    read = parse_list(
        Reply(text='Found: ["rs1", {"variant": "rs2"}, null, " "] as asked'),
        "clinpgx-qa",
    )
    assert read == VariantList(
        entries=("rs1", "{'variant': 'rs2'}", "None"),
        dropped=1,
        rule="outermost_brackets",
    )
    whole = parse_list(Reply(text=' ["rs1"]\n'), "clinpgx-qa")
    assert whole == VariantList(entries=("rs1",), dropped=0, rule="whole")


def test_the_profile_gives_the_same_reasons_for_a_failure() -> None:
    assert parse_list(Reply(text=""), "clinpgx-qa") == ParseFailure(
        reason="empty_reply"
    )
    assert parse_list(
        Reply(text='["rs1"', finish_reason="length"), "clinpgx-qa"
    ) == ParseFailure(reason="truncated")
    assert parse_list(Reply(text="{}"), "clinpgx-qa") == ParseFailure(reason="no_list")
    assert parse_list(Reply(text="[" * 100_000 + "]"), "clinpgx-qa") == ParseFailure(
        reason="no_list"
    )
