"""Alias files given to a scoring: judged, and never repaired."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.property_extraction.aliases.alias_set import AliasSet
from jobs.property_extraction.aliases.files import acting_aliases
from runner.errors import DatasetError

HEADER = "pred_name,gt_name,refno,status\n"


def judged(tmp_path: Path, text: str, **options: Any) -> AliasSet:
    is_csv = text.startswith("pred_name")
    path = tmp_path / ("a.csv" if is_csv else "a.json")
    path.write_text(text, encoding="utf-8")
    return acting_aliases(path, canonical={"T1", "T2"}, **options)


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        (
            "a,T1,,accepted\nb,T2,,accepted\na,T2,,accepted\n",
            {},
            (
                "a.csv: row 2 and row 4 clash: 'a' stands for 'T1' and for 'T2'; keep "
                "one of them, or add --clash set to let it stand for both."
            ),
        ),
        (
            "A b,T1,,accepted\na  B,T2,,accepted\n",
            {"name_match": "fold"},
            "row 2 and row 3 clash",
        ),
        (
            "a,b,,accepted\nb,a,,accepted\n",
            {},
            (
                "a.csv: row 2 and row 3 form a cycle of names: 'a', 'b' name one "
                "another; remove one of the rows."
            ),
        ),
        (
            "a,b,,accepted\nb,c,,accepted\nc,a,,accepted\n",
            {"same_name": "keep"},
            "row 2 and row 3 and row 4 form a cycle of names",
        ),
        (
            "a,b,,accepted\nb,a,P1,accepted\n",
            {},
            "row 2 and row 3 form a cycle of names",
        ),
        (
            "A,b,,accepted\nB,a,,accepted\n",
            {"name_match": "fold"},
            "row 2 and row 3 form a cycle of names",
        ),
        (
            "T1,T2,,accepted\n",
            {},
            (
                "a.csv: row 2 renames 'T1', which is itself a name of truth or rubric; "
                "remove it, or add --same-name keep to rename right names too."
            ),
        ),
        (
            "a,T1,,accepted\na,T1,,rejected\n",
            {},
            "a.csv: row 2 and row 3 are both about 'a' => 'T1'; keep one of them.",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_rows(
    tmp_path: Path, text: str, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(DatasetError) as error:
        judged(tmp_path, HEADER + text, **options)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a,T1,,accepted\na,T2,,rejected\n", {}),
        ("a,T1,,accepted\na,T2,P1,accepted\n", {}),
        ("a,T1,,accepted\na,T2,,accepted\n", {"clash": "set"}),
        ("A,T1,,accepted\na,T2,,accepted\n", {}),
        ("A,T1,,accepted\na,T1,,accepted\n", {"name_match": "fold"}),
        ("a,b,,accepted\nb,a,,undecided\n", {}),
        ("a,b,P1,accepted\nb,a,P2,accepted\n", {}),
        ("T1,T1,,accepted\n", {}),
        ("T1,T2,,accepted\nT2,T1,,accepted\n", {"same_name": "keep"}),
    ],
)
def test_what_can_be_meant_is_taken_as_it_stands(
    tmp_path: Path, text: str, options: dict[str, Any]
) -> None:
    found = judged(tmp_path, HEADER + text, **options)
    assert len(found.entries) == len(text.splitlines())


def test_a_draft_acts_only_if_that_is_said(tmp_path: Path) -> None:
    draft = '{"a": "T1", "b": "T2"}'
    with pytest.raises(DatasetError) as error:
        judged(tmp_path, draft)
    assert str(error.value) == (
        "a.json: 2 of its aliases are unverified drafts, such as pair "
        "1, 'a' => 'T1'; verify them and build a set (siftlog prepare "
        "property-extraction aliases), or add --accept-drafts."
    )
    assert judged(tmp_path, draft, accept_drafts=True).status_mix == "2 draft"
    with pytest.raises(DatasetError, match="pair 1 and pair 2 clash"):
        judged(tmp_path, '{"a": "T1", "a": "T2"}', accept_drafts=True)
