"""The page of a scoring: closed to the network, safe to open, honest in its numbers."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.report.details import costs
from jobs.kit.report.html import element
from jobs.kit.report.page import notices
from runner.scorecard import (
    Axis,
    Figure,
    Finding,
    Metric,
    Panel,
    Points,
    Scorecard,
    Table,
)
from tests.jobs.kit.report.reported import CARD, COURSE, REPORTED, Page, written

HOSTILE = (
    "--></td></style></title><script>alert(1)</script><img src=x onerror=alert(1)>"
    "<a href='https://example.org/x'>\"' onload=alert(1) \x1b]0;title\x07 \u202e"
)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("scoring"))


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_the_page_runs_nothing_and_fetches_nothing(page: Page) -> None:
    page.assert_closed()


def test_the_page_forbids_itself_everything_but_its_own_style(page: Page) -> None:
    (policy,) = [
        meta["content"] or ""
        for meta in page.named("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    ]
    (style,) = page.styles
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules == {
        "default-src": "'none'",
        "style-src": f"'sha256-{digest}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert "@import" not in style
    assert "url(" not in style


def test_hostile_text_stays_text_wherever_it_stands(tmp_path: Path) -> None:
    card = Scorecard(
        models={
            HOSTILE: (
                Metric(
                    path=HOSTILE,
                    value=1.0,
                    n=1,
                    subset=HOSTILE,
                    definition=HOSTILE,
                    note=HOSTILE,
                    name=HOSTILE,
                    meaning=HOSTILE,
                    is_headline=True,
                ),
            )
        },
        summary="",
        tables=(
            Table(
                name="short",
                columns=(HOSTILE,),
                rows=((HOSTILE,),),
                caption=HOSTILE,
                titles={HOSTILE: HOSTILE},
            ),
        ),
        findings=(
            Finding(
                code=HOSTILE,
                severity="warn",
                where=HOSTILE,
                message=HOSTILE,
                example=HOSTILE,
            ),
        ),
        figures=(
            Figure(
                name="f",
                title=HOSTILE,
                caption=HOSTILE,
                panels=(
                    Panel(
                        title=HOSTILE,
                        x=Axis(label=HOSTILE, names=(HOSTILE,)),
                        y=Axis(label=HOSTILE),
                        marks=(
                            Points(x=(0,), y=(0,), notes=(HOSTILE,), label=HOSTILE),
                        ),
                    ),
                ),
            ),
        ),
        settings={"profile": HOSTILE},
    )
    text = written(tmp_path, card)
    page = Page(text)
    page.assert_closed()
    assert "alert(1)" in page.text
    assert "\x1b" not in text
    assert "\u202e" not in text
    picture = (tmp_path / "figures" / "f.svg").read_text()
    assert "<script" not in picture
    assert "<img" not in picture
    # the only comments are those that name a text
    assert picture.count("-->") == picture.count("<!--")


@given(st.text(), st.text())
def test_any_text_inside_an_element_is_read_back_as_text(
    inside: str, title: str
) -> None:
    page = Page(element("p", inside, title=title))
    assert [tag for tag, _ in page.tags] == ["p"]


def test_a_headline_says_what_it_is_what_it_means_and_where_it_stands(
    page: Page,
) -> None:
    for words in (
        "Area under the curve auroc higher is better How well it tells yes from no.",
        "lab/m 0.811 0.811 ± 0.004 [0.800, 0.820] 90 of 100 all >= 0.85 fail",
        "F1 f1 Both in one. lab/m n/a",
    ):
        assert words in page.text


def test_numbers_come_before_their_definition(page: Page) -> None:
    _, metrics = page.text.split("Headline metrics: meaning and definition", 1)
    assert metrics.index("lab/k 0.900") < metrics.index("auroc@1")


def test_a_definition_of_its_own_names_the_model_that_has_it(tmp_path: Path) -> None:
    first, second = CARD.models["lab/m"][0], CARD.models["lab/k"][0]
    other = replace(second, definition="auroc@1; B_used=1999")
    models = {"lab/m": (first,), "lab/k": (other,)}
    page = Page(written(tmp_path, replace(CARD, models=models, figures=())))
    assert "lab/m: auroc@1 lab/k: auroc@1; B_used=1999" in page.text


def test_results_begin_with_models_by_headline_metrics(page: Page) -> None:
    _, rest = page.text.split("Results Below each value: its interval", 1)
    table, _ = rest.split("Findings What a reader", 1)
    assert (
        "model Area under the curve higher is better F1 "
        "lab/m 0.811 [0.800, 0.820] n = 90 of 100 target >= 0.85 fail n/a n = 0 "
        "lab/k 0.900 n = 100 - "
    ) in table


def test_columns_have_words_above_their_keys(page: Page) -> None:
    assert "Pooled rate micro. rate" in page.text


def test_a_metric_that_is_no_headline_stands_among_the_details_only(page: Page) -> None:
    results, rest = page.text.split("Findings What a reader", 1)
    assert "count@1(things)" not in results
    assert "detail - 7" in rest


def test_what_the_input_has_nothing_for_is_said_with_the_findings(
    tmp_path: Path, page: Page
) -> None:
    card = replace(CARD, not_available=(f"ranking: {HOSTILE}",), figures=())
    text = written(tmp_path, card)
    Page(text).assert_closed()
    _, findings = Page(text).text.split("Findings What a reader", 1)
    assert "Not available (1) ranking: " in findings
    assert "Not available" not in page.text


def test_an_undefined_number_is_neither_nought_nor_blank(page: Page) -> None:
    assert "lab/k n/a 5678" in page.text
    assert "lab/m 0.123 1234" in page.text
    assert "cost ?" in page.text
    assert "cost not known: a price is missing" in page.text


def test_what_must_be_known_first_stands_before_the_first_number(page: Page) -> None:
    before, _ = page.text.split("Results Below each value", 1)
    assert "3 tasks that the settings need are missing from the run" in before
    assert "1 findings are errors" in before


def test_what_was_unfinished_changed_or_unused_is_said() -> None:
    card = replace(CARD, missing=0, stale=2, findings=())
    reported = replace(REPORTED, scorecard=card, changed_settings=("gold", "posts"))
    assert list(notices(reported, {**COURSE, "partial": True})) == [
        "Partial: the run was unfinished when it was scored.",
        "Scored with other input files than those of the run's start: gold, posts.",
        "2 stored answers are not used under these settings.",
    ]
    sound = replace(REPORTED, scorecard=replace(card, stale=0))
    assert list(notices(sound, COURSE)) == []


def test_what_each_unit_cost_is_a_row_where_the_run_says_it() -> None:
    taken = {"n": 4, "tokens_in": 2500.0, "tokens_out": 3.5, "cost_usd": None}
    (table,) = costs({**COURSE, "models": {"m": {"per": {"record": taken}}}})
    assert Page(str(table)).text.endswith("m record 4 2,500.0 3.5 n/a")
    assert list(costs({**COURSE, "models": {}})) == list(costs(COURSE)) == []


def test_errors_come_before_remarks(page: Page) -> None:
    assert page.text.index("A leak.") < page.text.index("Some drift.")


def test_what_the_numbers_do_not_show_comes_after_the_findings(page: Page) -> None:
    assert page.text.index("Some drift.") < page.text.index(
        "What the numbers do not show They are but four."
    )
    assert page.text.count("They are but four.") == 1


def test_tables_begin_with_the_headline_table(text: str) -> None:
    page = Page(text)
    assert page.text.index("Look here first.") < page.text.index("One row a model.")
    assert "are in first.csv" in page.text
    # half an interval is none, what no row has is left out, long names may be broken
    assert "micro.<wbr>rate<" in text
    assert "micro.<wbr>rate.<wbr>lo" in text
    assert "x.<wbr>hi" in text
    assert "replicate" not in page.text


def test_an_interval_stands_below_its_value(text: str) -> None:
    assert '0.500<span class="ends">[0.251, 0.749]</span>' in text
    assert "rate.<wbr>hi" not in text
    assert '<td class="n">0.400</td>' in text


def test_settings_that_differ_stand_beside_their_default(page: Page) -> None:
    assert "Profile siftlog" in page.text
    assert "tau 0.4 0.5" in page.text


def test_no_path_and_no_clock_is_in_the_page(text: str, tmp_path: Path) -> None:
    assert "/somewhere" not in text
    assert str(tmp_path) not in text
    assert written(tmp_path) == text


def test_a_million_rows_make_no_larger_page(tmp_path: Path) -> None:
    sizes = []
    for rows in (1_000, 100_000):
        text = written(tmp_path / str(rows), replace(CARD, figures=()), long=rows)
        assert f"long (first 20 of {rows:,} rows)" in Page(text).text
        sizes.append(len(text))
    assert abs(sizes[0] - sizes[1]) < 10


def test_a_reader_who_hears_the_page_hears_all_of_it(page: Page) -> None:
    (root,) = page.named("html")
    assert root["lang"] == "en"
    assert all(image["alt"] for image in page.named("img"))
    assert len(page.named("caption")) == len(page.named("table"))
    assert all(head["scope"] for head in page.named("th"))
    anchors = {attributes.get("id") for _, attributes in page.tags}
    assert all((link["href"] or "")[1:] in anchors for link in page.named("a"))


def test_every_figure_is_inside_the_page(page: Page) -> None:
    pictures = [
        base64.b64decode((image["src"] or "").partition(",")[2])
        for image in page.named("img")
    ]
    # and that of the headline metrics
    assert len(pictures) == len(CARD.figures) + 1
    assert all(b"</svg>" in picture for picture in pictures)


def test_a_scoring_without_numbers_draws_no_figure(tmp_path: Path) -> None:
    page = Page(written(tmp_path, replace(CARD, figures=(), models={})))
    assert "There is no metric." in page.text
    assert not page.named("img")
    assert not (tmp_path / "figures").exists()
