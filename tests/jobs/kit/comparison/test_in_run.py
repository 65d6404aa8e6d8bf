"""Models of one run in its headline metrics: who is best, and who is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

from jobs.kit.comparison.in_run import MetricVerdicts, run_verdicts
from jobs.kit.comparison.models import ComparisonOptions, Side, compare_all
from runner.scorecard import Comparable, ItemValues

PAPERS = [f"p{n}" for n in range(40)]


def values(right: Sequence[float], family: str = "") -> ItemValues:
    items = PAPERS[: len(right)]
    return ItemValues(
        kind="mean",
        items=items,
        clusters=items,
        cluster="paper",
        first=list(right),
        definition="accuracy@1",
        family=family,
    )


GOOD = [1.0] * 38 + [0.0] * 2
BAD = [0.0, 1.0] * 20


def of(**models: Sequence[float]) -> Mapping[str, Comparable]:
    return {name: {"accuracy": lambda v=v: values(v)} for name, v in models.items()}


def verdicts(models: Mapping[str, Comparable], **settings: object) -> MetricVerdicts:
    return run_verdicts(models, ["accuracy"], SimpleNamespace(**settings))["accuracy"]


def test_the_best_model_is_better_than_each_other_one() -> None:
    found = verdicts(of(a=BAD, b=GOOD, c=BAD))
    assert found.best(["a", "b", "c"]) == "b"
    assert set(found.decided) == {("b", "a"), ("b", "c")}
    # one that was not compared might be better
    assert found.best(["a", "b", "c", "d"]) is None
    assert found.best(["b"]) is None


def test_two_equal_models_have_no_best() -> None:
    found = verdicts(of(a=GOOD, b=GOOD, c=BAD))
    assert found.best(["a", "b", "c"]) is None
    assert set(found.decided) == {("a", "c"), ("b", "c")}


def test_few_papers_have_no_best() -> None:
    found = verdicts(of(a=GOOD[:5], b=[0.0] * 5))
    assert found.has_too_few
    assert found.decided == ()


def test_the_settings_of_the_job_decide() -> None:
    assert verdicts(of(a=GOOD, b=BAD), min_clusters=41).has_too_few
    # without resamples there is no interval, and no verdict
    assert verdicts(of(a=GOOD, b=BAD), boot_b=0).decided == ()


def test_verdicts_are_those_of_a_comparison_of_all_metrics() -> None:
    models: dict[str, Comparable] = {
        "a": {
            "accuracy": lambda: values(BAD),
            "other": lambda: values(BAD[::-1]),
            "apart": lambda: values(GOOD, family="apart"),
        },
        "b": {
            "accuracy": lambda: values(BAD[2:] + GOOD[:2]),
            "other": lambda: values(GOOD),
            "apart": lambda: values(GOOD, family="apart"),
        },
    }
    sides = [
        Side(run="", number=None, model=name, comparable=comparable, seq=0)
        for name, comparable in models.items()
    ]
    (match,) = compare_all([(sides[0], sides[1])], (), ComparisonOptions())
    whole = {metric.path: metric.verdict for metric in match.compared}
    found = run_verdicts(models, ["accuracy"], SimpleNamespace())
    assert set(found) == {"accuracy"}
    assert found["accuracy"].verdicts["b", "a"] == whole["accuracy"]


def test_a_job_that_names_families_has_only_these_compared() -> None:
    models: dict[str, Comparable] = {
        name: {
            "accuracy": lambda v=v: values(v, family="accuracy"),
            "detail": lambda v=v: values(v),
        }
        for name, v in {"a": GOOD, "b": BAD}.items()
    }
    compared = run_verdicts(models, ["detail", "accuracy"], SimpleNamespace())
    assert list(compared) == ["accuracy"]
    assert compared["accuracy"].best(["a", "b"]) == "a"
    # but where nothing else is wanted
    assert list(run_verdicts(models, ["detail"], SimpleNamespace())) == ["detail"]


def test_a_metric_that_no_two_models_share_is_not_there() -> None:
    assert run_verdicts(of(a=GOOD), ["accuracy", "none"], SimpleNamespace()) == {}
