"""tests.jobs.paper_investigation.test_rule_sets"""

from __future__ import annotations

import pytest

from jobs.paper_investigation.parsing import StudyAnswer
from jobs.paper_investigation.rule_sets import (
    StatedPValue,
    p_value_right,
    parse_study,
    read_p_value,
    significance_right,
)
from jobs.paper_investigation.settings import Rules
from runner.messages import ParseFailure, Reply


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


def read(text: str) -> tuple[str, str] | str:
    result = parse_study(Reply(text=text), "robust")
    if isinstance(result, ParseFailure):
        return result.reason
    return result.p_value, result.significance


@pytest.mark.parametrize(
    "text",
    [
        '{"p_value": "= 0.03", "significance": "yes"}',
        '```json\n{\n  "p_value": "= 0.03",\n  "significance": " YES "\n}\n```',
        """First {"p_value": "1", "significance": "no"}, no:
        {"p_value": "= 0.03", "significance": true, "n": 12}""",
        '{"p_value": "= 0.03", "significance": "yes"} and {"p_value": "0.5"}',
        '{"note": "} {", "p_value": "= 0.03", "significance": "yes"}',
        '{"result": {"p_value": "= 0.03", "significance": "yes"}}',
        """{"p_value": "= 0.03", "significance": "yes",
            "other": {"p_value": "1", "significance": "no"}}""",
    ],
)
def test_the_last_object_with_both_fields_is_the_answer(text: str) -> None:
    assert read(text) == ("= 0.03", "yes")


@pytest.mark.parametrize(
    ("json_value", "text"),
    [
        ("1e-05", "1e-05"),
        ("0.030", "0.030"),
        ("null", ""),
        ('["0.03", 0.5]', '["0.03", "0.5"]'),
        ("NaN", "NaN"),
        ('" < 0.001 "', "< 0.001"),
    ],
)
def test_a_p_value_of_any_json_type_is_read_as_its_text(
    json_value: str, text: str
) -> None:
    assert read(f'{{"p_value": {json_value}, "significance": "no"}}') == (text, "no")


@pytest.mark.parametrize(
    ("json_value", "text"),
    [("true", "yes"), ("false", "no"), ("null", ""), ('"Not Stated"', "not stated")],
)
def test_significance_is_a_word_in_lower_case(json_value: str, text: str) -> None:
    assert read(f'{{"p_value": "1", "significance": {json_value}}}') == ("1", text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty_reply"),
        ("p = 0.03, significant", "no_object"),
        ('{"p_value": "0.03"}', "no_object"),
        ('{"p_value": "0.03", "significance": "ye', "no_object"),
        ('{"a":' * 50_000, "no_object"),
    ],
)
def test_without_such_an_object_the_reason_says_what_came(
    text: str, reason: str
) -> None:
    assert read(text) == reason


def test_a_cut_object_is_called_truncated() -> None:
    reply = Reply(text='{"p_value": "0.03", "signif', finish_reason="length")
    assert parse_study(reply, "robust") == ParseFailure(reason="truncated")
    assert parse_study(reply, "clinpgx-qa") == ParseFailure(reason="truncated")


@pytest.mark.parametrize(
    ("text", "p_value", "significance"),
    [
        ('{"p_value": 1e-05, "significance": true}', "1e-05", "True"),
        ('{"p_value": null}', "None", "parse_error"),
        ("{}", "parse_error", "parse_error"),
        ('x ```json {"significance": "Yes"}``` {"p_value": 1}', "parse_error", "Yes"),
    ],
)
def test_the_profile_prints_values_as_python_does(
    text: str, p_value: str, significance: str
) -> None:
    assert parse_study(Reply(text=text), "clinpgx-qa") == StudyAnswer(
        p_value=p_value, significance=significance, rule="first_object"
    )


@pytest.mark.parametrize(
    "text", ["none", '{"p_value": {"a": 1}, "significance": "no"}', '{"p_value"}']
)
def test_the_profile_reads_no_object_with_braces_inside(text: str) -> None:
    assert parse_study(Reply(text=text), "clinpgx-qa") == ParseFailure(
        reason="no_object"
    )


def test_significance_is_compared_without_case_and_outer_blanks() -> None:
    assert significance_right(" Yes", "yes ")
    assert not significance_right("not stated", "not found")


def test_a_boolean_is_a_word_only_by_the_default_rules() -> None:
    reply = Reply(text='{"p_value": "1", "significance": true}')
    verdicts: dict[Rules, bool] = {"robust": True, "clinpgx-qa": False}
    for rules, right in verdicts.items():
        answer = parse_study(reply, rules)
        assert isinstance(answer, StudyAnswer)
        assert significance_right("yes", answer.significance) is right
