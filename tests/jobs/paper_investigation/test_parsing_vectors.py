"""One row a quirk: what the default rules make of it, and what the profile does."""

from __future__ import annotations

from typing import TypeAlias

import pytest

from jobs.paper_investigation.parsing import Letter, VariantList
from jobs.paper_investigation.rule_sets import p_value_right, parse_letter, parse_list
from jobs.paper_investigation.settings import Rules
from jobs.paper_investigation.variants import distinct
from runner.messages import ParseFailure, Reply

BOTH: tuple[Rules, Rules] = ("robust", "clinpgx-qa")
Entries: TypeAlias = tuple[str, ...] | None


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("a) and b) are ruled out by the text.\nAnswer: B", ("b", "a")),
        ("a, d", (None, "d")),
        ("The answer is a combination of b and c", (None, "a")),
        ("**B**", ("b", None)),
        ("(c)", ("c", None)),
        ("c (None of the options)", ("c", "c")),
        ("A (significant) association was found in the paper", (None, "a")),
        ('```json\n{"answer": "C"}\n```', ("c", None)),
        ("a or b", (None, "a")),
        ("The answer is A.", ("a", None)),
        ("option a is correct", ("a", "a")),
        ("Option d", ("d", "d")),
    ],
)
def test_letters_are_read_as_stated(
    text: str, letters: tuple[str | None, str | None]
) -> None:
    for rules, expected in zip(BOTH, letters, strict=True):
        read = parse_letter(Reply(text=text), rules, None)
        letter = read.letter if isinstance(read, Letter) else None
        assert letter == expected, rules


@pytest.mark.parametrize(
    ("expected", "answer", "verdicts"),
    [
        ("< 0.001", "p < 0.001", (True, False)),
        ("< 0.001", "0.001", (False, False)),
        ("< 0.001", "<.001>", (True, True)),
        ("< 0.001", "< 0.00096", (True, True)),
        ("= 0.03", "< 0.03", (False, True)),
        ("= 0.03", "0,03", (True, False)),
        ("= 0.05", "p=0.9 (n=0.05)", (False, True)),
        ("= 0.04", "0.042", (True, True)),
        ("= 0.04", "0.0421", (False, True)),
        ("= 1e-5", "10^-5", (True, False)),
        ("= 0.02", "HR 2.1, p = 0.02", (True, True)),
        ("<= 0.05", "0.05", (True, True)),
        ("> 0.05", "> 0.001", (False, False)),
        ("NS", "n.s.", (True, False)),
        ("= 0.05", "≤ 0.05", (False, True)),
    ],
)
def test_p_values_are_judged_as_stated(
    expected: str, answer: str, verdicts: tuple[bool, bool]
) -> None:
    for rules, verdict in zip(BOTH, verdicts, strict=True):
        assert p_value_right(expected, answer, rules, 0.05) is verdict, rules


@pytest.mark.parametrize(
    ("text", "lists"),
    [
        ("As in [1], none.", (None, ("1",))),
        ('{"variants": []}', ((), ())),
        ('see [12]\n["RS1", "rs1 "]', (("RS1", "rs1 "), None)),
        ('["rs1"', (None, None)),
    ],
)
def test_lists_are_read_as_stated(text: str, lists: tuple[Entries, Entries]) -> None:
    for rules, expected in zip(BOTH, lists, strict=True):
        read = parse_list(Reply(text=text), rules)
        assert isinstance(read, VariantList | ParseFailure)
        entries = read.entries if isinstance(read, VariantList) else None
        assert entries == expected, rules


def test_two_spellings_in_a_list_are_one_variant() -> None:
    read = parse_list(Reply(text='see [12]\n["RS1", "rs1 "]'), "robust")
    assert isinstance(read, VariantList)
    assert distinct(read.entries, "fold") == {"rs1": "RS1"}
