from __future__ import annotations

import pytest

from jobs.paper_investigation.rule_sets import StatedPValue, p_value_right, read_p_value


@pytest.mark.parametrize(
    ("text", "operator", "value"),
    [
        ("0.03", "=", 0.03),
        ("== 0.03", "=", 0.03),
        (".05", "=", 0.05),
        ("0,03", "=", 0.03),
        ("1,234", "=", 1234.0),
        ("0.03,0.04", "=", 0.03),
        ("≤0.05", "<=", 0.05),
        (">= 0.05", ">=", 0.05),
        ("<.001>", "<", 0.001),
        ("1e-05", "=", 1e-5),
        ("2.19E-4", "=", 2.19e-4),
        ("10^-5", "=", 1e-5),
        ("10⁻⁵", "=", 1e-5),
        ("5 × 10^−5^", "=", 5e-5),
        ("3.0×10−5", "=", 3e-5),
        ("3.0 × 10 −5", "=", 3e-5),
        ("1.5x10^(-8)", "=", 1.5e-8),
        ("2⋅10⁻³", "=", 2e-3),
        ("1,5 x 10^{-8}", "=", 1.5e-8),
        ("< 5 × 10⁻⁸", "<", 5e-8),
        ("2 x 100", "=", 2.0),
        ("HR 2.1, p = 0.02", "=", 0.02),
        ("OR 2.1 (1.1-3.0); P-value: <0.02", "<", 0.02),
        ("n = 40, p value of 0.02", "=", 0.02),
        ("3 SNPs, padj = 0.02", "=", 0.02),
        ("3 SNPs, p (adj.) was < 0.02", "<", 0.02),
        ("p-adjusted is 0.02 of 7", "=", 0.02),
        ("SNP = 3, then 0.5", "=", 3.0),
        ("p = n.s. (0.2), p = 0.3", "=", 0.3),
        ("p of all 12", "=", 12.0),
    ],
)
def test_a_number_is_read_with_the_operator_before_it(
    text: str, operator: str, value: float
) -> None:
    assert read_p_value(text) == StatedPValue(operator=operator, value=value)


@pytest.mark.parametrize("text", ["", "NS", "not stated", "p <", "p = ."])
def test_a_text_without_digits_holds_no_p_value(text: str) -> None:
    assert read_p_value(text) is None


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ("not found", " Not Found "),
        ("= 0.04", "0.038"),
        ("= 0.04", "= 0.042"),
        ("0", "0.0"),
        ("= 1e-300", "1.04e-300"),
        ("< 0.001", "<= 0.001"),
        ("< 0.001", "< 0.00105"),
        ("< 0.001", "< 1e-9"),
        ("< 0.001", "0.00099"),
        (">= 0.05", "0.05"),
        ("> 0.05", "> 0.5"),
        ("> 0.05", "0.3"),
        ("NS", "not significant"),
        ("not significant", "Nonsignificant"),
        ("n.s.", "non-significant"),
        ("not stated", "Not stated"),
        ("p = 0.03 in carriers", "0.03"),
    ],
)
def test_these_answers_are_right(expected: str, answer: str) -> None:
    assert p_value_right(expected, answer, "robust", 0.05)


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ("not found", "not found in the text"),
        ("not found", "0.03"),
        ("= 0.03", "not found"),
        ("NS", "not found"),
        ("= 0.04", "0.0379"),
        ("= 0.04", "0.04201"),
        ("= 0.04", "> 0.04"),
        ("= 0.04", ""),
        ("0", "1e-300"),
        ("0.03", "0"),
        ("< 0.001", "< 0.00106"),
        ("< 0.001", "> 0.0001"),
        ("< 0.001", "0.001"),
        ("< 0.001", "significant"),
        ("> 0.05", "0.05"),
        ("> 0.05", "> 0.01"),
        ("NS", "0.3"),
        ("not stated", "NS"),
    ],
)
def test_these_answers_are_wrong(expected: str, answer: str) -> None:
    assert not p_value_right(expected, answer, "robust", 0.05)


def test_the_tolerance_is_a_setting() -> None:
    for rules in ("robust", "clinpgx-qa"):
        assert p_value_right("= 0.04", "0.041", rules, 0.05)
        assert not p_value_right("= 0.04", "0.041", rules, 0.01)
        assert p_value_right("= 0.04", "0.04", rules, 0.0)


@pytest.mark.parametrize(
    ("expected", "answer", "right"),
    [
        ("not found", "Not found", True),
        ("= 0.03", "not found", False),
        ("= 2.0E-5", "2 × 10^−5^", True),
        ("= 0.00003", "3.0×10−5", True),
        ("= 1e-4", "(1.0 X 10⁻⁴)", True),
        ("= 1234", "1,234", True),
        ("= 0.5", "12. or .5", True),
        ("= 0.03", "-0.03", False),
        ("= 0.03", "n = 4, 0.03", True),
        ("= 0", "0", True),
        ("= 0", "0.001", False),
        ("< 0.001", "<0.00104", True),
        ("< 0.001", "<= 0.001", True),
        ("< 0.001", "> 0.001", False),
        ("< 0.001", "<", False),
        ("<= 0.05", "≤ 0.05", True),
        ("< 0.05", "0.06, in carriers 0.01", True),
        (">= 0.05", "0.05", True),
        ("> 0.05", "0.05", False),
        ("NS", "ns", True),
        ("significant", "Significant ", True),
    ],
)
def test_the_profile_judges_by_its_own_rules(
    expected: str, answer: str, right: bool
) -> None:
    assert p_value_right(expected, answer, "clinpgx-qa", 0.05) is right
