"""The page of answers: data that cannot become markup, and a script by its hash."""

from __future__ import annotations

import base64
import hashlib
import json
import re

from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.report.answer_page import (
    CONTEXT_CHARS,
    PageValue,
    QuoteInContext,
    page_end,
    page_row,
    page_start,
)


def page(*rows: str) -> str:
    start = page_start(
        "Answers", {}, fields=["n"], models=["m"], flags={"x": "X"}, file="answers.csv"
    )
    return start + "".join(rows) + page_end()


def data(text: str) -> list[dict[str, object]]:
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL
    )
    assert found is not None
    rows: list[dict[str, object]] = json.loads(found[1])[1:]
    return rows


@given(st.text(max_size=60))
def test_no_text_ends_the_data(text: str) -> None:
    hostile = f"</script><script>alert(1)</script>{text}"
    quote = QuoteInContext(quote=hostile)
    value = PageValue(field="n", value=hostile, state="answered", quotes=[quote])
    whole = page(page_row(hostile, hostile, hostile, [value]))
    assert len(data(whole)) == 1
    assert whole.count("<script") == 2


def test_the_policy_allows_the_pages_own_script_alone() -> None:
    whole = page()
    script = re.findall(r"<script>(.*?)</script>", whole, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert f"script-src &#x27;sha256-{digest}&#x27;;" in whole
    assert "http://" not in whole
    assert "https://" not in whole


def test_the_context_has_whole_sentences() -> None:
    before, after = "One two three. " * 40, " Four five six." * 40
    text = f"{before}The quote.{after}"
    shown = QuoteInContext.of(text, len(before), len(before) + 10)
    assert shown.quote == "The quote."
    assert shown.before.startswith("One two three. ")
    assert shown.after.endswith("Four five six.")
    assert len(shown.before) <= CONTEXT_CHARS


@given(st.text(max_size=900), st.integers(0, 900), st.integers(0, 900))
def test_a_context_is_a_piece_of_the_text(text: str, first: int, second: int) -> None:
    start, end = sorted((min(first, len(text)), min(second, len(text))))
    shown = QuoteInContext.of(text, start, end)
    piece = shown.before.removeprefix("…") + shown.quote + shown.after.removesuffix("…")
    assert piece in text
