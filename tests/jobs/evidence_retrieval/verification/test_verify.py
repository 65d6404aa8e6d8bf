"""The second reading shares nothing with the first: the standard library alone.

Stored results by fold: set A, whose summary `jobs.kit.metrics` makes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.evidence_retrieval.verification.definitions import definitions_of
from jobs.evidence_retrieval.verification.verify import (
    StoredComparison,
    SummaryVerification,
    verify,
)
from jobs.kit.metrics.classification import auroc
from jobs.kit.metrics.ranking import evaluate, hits
from jobs.kit.metrics.selective import assign, gate_metrics
from tests.jobs.evidence_retrieval.stored_results import (
    PUBLISHED_CV,
    TAU_POS,
    Row,
    rows_of,
    summary_of,
)
from tests.jobs.kit.metrics.set_a import SetA, set_a

FIRST = "fold_results[0].test_metrics"


@dataclass(frozen=True)
class Stored:
    """Set A with its rows and a summary that tests may change."""

    a: SetA
    rows: list[Row]
    summary: dict[str, Any]

    def verified(
        self, change: Callable[[dict[str, Any]], object], profile: str = "siftlog"
    ) -> SummaryVerification:
        summary = copy.deepcopy(self.summary)
        change(summary)
        return verify(
            self.rows,
            summary,
            choices=definitions_of(EvidenceSettings(profile=profile)),
        )

    @cached_property
    def unchanged(self) -> SummaryVerification:
        return self.verified(lambda _: None)

    def with_value(self, path: str, value: object) -> StoredComparison:
        """What becomes of *value* where *path* holds it."""
        (found,) = (
            each
            for each in self.verified(lambda s: put(s, path, value)).comparisons
            if each.path == path
        )
        return found


def put(summary: dict[str, Any], path: str, value: object) -> None:
    """Set what stands at a path such as `a[0].b.c`, whose last keys may hold points."""
    if path.startswith("aggregated_metrics."):
        name, _, key = path.removeprefix("aggregated_metrics.").rpartition(".")
        summary["aggregated_metrics"][name][key] = value
        return
    head, *keys, last = path.split(".")
    at = summary["fold_results"][
        int(head.removeprefix("fold_results[").removesuffix("]"))
    ]
    for key in keys:
        at = at[key]
    at[last] = value


@pytest.fixture(scope="module")
def stored() -> Stored:
    a = set_a()
    return Stored(a=a, rows=rows_of(a), summary=summary_of(a))


def test_every_number_of_a_full_size_summary_is_equal(stored: Stored) -> None:
    found = stored.unchanged
    assert found.failures == ()
    assert found.tally == {"equal": 340, "not computable": 6}
    assert found.largest_difference is not None
    assert found.largest_difference < 1e-12
    unseen = {c.path for c in found.comparisons if c.verdict == "not computable"}
    assert unseen == {
        "config.seed",
        *(
            f"fold_results[{k}].threshold_selection.screening.sensitivity"
            for k in range(5)
        ),
    }


def test_a_summary_with_other_definitions_is_equal_under_its_profile(
    stored: Stored,
) -> None:
    summary = summary_of(stored.a, PUBLISHED_CV)
    own = verify(
        stored.rows,
        summary,
        choices=definitions_of(EvidenceSettings(profile="published-cv")),
    )
    assert own.tally == {"equal": 340, "not computable": 6}
    ours = verify(stored.rows, summary)
    assert ours.failures == ()
    assert ours.tally["other definition"] == 114
    assert ours.tally["differs"] == 0
    by_path = {c.path: c.why for c in ours.comparisons}
    assert by_path[f"{FIRST}.deployment.neg_rate"] == "gate_edge=le"
    assert by_path["aggregated_metrics.ne_gate.tpr_at_1pct_fpr.std"] == (
        "tpr_rule=nearest, ddof=0"
    )


@pytest.fixture(scope="module")
def first(stored: Stored) -> Any:
    """The rows of the first fold."""
    return stored.a.fold == 0


def test_states_at_the_edge_and_those_of_the_column_are_told_apart(
    stored: Stored, first: Any
) -> None:
    a = stored.a
    at_edge = gate_metrics(
        a.y[first], assign(a.p[first], a.tau_neg[first], TAU_POS, edge="le")
    )
    path = f"{FIRST}.deployment.neg_rate"
    found = stored.with_value(path, at_edge.rates["NEG"].value)
    assert (found.verdict, found.why) == ("other definition", "gate_edge=le")
    rows = [{**row, "state": "POS"} for row in stored.rows]
    summary = copy.deepcopy(stored.summary)
    put(summary, f"{FIRST}.deployment.pos_rate", 1.0)
    column = verify(rows, summary)
    (found,) = (
        c for c in column.comparisons if c.path == f"{FIRST}.deployment.pos_rate"
    )
    assert (found.verdict, found.why) == ("other definition", "states=column")


def test_a_probability_at_a_threshold_that_does_not_count_is_named(
    stored: Stored,
) -> None:
    rows = [{**row, "tau_pos": "0.679"} for row in stored.rows]
    summary = copy.deepcopy(stored.summary)
    path = f"{FIRST}.deployment.alert_precision"
    inside = [row for row in rows if row["fold_id"] == "0"]
    above = [row for row in inside if float(row["p4_prob_calibrated"]) > 0.679]
    at = [row for row in inside if float(row["p4_prob_calibrated"]) == 0.679]
    assert at
    share = sum(row["has_evidence_gold"] == "1" for row in above) / len(above)
    put(summary, path, share)
    found = verify(rows, summary)
    assert [(c.verdict, c.why) for c in found.comparisons if c.path == path] == [
        ("other definition", "strict=True")
    ]


def test_missed_cases_by_the_positives_are_named(stored: Stored, first: Any) -> None:
    a = stored.a
    found = gate_metrics(a.y[first], assign(a.p[first], a.tau_neg[first], TAU_POS))
    compared = stored.with_value(
        f"{FIRST}.deployment.screening_fn_per_1000",
        found.screening_fn_per_1000_positive,
    )
    assert (compared.verdict, compared.why) == (
        "other definition",
        "fn_per_1000=positives",
    )


def ranked_means(stored: Stored, first: Any) -> dict[str, float]:
    a = stored.a
    positive = [int(i) for i in a.index[first & a.y]]
    columns = evaluate(
        hits([a.gold(i) for i in positive], [a.ranked(i) for i in positive]), (5, 10)
    )
    return {name: float(column.mean()) for name, column in columns.items()}


@pytest.mark.parametrize(
    ("key", "stands_for", "why"),
    [
        ("recall@K", "recall@10", "k=10"),
        ("precision@K", "precision@5", "k=5"),
        ("mrr", "mrr@10", "k=10"),
    ],
)
def test_a_fixed_cut_off_under_another_name_is_named(
    stored: Stored, first: Any, key: str, stands_for: str, why: str
) -> None:
    value = ranked_means(stored, first)[stands_for]
    found = stored.with_value(f"{FIRST}.evidence.{key}", value)
    assert (found.verdict, found.why) == ("other definition", why)


def test_a_selected_k_that_is_printed_as_ten_is_named(stored: Stored) -> None:
    evidence = stored.summary["fold_results"][0]["test_metrics"]["evidence"]
    found = stored.with_value(f"{FIRST}.evidence.recall@10", evidence["recall@K"])
    assert (found.verdict, found.why) == ("other definition", "k=selected")


def test_all_queries_in_the_denominator_are_named(stored: Stored, first: Any) -> None:
    value = ranked_means(stored, first)["ndcg@10"]
    share = stored.a.y[first].mean()
    found = stored.with_value(f"{FIRST}.evidence.ndcg@10", value * share)
    assert (found.verdict, found.why) == ("other definition", "queries=all")


def test_a_pooled_value_in_the_place_of_a_mean_of_folds_is_named(
    stored: Stored,
) -> None:
    pooled = auroc(stored.a.y, stored.a.p)
    found = stored.with_value("aggregated_metrics.ne_gate.auroc.mean", pooled)
    assert (found.verdict, found.why) == ("other definition", "over=pooled")


@pytest.mark.parametrize(
    ("path", "change"),
    [
        (f"{FIRST}.ne_gate.auroc", 1e-6),
        (f"{FIRST}.deployment.alert_recall", -1e-3),
        (f"{FIRST}.dynamic_k.median_k", 1.0),
        (f"{FIRST}.evidence.recall@5", 1e-7),
        ("aggregated_metrics.ne_gate.ece.max", 1e-8),
        ("fold_results[3].threshold_selection.tau_neg", 0.01),
    ],
)
def test_a_number_that_no_definition_makes_fails(
    stored: Stored, path: str, change: float
) -> None:
    def shifted(summary: dict[str, Any]) -> None:
        (before,) = (c for c in stored.unchanged.comparisons if c.path == path)
        assert isinstance(before.recomputed, float)
        put(summary, path, before.recomputed + change)

    found = stored.verified(shifted)
    assert [c.path for c in found.comparisons if c.verdict == "differs"] == [path]
    (sentence,) = found.failures
    assert sentence.startswith(f"{path} is stored as ")
    assert sentence.endswith("; 0 more differ (see verification.csv).")


def test_thresholds_that_two_folds_have_swapped_fail(stored: Stored) -> None:
    def swap(summary: dict[str, Any]) -> None:
        one, two = (summary["fold_results"][k]["threshold_selection"] for k in (0, 1))
        one["tau_neg"], two["tau_neg"] = two["tau_neg"], one["tau_neg"]

    found = stored.verified(swap)
    assert found.tally["differs"] == 2
    assert found.failures


def test_a_wrong_number_of_folds_fails(stored: Stored) -> None:
    found = stored.verified(lambda s: s.update(n_folds=4))
    assert [c.path for c in found.comparisons if c.verdict == "differs"] == ["n_folds"]
    found = stored.verified(lambda s: s["fold_results"].pop())
    assert found.failures == (
        "The summary has results of 4 folds and the rows have 5.",
    )


@pytest.mark.parametrize(
    ("remove", "sentence"),
    [
        (
            lambda s: s.pop("fold_results"),
            "The summary has no block fold_results.",
        ),
        (
            lambda s: s["aggregated_metrics"].clear(),
            "The summary has no block aggregated_metrics.",
        ),
        (
            lambda s: s["fold_results"][2].pop("test_metrics"),
            "fold_results[2].test_metrics has no block ne_gate.",
        ),
        (
            lambda s: s["fold_results"][2]["test_metrics"]["evidence"].clear(),
            "fold_results[2].test_metrics has no block evidence.",
        ),
    ],
)
def test_a_block_that_should_be_there_fails_where_it_is_not(
    stored: Stored, remove: Callable[[dict[str, Any]], object], sentence: str
) -> None:
    assert sentence in stored.verified(remove).failures


def test_what_is_not_known_is_said_and_does_not_fail(stored: Stored) -> None:
    found = stored.verified(
        lambda s: s["fold_results"][1]["test_metrics"]["ne_gate"].update(luck=0.7)
    )
    (unknown,) = (c for c in found.comparisons if c.verdict == "unknown key")
    assert unknown.path == "fold_results[1].test_metrics.ne_gate.luck"
    assert unknown.stored == 0.7
    assert found.failures == ()


AREA = 0.8109338369709094
"""Of all rows."""


@pytest.mark.parametrize("beside", [{"value": AREA}, {"value": None}, {}])
def test_an_interval_must_hold_the_value_of_all_rows(
    stored: Stored, beside: dict[str, Any]
) -> None:
    name = "ne_gate.auroc"

    def with_ends(lo: float | None, hi: float | None) -> SummaryVerification:
        return stored.verified(
            lambda s: s.update(
                intervals={name: {**beside, "lo": lo, "hi": hi}},
                definitions={name: "auroc@1"},
                n_defined={name: 5},
            )
        )

    good = with_ends(0.7994849307184938, 0.8220418015652892)
    assert "does not hold" not in " ".join(good.failures)
    assert "does not hold" not in " ".join(with_ends(None, None).failures)
    astray = [s for s in with_ends(0.82, 0.83).failures if "does not hold" in s]
    assert astray == [f"The interval of {name}, 0.82 to 0.83, does not hold {AREA}."]


def test_an_interval_of_another_definition_is_about_its_own_value(
    stored: Stored,
) -> None:
    name = "deployment.screening_fn_per_1000"
    own = {"value": 11.602610587382161, "lo": 6.3, "hi": 17.6}
    found = stored.verified(lambda s: s.update(intervals={name: own}))
    assert found.failures == ()
    (value,) = (c for c in found.comparisons if c.path == f"intervals.{name}.value")
    assert (value.verdict, value.why) == ("other definition", "fn_per_1000=positives")
