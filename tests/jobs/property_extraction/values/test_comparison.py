"""tests.jobs.property_extraction.values.test_comparison"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.values.categories import SYMBOLS, SpaceGroupReader
from jobs.property_extraction.values.comparer import Comparer
from jobs.property_extraction.values.comparison import ComparisonKind, ValueComparison
from jobs.property_extraction.values.numbers import is_abstention
from tests.jobs.property_extraction.values.stated_values import (
    Value,
    comparer,
    matches,
    pairs,
)


@pytest.mark.parametrize(
    ("prediction", "truth", "match"),
    [
        ("0.999", "1", True),
        ("1.001", "1", True),
        ("2.8028", "2.8", True),
        ("2.7972", "2.8", True),
        ("0.9989", "1", False),
        ("1.0011", "1", False),
        ("-1.001", "-1", True),
        ("-0.999", "-1", True),
        ("1", "-1", False),
        ("0", "0.00", True),
        ("-0", "0", True),
        ("1e-300", "0", False),
        ("0", "1e-300", False),
        ("1e-320", "1e-320", True),
        ("1e308", "1e308", True),
    ],
)
def test_the_border_is_inclusive_in_decimals(
    prediction: str, truth: str, match: bool
) -> None:
    assert matches(ComparisonKind.SI, prediction, truth) is match


def test_strict_numbers_have_the_border_of_binary_rounding() -> None:
    assert not matches(ComparisonKind.SI, "0.999", "1", numbers="strict")
    assert matches(ComparisonKind.SI, "0.9991", "1", numbers="strict")


@pytest.mark.parametrize(
    ("prediction", "truth", "compared"),
    [
        (
            Value("30", "μΩ cm at 100 K"),
            Value("0.03", "m.ohm.cm"),
            ("equal", "converted"),
        ),
        (Value("7.82", "kOe/K"), Value("0.782", "T/K"), ("equal", "converted")),
        (Value("226.85", "°C"), Value("500", "K"), ("equal", "converted")),
        (Value("5", "K"), Value("5", "T"), ("incompatible", "incompatible")),
        (Value("5", "%"), Value("5", ""), ("equal", "missing")),
        (Value("5", "N/A"), Value("5", "K"), ("equal", "missing")),
        (Value("5", "sccm"), Value("5", "K"), ("equal", "unknown")),
        (Value("5", "sccm"), Value("6", "sccm"), ("different", "same")),
        (Value("5", "Å"), Value("5", "A"), ("equal", "same")),
        (Value("<5", "K"), Value("5", "K"), ("no_number", "same")),
        (Value("5", "K"), Value("five", "K"), ("truth_no_number", "same")),
    ],
)
def test_units_are_converted_before_numbers_are_compared(
    prediction: Value, truth: Value, compared: tuple[str, str]
) -> None:
    by = comparer()
    found = by.compare(ComparisonKind.SI, "Tc", prediction, truth)
    assert (found.reason, found.unit_status) == compared
    assert found.match == (found.reason == "equal")
    assert bool(pairs(by, ComparisonKind.SI, [prediction], [truth])) == found.match


def test_ignored_units_leave_numbers_as_they_are() -> None:
    by = comparer(units="ignore")
    one, other = Value("5", "K"), Value("5.001", "T")
    found = by.compare(ComparisonKind.SI, "Tc", one, other)
    assert found == ValueComparison(
        reason="equal", number_status="value", error=found.error
    )
    assert found.error == pytest.approx(0.001 / 5.001)
    assert pairs(by, ComparisonKind.SI, [one], [other]) == [(0, 0)]


def test_the_error_is_relative_to_the_truth() -> None:
    by = comparer()
    errors = [
        by.compare(
            ComparisonKind.SI, "Tc", Value(value, "kOe"), Value(truth, "T")
        ).error
        for value, truth in (("11", "1"), ("0", "0"), ("1", "0"), ("-10", "-2"))
    ]
    assert errors == [pytest.approx(0.1), 0.0, None, 0.5]


def test_a_value_too_large_for_the_truths_unit_matches_nothing() -> None:
    by, huge = comparer(), Value("1e308", "GPa")
    assert not by.compare(ComparisonKind.SI, "p", huge, Value("1", "Pa")).match
    assert not pairs(by, ComparisonKind.SI, [huge], [Value("1", "Pa")])


values = st.builds(
    Value,
    st.one_of(
        st.sampled_from(["1", "1.001", "0.999", "1000", "0.1", "0", "-1", "<1", "x"]),
        st.floats(-2, 2).map(repr),
    ),
    st.sampled_from(["K", "mK", "°C", "T", "kOe", "Oe", "", "N/A", "sccm", "slm", "%"]),
)


@given(
    st.lists(values, max_size=12),
    st.lists(values, max_size=12),
    st.sampled_from(["convert", "ignore"]),
    st.sampled_from(["scientific", "strict"]),
)
def test_edges_are_the_pairs_that_compare_as_equal(
    predictions: list[Value], truths: list[Value], units: str, numbers: str
) -> None:
    by = comparer(units=units, numbers=numbers)
    asked = {
        (i, j): by.compare(ComparisonKind.SI, "Tc", one, other)
        for i, one in enumerate(predictions)
        for j, other in enumerate(truths)
    }
    edges = list(by.edges(ComparisonKind.SI, "Tc", predictions, truths))
    assert [(edge.prediction, edge.truth) for edge in edges] == [
        place for place, found in asked.items() if found.match
    ]
    for edge in edges:
        assert edge.error == asked[edge.prediction, edge.truth].error


@given(st.lists(values, max_size=12), st.lists(values, max_size=12))
def test_value_hits_are_the_equal_values_whose_units_were_checked(
    predictions: list[Value], truths: list[Value]
) -> None:
    by = comparer()
    expected = [
        (i, j)
        for i, one in enumerate(predictions)
        for j, other in enumerate(truths)
        for found in (by.compare(ComparisonKind.SI, "Tc", one, other),)
        if found.match and found.unit_status in {"same", "converted"}
    ]
    # whatever is asked of a score
    for asking in (by, comparer(units="ignore")):
        hits = asking.value_hits(predictions, truths)
        assert [(edge.prediction, edge.truth) for edge in hits] == expected


@given(
    st.decimals(-(10**4), 10**4, places=3),
    st.sampled_from(
        [
            ("K", "mK", 3),
            ("T", "kOe", 1),
            ("m", "Å", 10),
            ("J", "mj", 3),
            ("ohm.m", "μΩ cm", 8),
            ("/Pa", "%/GPa", 11),
            ("m-3", "/cc", -6),
        ]
    ),
)
def test_a_value_told_in_another_unit_matches_itself_both_ways(
    number: object, units: tuple[str, str, int]
) -> None:
    base, other, power = units
    one, told = Value(str(number), base), Value(f"{number}e{power}", other)
    by = comparer()
    for prediction, truth in ((one, told), (told, one)):
        found = by.compare(ComparisonKind.SI, "Tc", prediction, truth)
        assert (found.match, found.unit_status) == (True, "converted")


def test_large_groups_meet_without_a_matrix() -> None:
    predictions = [Value(f"{1.0021**i:.12g}", "mK") for i in range(10000)]
    truths = [Value(f"{1.0021**i / 1000:.12g}", "K") for i in reversed(range(10000))]
    found = pairs(comparer(), ComparisonKind.SI, predictions, truths)
    assert found == [(i, 9999 - i) for i in range(10000)]


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
