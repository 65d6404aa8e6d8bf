from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.values.categories import SYMBOLS, SpaceGroupReader
from jobs.property_extraction.values.comparer import Comparer
from jobs.property_extraction.values.comparison import ComparisonKind
from jobs.property_extraction.values.numbers import is_abstention
from tests.jobs.property_extraction.values.stated_values import (
    Value,
    comparer,
    matches,
    pairs,
)

CLUSTERS = {
    "property": {
        "SP-heat": "Heat capacity",
        "specific heat": "Heat capacity",
        "LAD": "ladder",
        "lad": "boy",
        "Twin  A": "twin",
        "TWIN a": "twin",
    }
}


@pytest.mark.parametrize(
    ("prediction", "truth", "rules"),
    [
        ("Single  Crystal", "single crystal", "equal tokens"),
        ("single crystal(bulk)", "single crystal", "tokens substring"),
        ("heat capacity", "SP-heat", "equal tokens substring"),
        ("Specific Heat", "SP-heat", "equal tokens"),
        ("by heat capacity", "SP-heat", "tokens substring"),
        ("TWIN A", "twin", "equal tokens substring"),
        ("1", "10", "substring"),
        ("1", "heated at 1200 °C", "substring"),
        ("crystal single", "single crystal", ""),
        ("", "single crystal", "substring"),
        ("//", "single // crystal", "substring"),
        ("//", "++", ""),
        ("ﬁlm", "film", "equal tokens"),
    ],
)
def test_categories_match_by_the_rule_that_was_set(
    prediction: str, truth: str, rules: str
) -> None:
    # the published rule knows no folded keys
    keys = {"substring": "exact"}
    found = [
        rule
        for rule in ("equal", "tokens", "substring")
        if matches(
            ComparisonKind.CATEGORICAL,
            prediction,
            truth,
            categorical=rule,
            cluster_keys=keys.get(rule, "folded"),
            clusters=CLUSTERS,
        )
    ]
    assert found == rules.split()


def test_keys_that_fold_together_with_two_categories_stand_for_none() -> None:
    def match(prediction: str, truth: str) -> bool:
        return matches(ComparisonKind.CATEGORICAL, prediction, truth, clusters=CLUSTERS)

    assert match("LAD", "ladder")
    assert match("lad", "boy")
    assert not match("Lad", "ladder")
    assert not match("Lad", "boy")
    assert not match("LAD", "lad")


def test_clusters_are_those_of_the_property() -> None:
    by = comparer(clusters=CLUSTERS)
    pair = Value("specific heat"), Value("SP-heat")
    assert by.compare(ComparisonKind.CATEGORICAL, "property", *pair).match
    assert not by.compare(ComparisonKind.CATEGORICAL, "shape", *pair).match


SYMBOLS_AS_PRINTED = [
    ("P6₃mc", 186),
    ("P6<3>mc", 186),
    ("P6_{3}mc", 186),
    ("p 63 m c", 186),
    (" 186 ", 186),
    ("R3̅m", 166),
    ("R3\u00afm", 166),
    ("R3\u0304m", 166),
    ("R−3m", 166),
    ("R3m", 160),
    ("Pm3̅m", 221),
    ("P21/c", 14),
    ("P2_1/c", 14),
    ("I4/mmm", 139),
    ("1", 1),
    ("230", 230),
    ("231", None),
    ("0", None),
    ("186.0", None),
    ("١٨٦", None),
    ("hexagonal", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "number"), SYMBOLS_AS_PRINTED)
def test_a_space_group_is_known_however_its_symbol_is_printed(
    text: str, number: int | None
) -> None:
    assert SpaceGroupReader().number(text) == number


def test_symbols_match_by_their_number_and_unknown_ones_never() -> None:
    assert matches(ComparisonKind.SPACE_GROUP, "P6₃mc", "186")
    assert not matches(ComparisonKind.SPACE_GROUP, "R3m", "R3̅m")
    assert not matches(ComparisonKind.SPACE_GROUP, "hexagonal", "hexagonal")


def test_the_short_symbols_are_of_230_groups_in_order() -> None:
    groups = SpaceGroupReader()
    assert [groups.number(symbol) for symbol in SYMBOLS] == list(range(1, 231))


def test_given_symbols_are_those_that_count() -> None:
    groups = SpaceGroupReader({"P 63 m c": 186, "Mine": 7})
    assert [groups.number(text) for text in ("P6₃mc", "mine", "R-3m", "166")] == [
        186,
        7,
        None,
        166,
    ]


@pytest.mark.parametrize(
    ("prediction", "truth", "match"),
    [
        ("Ru7B3", "B3Ru7", True),
        ("Ru 7 B 3", "Ru7B3", True),
        ("YBa2Cu3O6.92", "YBa2Cu3O6.9", True),
        ("Mo2C", "MoC", False),
        ("Bi2Sr2CaCu2O8+y", "bi2 Sr2CaCu2O8+Y", True),  # by text: neither parses
        ("Bi2Sr2CaCu2O8+y", "Bi2Sr2CaCu2O8+x", False),
        ("Mo, C", "Mo,C", True),
        ("", "Mo2C", False),
        ("T7B3", "H7B3", False),
        ("T7B3", "T7B3", True),
        ("T7B3", "B3T7", True),
        ("D2O", "H2O", False),
        ("Th7Fe3", "Fe3Th7", True),
    ],
)
def test_compositions_match_whatever_the_order_of_elements(
    prediction: str, truth: str, match: bool
) -> None:
    assert matches(ComparisonKind.PYMATGEN, prediction, truth, pymatgen="on") is match


def test_a_text_too_long_for_a_formula_is_compared_as_text() -> None:
    assert matches(
        ComparisonKind.PYMATGEN, "FeO1.0001" * 100, "FeO" * 100, pymatgen="on"
    )
    assert not matches(
        ComparisonKind.PYMATGEN, "FeO1.0001" * 200, "FeO" * 200, pymatgen="on"
    )


def test_unparsed_compositions_can_be_no_match() -> None:
    for text, match in (("Mo, C", False), ("Mo2C", True)):
        found = matches(
            ComparisonKind.PYMATGEN,
            text,
            text,
            pymatgen="on",
            unparsed_composition="no_match",
        )
        assert found is match


@pytest.mark.parametrize(
    ("prediction", "truth", "match"),
    [(" NA ", "NA", True), ("na", "NA", False), ("None", "None", True)],
)
def test_exact_values_are_trimmed_and_keep_their_case(
    prediction: str, truth: str, match: bool
) -> None:
    assert matches(ComparisonKind.EXACT, prediction, truth) is match


@pytest.mark.parametrize(
    "text",
    [
        "NOT_FOUND",
        "not_found",
        " Not found ",
        "N/A",
        "na",
        "None",
        "NULL",
        "NaN",
        "not reported",
        "Not Stated",
        "-",
        "—",
        "–",
    ],
)
def test_a_model_can_say_that_there_is_no_value(text: str) -> None:
    assert is_abstention(text)


@pytest.mark.parametrize("text", ["", "0", "not superconducting", "Na", "nano", "--"])
def test_other_words_are_values(text: str) -> None:
    assert is_abstention(text) == (text == "Na")


def every_rule() -> list[tuple[Comparer, ComparisonKind]]:
    by = comparer(clusters=CLUSTERS, pymatgen="on")
    others = [
        comparer(clusters=CLUSTERS, categorical=rule) for rule in ("equal", "substring")
    ]
    kinds = (
        ComparisonKind.CATEGORICAL,
        ComparisonKind.SPACE_GROUP,
        ComparisonKind.PYMATGEN,
        ComparisonKind.EXACT,
    )
    return [
        *((by, kind) for kind in kinds),
        *((other, ComparisonKind.CATEGORICAL) for other in others),
    ]


RULES = every_rule()

texts = st.one_of(
    st.sampled_from(["LAD", "lad", "Lad", "ladder", "SP-heat", "heat capacity", "1"]),
    st.sampled_from(["10", "186", "P63mc", "Ru7B3", "B3Ru7", "T7B3", "Mo, C", ""]),
    st.text(max_size=5),
)


@given(st.lists(texts, max_size=8), st.lists(texts, max_size=8))
def test_edges_of_texts_are_the_pairs_that_compare_as_equal(
    predictions: list[str], truths: list[str]
) -> None:
    ours, theirs = [Value(text) for text in predictions], [Value(t) for t in truths]
    for by, kind in RULES:
        assert pairs(by, kind, ours, theirs) == [
            (i, j)
            for i, one in enumerate(ours)
            for j, other in enumerate(theirs)
            if by.compare(kind, "property", one, other).match
        ]


@given(texts, texts)
def test_no_rule_of_texts_cares_which_side_a_value_is_on(one: str, other: str) -> None:
    for by, kind in RULES:
        there = by.compare(kind, "property", Value(one), Value(other))
        back = by.compare(kind, "property", Value(other), Value(one))
        assert there == back
