"""What holds for every reply a model could write."""

from __future__ import annotations

import json
import math

from hypothesis import example, given
from hypothesis import strategies as st

from jobs.paper_investigation.parsing import Letter, StudyAnswer, VariantList
from jobs.paper_investigation.rule_sets import (
    needs_options,
    p_value_right,
    parse_batch,
    parse_letter,
    parse_list,
    parse_study,
    read_p_value,
    significance_right,
)
from jobs.paper_investigation.settings import Rules
from runner.messages import ParseFailure, Reply

RULES: st.SearchStrategy[Rules] = st.sampled_from(["robust", "clinpgx-qa"])

# Words that rules look for are frequent here, so that random texts reach their corners.
PIECES = st.sampled_from(
    [
        *'[]{}"\\:,.()<>=^*-\n\u2212\u2075\u00d7`',
        *(
            "a",
            "b",
            "c",
            "d",
            "A",
            "D",
            " ",
            "  ",
            "1",
            "2.",
            "3)",
            "0.05",
            "10",
            "e-5",
        ),
        *(
            "answer",
            "Answer: ",
            "option ",
            "is",
            "because",
            "p",
            "p-value",
            "not found",
        ),
        *(
            '"answer"',
            '"n"',
            '"p_value"',
            '"significance"',
            '"variant"',
            "null",
            "true",
        ),
        *("```json\n", "```", "rs1", "\\ud83d", "\ud83d", "\u0661", "NS", "[]", "{}"),
    ]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=40).map("".join), st.text(max_size=60))
REPLIES = st.builds(
    lambda text, how: Reply(text=text, finish_reason=how),
    TEXTS,
    st.sampled_from(["stop", "length"]),
)
OPTIONS = st.one_of(st.none(), st.tuples(TEXTS, TEXTS, TEXTS, TEXTS))
REASONS = {
    "empty_reply",
    "truncated",
    "no_list",
    "no_strings",
    "no_letter",
    "no_object",
    "missing_in_batch",
}


def assert_is_answer(answer: object) -> None:
    match answer:
        case ParseFailure(reason=reason):
            assert reason in REASONS
        case Letter(letter=letter, rule=rule):
            assert letter in ("a", "b", "c", "d")
            assert rule
        case StudyAnswer(p_value=p_value, significance=significance):
            assert isinstance(p_value.encode(), bytes)
            assert isinstance(significance.encode(), bytes)
        case VariantList(entries=entries, dropped=dropped):
            assert all(entry.strip() and entry.encode() for entry in entries)
            assert dropped >= 0
        case _:
            raise AssertionError(answer)


@given(REPLIES, RULES, OPTIONS)
def test_no_reply_makes_a_rule_raise(
    reply: Reply, rules: Rules, options: tuple[str, str, str, str] | None
) -> None:
    assert_is_answer(parse_list(reply, rules))
    assert_is_answer(parse_letter(reply, rules, options))
    assert_is_answer(parse_study(reply, rules))


@given(REPLIES, RULES, OPTIONS)
@example(
    Reply(text="b is near. The answer is a blend."), "robust", ("blend", "x", "y", "z")
)
def test_a_letter_that_needs_no_options_is_the_same_with_any(
    reply: Reply, rules: Rules, options: tuple[str, str, str, str] | None
) -> None:
    alone = parse_letter(reply, rules, None)
    if not needs_options(alone, rules):
        assert parse_letter(reply, rules, options) == alone


@given(REPLIES, RULES, RULES, st.lists(st.sampled_from(["mcq", "study"]), max_size=5))
def test_a_batch_has_one_answer_a_question_whatever_the_reply(
    reply: Reply, letter_rules: Rules, p_rules: Rules, kinds: list[str]
) -> None:
    answers = parse_batch(
        reply,
        kinds,  # type: ignore[arg-type]
        letter_rules=letter_rules,
        p_rules=p_rules,
        options=[None] * len(kinds),
    )
    assert len(answers) == len(kinds)
    for answer, kind in zip(answers, kinds, strict=True):
        assert_is_answer(answer)
        assert not isinstance(answer, Letter if kind == "study" else StudyAnswer)


@given(TEXTS, TEXTS, RULES)
def test_any_two_texts_can_be_compared(
    expected: str, answer: str, rules: Rules
) -> None:
    assert p_value_right(expected, answer, rules, 0.05) in (True, False)
    assert significance_right(expected, answer) in (True, False)


NAMES = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
    min_size=1,
)


@given(NAMES, st.sampled_from(["", "See [1, 2] for", "```json\n", "Wait [no]: "]))
def test_a_list_of_names_is_read_back_from_whatever_surrounds_it(
    names: list[str], before: str
) -> None:
    text = f"{before}{json.dumps({'variants': names}, indent=1)}\nDone."
    assert parse_list(Reply(text=text), "robust") == VariantList(
        entries=tuple(names), dropped=0, rule="array"
    )


@given(NAMES, st.data())
def test_a_list_that_is_cut_anywhere_is_never_read(
    names: list[str], data: st.DataObject
) -> None:
    text = json.dumps(names, ensure_ascii=False)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    read = parse_list(Reply(text=cut, finish_reason="length"), "robust")
    assert read == ParseFailure(reason="truncated")


@given(
    st.sampled_from("abcdABCD"),
    st.sampled_from(["{}", " {}\n", "({})", "**{}**", "{})", "[{}]:", "`{}.`"]),
    st.sampled_from(["{}", "Some prose.\n{}", '{{"answer": "{}"}}', "Answer: ({})."]),
)
def test_a_decorated_letter_is_read_as_the_letter(
    letter: str, decoration: str, place: str
) -> None:
    dressed = decoration.format(letter)
    text = place.format(dressed.strip() if '"' in place else dressed)
    if "(" in place:
        text = place.format(letter)
    read = parse_letter(Reply(text=text), "robust", None)
    assert isinstance(read, Letter)
    assert read.letter == letter.lower()


# Three digits behind a comma would be thousands.
MANTISSAS = st.integers(100, 999).map(lambda n: n / 100)
EXPONENTS = st.integers(1, 300)
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
OPERATORS = st.sampled_from(["", "=", "<", "<=", ">", ">="])


@given(
    MANTISSAS, EXPONENTS, OPERATORS, st.sampled_from(["", "OR 2.5; p ", "p-value: "])
)
def test_every_notation_of_a_number_reads_the_same(
    mantissa: float, exponent: int, sign: str, before: str
) -> None:
    raised = f"-{exponent}".translate(SUPERSCRIPT)
    for number in (
        f"{mantissa}e-{exponent}",
        f"{mantissa}E\u2212{exponent}",
        f"{mantissa} x 10^-{exponent}",
        f"{mantissa}\u00d710\u2212{exponent}",
        f"{mantissa} \u22c5 10{raised}",
        f"{str(mantissa).replace('.', ',')}e-{exponent}",
    ):
        operator = sign or ("=" if before == "OR 2.5; p " else "")
        read = read_p_value(f"{before}{operator} {number}")
        assert read is not None
        assert read.operator == (sign or "=")
        assert read.value == float(f"{mantissa}e-{exponent}")


@given(MANTISSAS, EXPONENTS, OPERATORS)
def test_a_p_value_is_right_for_itself(
    mantissa: float, exponent: int, sign: str
) -> None:
    text = f"{sign} {mantissa}e-{exponent}"
    assert p_value_right(text, text, "robust", 0.0)


UNIT = st.floats(1e-12, 1.0)


@given(UNIT, UNIT, UNIT)
def test_a_tighter_bound_is_never_worse(limit: float, one: float, other: float) -> None:
    tight, loose = sorted((one, other))
    if p_value_right(f"< {limit!r}", f"< {loose!r}", "robust", 0.05):
        assert p_value_right(f"< {limit!r}", f"< {tight!r}", "robust", 0.05)
    if p_value_right(f"> {limit!r}", f"> {tight!r}", "robust", 0.05):
        assert p_value_right(f"> {limit!r}", f"> {loose!r}", "robust", 0.05)


@given(UNIT, UNIT)
def test_a_value_is_right_within_the_tolerance_of_the_expected_one_only(
    expected: float, answer: float
) -> None:
    right = p_value_right(repr(expected), repr(answer), "robust", 0.05)
    off = abs(answer - expected) / expected
    if not math.isclose(off, 0.05, rel_tol=1e-6):
        assert right is (off < 0.05)


@given(st.permutations([(1, "a"), (2, "b"), (3, "c"), (4, "d")]))
def test_the_order_of_numbered_answers_does_not_matter(
    blocks: list[tuple[int, str]],
) -> None:
    lines = "\n".join(f"{number}. ({letter})" for number, letter in blocks)
    objects = json.dumps([{"n": number, "answer": letter} for number, letter in blocks])
    for text in (lines, objects):
        answers = parse_batch(
            Reply(text=text),
            ["mcq"] * 4,
            letter_rules="robust",
            p_rules="robust",
            options=[None] * 4,
        )
        assert [a.letter for a in answers if isinstance(a, Letter)] == list("abcd")
