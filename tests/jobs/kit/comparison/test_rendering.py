"""A comparison as text, JSON and CSV: aligned, within 80 columns, harmless."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.comparison import rendering
from jobs.kit.comparison.models import (
    ComparedModels,
    ComparisonOptions,
    compare_models,
    largest_gaps,
)
from jobs.kit.comparison.page import comparison_text, conclusion, items_text
from jobs.kit.comparison.pareto_front import Expense, FrontPoint, build_front
from jobs.kit.comparison.rendering import print_tables
from runner.scorecard import Labels
from runner.table_files import csv_lines
from runner.table_rendering import typeset
from store.document import WIDTH
from tests.jobs.kit.comparison.item_columns import means, pooled, side
from tests.latex import assert_compiles

DRAWING = ComparisonOptions(b=100, form="percentile")
HEAD = "metric         A      B  B - A [95% interval]     p (Holm)   n  B is"
HOSTILE = "p1\x1b]0;x\x07\nA better\u202e=SUM(1)"


def match(paths: tuple[str, ...] = ("avg_score",)) -> ComparedModels:
    low = means({f"p{n}": n / 40 for n in range(30)})
    high = means({f"p{n}": 0.9 + n / 400 for n in range(2, 33)})
    verdicts = means({f"p1/{n}": n % 2 for n in range(9)})
    ratio = pooled({f"p{n}": (n, n + 1.0) for n in range(30)})
    a = side({**dict.fromkeys(paths, low), "v": verdicts, "r": ratio, "a": low})
    b = side({**dict.fromkeys(paths, high), "v": verdicts, "r": ratio})
    (made,) = compare_models([(a, b)], (), DRAWING)
    return made


def test_the_table_of_a_match() -> None:
    lines = comparison_text([match()], None, DRAWING).splitlines()
    assert lines[:6] == [
        "A  r  m",
        "B  r  m",
        "",
        HEAD,
        "avg_score  0.388  0.939  +0.551 [+0.495, +0.623]    0.0003  28  better",
        "v          0.444  0.444  +0.000                          1   9  too few",
    ]
    assert "left out   items 2 only in A, 3 only in B: avg_score" in lines
    assert "McNemar    p, if items were independent: v 1" in lines
    assert "only A     has a" in lines
    text = " ".join(" ".join(lines).split())
    assert (
        "intervals at 0.95: percentile bootstrap by paper, B=100, seed=20260118" in text
    )
    assert "p side swaps by paper, sign flips by paper" in text
    assert (
        "p (Holm) over 1 pair of models, within: all metrics (3 tests) verdicts "
        f"{DRAWING.rule.sentence('paper')}"
    ) in text
    assert text.endswith("; no other difference is certain.")


def test_a_wide_terminal_shows_every_column() -> None:
    lines = comparison_text([match()], None, DRAWING, 160).splitlines()
    assert lines[3].split() == [
        *("metric", "key", "A", "B", "B", "-", "A", "[95%", "interval]", "p"),
        *("p", "(Holm)", "won/lost/tied", "n", "B", "is"),
    ]
    assert "0.0001    0.0003  28/0/0         28  better" in lines[4]


@given(st.text("abc.~_", min_size=1, max_size=64), st.sampled_from((1.0, 99.0, -9.0)))
def test_every_row_of_the_table_fits_80_columns(path: str, scale: float) -> None:
    a = means({f"p{n}": scale * n / 20 for n in range(12)})
    b = means({f"p{n}": scale * (n % 7) / 7 for n in range(12)})
    (made,) = compare_models([(side({path: a}), side({path: b}))], (), DRAWING)
    head, row = comparison_text([made], None, DRAWING).splitlines()[3:5]
    assert max(map(len, (head, row))) <= WIDTH
    assert row.endswith(f"12  {made.compared[0].verdict}")
    assert row.rindex(made.compared[0].verdict) == head.rindex("B is")


def test_a_conclusion_names_what_is_certain_with_its_size() -> None:
    few, many = ({f"p{n}": 0.0 for n in range(k)} for k in (4, 30))
    low, high = means(many), means(dict.fromkeys(many, 0.25))
    lower = means(dict.fromkeys(many, 0.25), lower_is_better=True)
    zero = means(many, lower_is_better=True)
    a = replace(side({"s": low, "w": zero, "f": means(few)}), model="x/a")
    b = replace(side({"s": high, "w": lower, "f": means(few)}), model="y/b")
    (made,) = compare_models([(a, b)], (), DRAWING)
    assert conclusion(made, DRAWING) == (
        "y/b is better than x/a in s by 0.250 [0.250, 0.250]; it is worse in w by "
        "0.250 [0.250, 0.250]; no other difference is certain."
    )
    (back,) = compare_models([(b, a)], ["s"], DRAWING)
    assert conclusion(back, DRAWING) == (
        "x/a is worse than y/b in s by 0.250 [0.250, 0.250]."
    )


def test_a_conclusion_without_a_winner_says_why() -> None:
    values = {f"p{n}": n % 2 / 2 for n in range(30)}
    a, b = side({"m": means(values)}), replace(side({"m": means(values)}), run="s")
    (same,) = compare_models([(a, b)], (), DRAWING)
    assert conclusion(same, DRAWING) == (
        "No difference between s and r is certain. m differs by +0.000 [+0.000, "
        "+0.000] over 30 papers."
    )
    sides = side({"m": means({"p": 0.5})}), side({"m": means({"p": 1.0})})
    (few,) = compare_models([sides], (), DRAWING)
    assert conclusion(few, DRAWING) == (
        "1 paper is too few to tell m from m; 10 are needed. m differs by +0.500."
    )
    apart = side({"m": means({"p": 0.5})}), side({"m": means({"q": 1.0})})
    (none,) = compare_models([apart], (), DRAWING)
    assert "no item in common" in conclusion(none, DRAWING)


def test_few_papers_have_no_winner() -> None:
    a = means({f"p{n}": 0.1 for n in range(4)})
    b = means({f"p{n}": 0.2 for n in range(4)})
    (made,) = compare_models([(side({"m": a}), side({"m": b}))], (), DRAWING)
    table = comparison_text([made], None, DRAWING)
    assert "too few" in table.splitlines()[4]
    assert "result     4 papers are too few" in table
    (enough,) = compare_models(
        [(side({"m": a}), side({"m": b}))], (), replace(DRAWING, min_clusters=4)
    )
    # four papers can give no p below 1/8, however few are enough
    assert enough.compared[0].verdict == "undecided"


def test_where_lower_is_better_the_verdict_says_so() -> None:
    a = means({f"p{n}": 0.1 for n in range(10)}, lower_is_better=True)
    b = means({f"p{n}": 0.2 for n in range(10)}, lower_is_better=True)
    (made,) = compare_models([(side({"m": a}), side({"m": b}))], (), DRAWING)
    told = comparison_text([made], None, DRAWING)
    assert "worse" in told.splitlines()[4]
    assert "m ↓" in told.splitlines()[4]
    assert "↓ lower is better" in told
    (pair,) = rendering.as_json([made], None, DRAWING, ())["pairs"]
    assert pair["metrics"]["m"]["lower_is_better"]


def test_undefined_is_n_a_and_never_a_number() -> None:
    a, b = means({"p1": None}), means({"p1": 1.0, "p2": 0.5})
    (made,) = compare_models([(side({"m": a}), side({"m": b}))], (), DRAWING)
    lines = comparison_text([made], None, DRAWING).splitlines()
    assert lines[3:5] == [
        "left out   no item in common: m",
        "left out   items 1 only in B, 1 in both without a value: every metric",
    ]
    (said,) = rendering.as_json([made], None, DRAWING, [])["pairs"]
    metric = said["metrics"]["m"]
    assert (metric["a"], metric["difference"], metric["lo"], metric["test"]) == (
        *(None, None, None, None),
    )


def test_one_paper_has_a_difference_and_no_interval() -> None:
    a, b = means({"p1": 0.25, "p2": 0.5}), means({"p1": 0.5})
    (made,) = compare_models([(side({"m": a}), side({"m": b}))], (), DRAWING)
    row = comparison_text([made], None, DRAWING).splitlines()[4]
    assert row.split()[:5] == ["m", "0.250", "0.500", "+0.250", "1"]
    assert row.endswith("1  too few")
    values = "values     are over the n items that both have (such as 1 of 2 for m)"
    assert values in comparison_text([made], None, DRAWING)


def test_nothing_left_out_is_not_a_line() -> None:
    same = side({"m": means({"p1": 1.0, "p2": 0.0})})
    (made,) = compare_models([(same, same)], (), DRAWING)
    text = comparison_text([made], None, DRAWING)
    assert "left out" not in text
    assert "the n items that both have" not in text


def test_replicates_without_a_value_are_said() -> None:
    # few of the papers have a denominator
    a = pooled({f"p{n}": (1.0, float(n == 0)) for n in range(4)})
    (made,) = compare_models([(side({"m": a}), side({"m": a}))], (), DRAWING)
    assert "interval of m: undefined in" in comparison_text([made], None, DRAWING)


def test_names_and_keys_from_outside_stay_on_their_line() -> None:
    a = means({HOSTILE: 1.0, "p2": 0.0}, clusters=["p1", "p2"])
    b = means({HOSTILE: 0.0, "p2": 0.0}, clusters=["p1", "p2"])
    sides = side({"m": a}, HOSTILE), side({"m": b}, HOSTILE)
    (made,) = compare_models([sides], (), DRAWING)
    told = comparison_text([made], None, DRAWING)
    told += items_text("m", made, largest_gaps(made, "m", 5))
    assert not [line for line in told.splitlines() if line.startswith("A better")]
    (shown,) = [line for line in told.split("\n") if line.endswith("=SUM(1)")][-1:]
    assert shown.startswith("1.000  0.000  -1.000  p1")


def test_equal_items_are_said_to_be_equal() -> None:
    same = side({"m": means({"p1": 1.0, "p2": 0.0})})
    (made,) = compare_models([(same, same)], (), DRAWING)
    assert "no item differs" in items_text("m", made, ())


def test_json_holds_what_the_table_shows_and_the_listed_items() -> None:
    made = match()
    said = rendering.as_json(
        [made], None, DRAWING, [largest_gaps(made, "avg_score", 1)]
    )
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert said["family"] == "1 pair of models, within: all metrics (3 tests)"
    assert (said["b"], said["seed"], said["level"]) == (100, 20260118, 0.95)
    (pair,) = said["pairs"]
    metric = pair["metrics"]["avg_score"]
    (own,) = [each for each in made.compared if each.path == "avg_score"]
    assert metric["difference"] == own.gap.value
    assert metric["verdict"] == "better"
    assert metric["test"]["p_holm"] == own.p_holm
    assert (metric["n"], metric["only_a"], metric["only_b"]) == (28, 2, 3)
    assert pair["a"] == {"run": "r", "scoring": None, "model": "m", "seq": 7}
    assert pair["only_a"] == ["a"]
    assert pair["items"][0]["item"] == "p2"


def test_csv_has_a_row_for_each_metric_and_guards_spreadsheets() -> None:
    made = match(("=SUM(1)",))
    file = io.StringIO(csv_lines(rendering.metric_rows([made])))
    rows = list(csv.DictReader(file))
    assert [row["metric"] for row in rows] == ["'=SUM(1)", "v", "r"]
    ratio = rows[-1]
    assert (ratio["test"], ratio["p"]) == ("side swaps by paper", "1.0")
    assert list(ratio)[-8:-5] == ["wins", "losses", "ties"]
    assert float(rows[0]["difference"]) == made.compared[0].gap.value


def interval(place: FrontPoint) -> list[str]:
    ends = place.quality.interval
    return [f"[{ends.lo:.3f},", f"{ends.hi:.3f}]"]


def test_cost_and_latency_stand_beside_quality_and_say_who_dominates() -> None:
    made = match()
    cheap, dear = Expense(usd=0.0123, seconds=1.5), Expense(usd=None, seconds=2.25)
    sides = [replace(made.a, model="poor"), replace(made.b, model="good")]
    (both,) = compare_models([(sides[0], sides[1])], (), DRAWING)
    spent = {sides[0].key: dear, sides[1].key: cheap}
    found = build_front([both], "avg_score", spent, "paper", DRAWING)
    assert found is not None
    lines = comparison_text([both], found, DRAWING).splitlines()
    at = lines.index("avg_score, cost and latency")
    assert [line.split() for line in lines[at + 1 : at + 6]] == [
        ["quality", "95%", "interval", "USD/paper", "median", "s", "side"],
        ["0.388", *interval(found.points[0]), "n/a", "2.25", "r", "poor"],
        ["0.939", *interval(found.points[1]), "0.0123", "1.5", "r", "good"],
        ["items", "28", "that", "all", "sides", "have"],
        ["dominated", "r", "poor", "by", "r", "good", "(quality", "better)"],
    ]
    told = rendering.as_json([both], found, DRAWING, ())["front"]
    assert [place["model"] for place in told["sides"]] == ["poor", "good"]
    (dominance,) = told["sides"][0]["dominated_by"]
    assert (dominance["model"], dominance["quality"]) == ("good", "better")
    assert (told["sides"][0]["usd"], told["sides"][1]["seconds"]) == (None, 1.5)


def test_agreement_is_told_of_metrics_that_are_right_or_wrong() -> None:
    a = means({"p1": 1.0, "p2": 1.0, "p3": 0.0, "p4": 0.0})
    b = means({"p1": 1.0, "p2": 0.0, "p3": 0.0, "p4": 0.0})
    score = means({"p1": 0.5, "p2": 0.0, "p3": 0.1, "p4": 0.0})
    sides = side({"v": a, "s": a}), side({"v": b, "s": score})
    (made,) = compare_models([sides], (), DRAWING)
    assert (
        "agreement  in being right, with kappa and AC1: v 0.750 0.500 0.529"
        in comparison_text([made], None, DRAWING).splitlines()
    )
    (pair,) = rendering.as_json([made], None, DRAWING, ())["pairs"]
    assert pair["metrics"]["s"]["agreement"] is None
    assert pair["metrics"]["v"]["agreement"]["kappa"] == pytest.approx(0.5)


def labels(said: str, items: str) -> Labels:
    """One letter an item; "-" where nothing was said."""
    return Labels(
        what="answer",
        categories=("n", "y"),
        items=list(items),
        assigned=[None if each == "-" else each for each in said],
    )


def test_labels_are_agreed_on_whether_right_or_wrong() -> None:
    score = means({"p1": 1.0, "p2": 0.0})
    a = replace(side({"m": score}), labels=lambda: labels("yyn-", "abcd"))
    b = replace(side({"m": score}), labels=lambda: labels("ynn", "abc"))
    (made,) = compare_models([(a, b)], (), DRAWING)
    told = comparison_text([made], None, DRAWING).splitlines()
    agreed = "of the answers on 3 items, with kappa and AC1: 0.667 0.400 0.333"
    assert f"agreement  {agreed}" in told
    (pair,) = rendering.as_json([made], None, DRAWING, ())["pairs"]
    assert (pair["labels"]["what"], pair["labels"]["n"]) == ("answer", 3)


def test_a_metric_has_its_name_and_its_key_where_both_fit() -> None:
    low = means({f"p{n}": n / 40 for n in range(30)})
    high = means({f"p{n}": 0.9 for n in range(30)})
    path = "near-miss.micro.as_include.sensitivity"
    names = {path: "Sensitivity, undecided as included, near misses", "auroc": "AUROC"}
    a, b = (
        replace(side({path: values, "auroc": values}), names=names)
        for values in (low, high)
    )
    (made,) = compare_models([(a, b)], (), DRAWING)
    lines = comparison_text([made], None, DRAWING).splitlines()
    long, short = lines[4:6]
    assert long.startswith("Sensitivity, undecided as ")
    assert "…  0." in long
    assert short.startswith("AUROC  ")
    wide = comparison_text([made], None, DRAWING, 180).splitlines()[4]
    assert wide.startswith(f"{names[path]}  {path}  ")
    (shown,) = rendering.as_json([made], None, DRAWING, ())["pairs"]
    assert (
        shown["metrics"][path]["name"]
        == "Sensitivity, undecided as included, near misses"
    )


def test_a_comparison_is_a_table_for_a_paper(tmp_path: Path) -> None:
    own = match()
    named = replace(own, a=replace(own.a, names={"avg_score": "Score"}))
    (table,) = print_tables([named], None, DRAWING)
    first = dict(
        zip((column.name for column in table.columns), table.rows[0], strict=True)
    )
    assert first["Metric"] == "Score"
    assert first["Better"] == "higher"
    assert first["Verdict on B"] == "better"
    assert first["n"] == 28
    assert first["Key"] == "avg_score"
    assert first["B - A"] == own.compared[0].gap.value
    made = typeset([table], "latex")
    assert r"\begin{tabular}" in made
    assert " % avg_score" in made
    assert_compiles(made, tmp_path)
