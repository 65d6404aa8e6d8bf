"""`--map OLD=NEW`: which column holds which field, and what is said where none does."""

from __future__ import annotations

import pytest

from jobs.inputs.column_map import (
    MAX_NAMES,
    column_map,
    describe_columns,
    keys_of,
    missing_column,
    name_list,
    nearest,
    pairs_within,
    rename_keys,
)
from runner.errors import UsageError

FIELDS = ("pmid", "title", "prob_*")
COLUMNS = ("PubMed ID", "heading", "p", "title")


def test_a_pair_is_read_in_the_order_that_makes_sense() -> None:
    assert column_map(("PubMed ID=pmid",), FIELDS, COLUMNS) == {"PubMed ID": "pmid"}
    assert column_map(("pmid=PubMed ID",), FIELDS, COLUMNS) == {"PubMed ID": "pmid"}
    assert column_map((" p = prob_x ",), FIELDS, COLUMNS) == {"p": "prob_x"}
    # both sides are columns and fields: the name in the file comes first
    both = column_map(("title=pmid",), FIELDS, ("title", "pmid"))
    assert both == {"title": "pmid"}


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("heading", r"write OLD=NEW, .* --map PubMed=pmid"),
        ("=pmid", "write OLD=NEW"),
        (
            "headng=title",
            r"no file has a column headng \(found: .*; nearest: heading\)",
        ),
        ("heading=titel", r"there is no field titel \(fields: .*; nearest: title\)"),
        ("nothing=nowhere", r"there is no field nowhere \(fields: pmid, title, prob_"),
    ],
)
def test_a_pair_that_fits_nothing_is_answered_with_the_nearest(
    pair: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        column_map((pair,), FIELDS, COLUMNS)


def test_one_column_cannot_be_two_fields() -> None:
    with pytest.raises(UsageError, match="heading is mapped to title already"):
        column_map(("heading=title", "heading=pmid"), FIELDS, COLUMNS)


def test_pairs_of_other_files_are_left_aside() -> None:
    pairs = ("heading=title", "abs=pmid", "pmid=PubMed ID")
    assert pairs_within(pairs, FIELDS, COLUMNS) == ["heading=title", "pmid=PubMed ID"]


def test_nearest_names_ignore_case_and_punctuation() -> None:
    assert nearest("paper_pmid", ["PMID", "Paper PMID", "year"]) == [
        "Paper PMID",
        "PMID",
    ]
    assert nearest("auroc", ["auprc", "AUROC (test)", "k"])[0] == "AUROC (test)"
    assert nearest("x", ["---", ""]) == []


def test_long_and_hostile_names_stay_short() -> None:
    names = ["a" * 3000, "b\x1b[2J", *map(str, range(90))]
    said = str(missing_column("f.csv", "refno", names, takes_map=True))
    assert len(said) < 600
    assert "\x1b" not in said
    assert f"and {len(names) - MAX_NAMES} more" in said
    assert said.endswith("or pass --map COLUMN=refno.")
    assert "--map" not in str(missing_column("f.csv", "refno", names))
    assert name_list([]) == "none"
    assert describe_columns(["Titel"], ["title"]) == "found: Titel; Titel may be title"


def test_keys_are_renamed_at_every_depth() -> None:
    value = {"a": [{"b": 1}, {"a": {"b": 2}}]}
    assert list(keys_of(value)) == ["a", "b"]
    assert rename_keys(value, {"b": "c"}) == {"a": [{"c": 1}, {"a": {"c": 2}}]}
    assert rename_keys(value, {}) is value
