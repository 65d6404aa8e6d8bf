from __future__ import annotations

import pytest

from jobs.paper_investigation.parsing import StudyAnswer
from jobs.paper_investigation.rule_sets import parse_study, significance_right
from jobs.paper_investigation.settings import Rules
from runner.messages import ParseFailure, Reply


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
    for rules in ("robust", "clinpgx-qa"):
        assert significance_right(" Yes", "yes ", rules)
        assert not significance_right("not stated", "not found", rules)


def test_a_boolean_is_a_word_only_by_the_default_rules() -> None:
    reply = Reply(text='{"p_value": "1", "significance": true}')
    verdicts: dict[Rules, bool] = {"robust": True, "clinpgx-qa": False}
    for rules, right in verdicts.items():
        answer = parse_study(reply, rules)
        assert isinstance(answer, StudyAnswer)
        assert significance_right("yes", answer.significance, "robust") is right
