"""explain on reviews: what is told, in which words, and how wide."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.screening.data import ArticleText
from jobs.screening.explain_inputs import explain_inputs, page
from jobs.screening.graph import Graph
from jobs.screening.negatives_trace import BOXES, trace_negatives
from jobs.screening.settings import ScreeningSettings
from runner.errors import DatasetError, UsageError
from store.document import WIDTH
from store.printable import display_width
from tests.jobs.screening.corpora import World, write_tables

NEAR = [str(paper) for paper in range(11, 25)]
"""What the review 1 includes; its relations share the first of them."""


def world(relations: int) -> World:
    """A review with relations that bring two candidates each, one of them common."""
    edges = [("1", paper) for paper in [*NEAR, "30"]]
    for number in range(relations):
        other = f"2{number}"
        edges += [(other, NEAR[0]), (other, NEAR[number]), (other, "40")]
        edges += [(other, f"5{number}"), (other, "31")]
    readable = {paper for _, paper in edges} - {"30", "31"}
    return World(
        edges=tuple(edges),
        readable=frozenset(readable),
        exclusions=(("1", "40", "ongoing"),),
    )


def told(relations: int, **settings: Any) -> str:
    corpus = world(relations).corpus()
    chosen = ScreeningSettings(**settings)
    account = trace_negatives(corpus, Graph(corpus), chosen, "1")
    return page(account, plain=chosen.ascii)


def test_every_step_is_told_with_its_counts() -> None:
    text = told(2, negatives=("near-miss", "true-excluded"), seed=3)
    first, lot = min(
        (hashlib.sha256(f"3\x1f1\x1fnear-miss\x1f{p}".encode()).hexdigest(), p)
        for p in ("50", "51")
    )
    for line in (
        "1  Review 1",
        "1. Included: 14 papers with an abstract; without, relating none: 1.",
        "     11  Paper 11",
        "     and 9 more",
        "2. Related: 2 reviews share a paper with it.",
        "     21  Review 21",
        "       shares 1: 11",
        "       shares 2: 11 12",
        "3. Collected: 5 papers with an abstract that they include.",
        "4. Removed: 2 that the review includes itself; 1 without an abstract;",
        "   known exclusions, left to their own kind: 1.",
        "5. Candidates: 3 papers, SHA-256",
        "     40     ongoing  20 21       Paper 40",
        "     51     -        21          Paper 51",
        "6. Draw: by hash, seed 3.",
        "   included: all 14",
        "   near-miss: 2 of 2; 12 short of 14",
        f"        1  {first[:12]}  {lot}",
        "   true-excluded: 0 of 0; 14 short of 14",
    ):
        assert f"{line}\n" in text
    assert "random" not in text
    _, both = text.split("7. Compared: the review and its first near miss")
    assert [line.strip() for line in both.splitlines()[1:5]] == [
        *("1  Review 1", "(no abstract)"),
        *(f"{lot}  Paper {lot}", f"text {lot}"),
    ]


def test_a_review_that_is_not_drawn_is_told_why() -> None:
    assert "not in the set: it includes too few papers." in told(1, min_included=15)
    alone = told(0)
    assert "not in the set: it has no near-miss candidate." in alone
    assert "no related review: nothing is collected" in alone


@pytest.mark.parametrize("relations", range(1, 7))
@pytest.mark.parametrize("plain", [False, True])
def test_the_diagram_is_as_wide_as_a_page(relations: int, *, plain: bool) -> None:
    text = told(relations, ascii=plain)
    lines = text.splitlines()
    top = "+" if plain else "┌"
    boxes = lines[next(at for at, line in enumerate(lines) if line[1:2] == top) :]
    edged = [line for line in boxes if line[1:2] in set("┌│└+|") and line.strip("│| ")]
    assert {display_width(line) for line in lines if len(line) > WIDTH} == set()
    assert len({len(line) for line in edged if line[-1] in "┐│┘+|"}) <= 2
    drawn = [f"2{number}" for number in range(relations)]
    if relations > BOXES:  # the first one shares least
        drawn = drawn[1 : BOXES + 1]
    assert drawn in [line.replace(line[1], " ").split() for line in boxes if line[1:]]
    assert ("further related review" in text) == (relations > BOXES)
    assert "* 11" in text
    assert text.isascii() == plain


def test_titles_from_outside_neither_break_the_boxes_nor_the_page() -> None:
    corpus = world(1).corpus()
    bad = "Z\x1b[31mu\N{COMBINING DIAERESIS}rich \N{CJK UNIFIED IDEOGRAPH-4E2D}\n" * 9
    reviews = dict.fromkeys(corpus.reviews, ArticleText(title=bad))
    odd = replace(corpus, reviews=reviews)
    account = trace_negatives(odd, Graph(odd), ScreeningSettings(), "1")
    for plain in (False, True):
        text = page(account, plain=plain)
        assert "\x1b" not in text
        assert {display_width(line) <= WIDTH for line in text.splitlines()} == {True}
    assert text.isascii()


def test_ids_of_any_length_fit_the_page() -> None:
    near = [f"{number}{'9' * WIDTH}" for number in range(12)]
    edges = [("1", paper) for paper in near] + [("2", near[0]), ("2", near[-1])]
    edges += [("2", f"8{paper}") for paper in near]
    corpus = World(edges=tuple(edges), readable=frozenset(p for _, p in edges)).corpus()
    text = page(trace_negatives(corpus, Graph(corpus), ScreeningSettings(), "1"))
    assert max(map(display_width, text.splitlines())) == WIDTH
    assert text.count("       shares 2: 0999") == 1


def test_a_review_without_a_row_of_its_own_is_told(tmp_path: Path) -> None:
    tables = write_tables(
        tmp_path,
        {
            "reviews": ["pmid,title", "2,Second"],
            "references": ["citing_pmid,ref_pmid", "1,7", "2,7", "2,8"],
            "papers": ["pmid,title,abstract", "7,Seven,text", "8,,text"],
        },
    )
    found = explain_inputs(ScreeningSettings(tables=tables, min_included=1), ("1",))
    assert found.text.startswith("1  (no title)\n")
    assert "not in the set: neither it nor any paper" in found.text
    assert found.json["candidates"] == [
        {"paper": "8", "title": "", "by": ("2",), "known": ""}
    ]
    with pytest.raises(DatasetError, match="nearest are 1, 2"):
        explain_inputs(ScreeningSettings(tables=tables), ("11",))
    with pytest.raises(DatasetError, match="name the one to explain"):
        explain_inputs(ScreeningSettings(tables=tables), ())
    with pytest.raises(UsageError, match="one review at a time"):
        explain_inputs(ScreeningSettings(tables=tables), ("1", "2"))


@pytest.mark.realdata
def test_the_first_review_of_a_size_to_follow_is_told(realdata: Path) -> None:
    tables = realdata / "near_miss" / "three_tables_schizophrenia"
    found = explain_inputs(ScreeningSettings(tables=tables), ())
    told: Any = found.json
    assert told["review"] == "9000022"
    assert told["n_included"] == 19
    assert {each["review"]: each["shared"] for each in told["related"]} == {
        "9000088": ("4920",),
        "9000180": ("5595",),
    }
    assert told["n_related_papers"] == 23
    candidates = [each["paper"] for each in told["candidates"]]
    assert len(candidates) == 21
    assert candidates[:5] == ["1114", "12341", "12343", "1576", "22808"]
    assert told["candidates_sha256"] == (
        "5260b163001b3bc0c8dae64bb323ec23d034f6946e4715388b56d04148bb5174"
    )
    assert "21 candidates" in found.text
