"""Estimates of models from the labels of a draw."""

from __future__ import annotations

import io
import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as replace_event

from jobs.kit.labels.any_time import AnyTimeInterval
from jobs.kit.labels.draws import draw, draw_items
from jobs.kit.labels.quality import FieldQuality, field_quality
from jobs.kit.labels.rendering import quality_blocks, quality_json
from jobs.kit.labels.reply_labels import CHOICES
from jobs.kit.metrics.label_estimates import labels_until_nominal
from runner.labelling import LabelChoice, LabelField, ModelLabel
from store.document import as_text
from store.labels.events import Adjudicated, ItemDrawn, LabelRecorded
from store.labels.fold import EventId, ItemField, LabelEntry, LabelSet
from tests.commands import siftlog

ITEMS = [f"paper-{i:03}" for i in range(400)]
DECISION = LabelField(
    name="",
    question="?",
    choices=(
        LabelChoice(value="include", key="i"),
        LabelChoice(value="exclude", key="e"),
        LabelChoice(value="unclear", key="u", is_gold=False),
    ),
)
TRUTH = {
    item: "include" if random.Random(i).random() < 0.4 else "exclude"
    for i, item in enumerate(ITEMS)
}
ERRORS = {"alder": 0.1, "birch": 0.1, "cedar": 0.25}


def replies() -> dict[ItemField, Sequence[ModelLabel]]:
    """Three models that err independently; one did not reply about an item."""
    generator = random.Random(1)
    by_item: dict[ItemField, Sequence[ModelLabel]] = {}
    for item in ITEMS:
        by_item[ItemField(item, "")] = [
            ModelLabel(
                item=item,
                field="",
                model=model,
                replicate=1,
                value=None
                if (model, item) == ("cedar", ITEMS[0])
                else TRUTH[item]
                if generator.random() >= error
                else {"include": "exclude", "exclude": "include"}[TRUTH[item]],
            )
            for model, error in ERRORS.items()
        ]
    return by_item


def label_set(events: Sequence[LabelRecorded | ItemDrawn | Adjudicated]) -> LabelSet:
    return LabelSet.of(
        LabelEntry(i, EventId("ff", i), event) for i, event in enumerate(events)
    )


def drawn(items: Sequence[str], probability: float) -> list[ItemDrawn]:
    return [
        ItemDrawn(
            author="ann",
            item=item,
            design="random",
            probability=probability,
            seed=1,
            position=position,
            expected=float(len(items)),
            population=len(ITEMS),
            population_sha256="",
        )
        for position, item in enumerate(items, 1)
    ]


def labelled(items: Sequence[str], values: Mapping[str, str]) -> list[LabelRecorded]:
    return [LabelRecorded(author="ann", item=i, value=values[i]) for i in items]


def quality(labels: LabelSet, **options: float | str) -> FieldQuality:
    return field_quality(DECISION, labels, {}, replies(), **options)  # type: ignore[arg-type]


def test_the_other_models_make_the_interval_shorter() -> None:
    sample = random.Random(2).sample(ITEMS, 100)
    result = quality(
        label_set([*drawn(sample, 0.25), *labelled(sample, TRUTH)]), width=0.05
    )
    assert (result.design, result.labels, result.outside) == ("random", 100, 0)
    assert result.positive == "include"
    by_model = {model.model: model for model in result.models}
    assert by_model["cedar"].items == len(ITEMS) - 1
    for model in ERRORS:
        said = {
            about.item: reply.value
            for about, of_item in replies().items()
            for reply in of_item
            if reply.model == model and reply.value is not None
        }
        right = sum(TRUTH[item] == value for item, value in said.items()) / len(said)
        by_metric = {one.metric: one for one in by_model[model].estimates}
        assert list(by_metric) == [
            *("accuracy", "prevalence", "precision", "recall"),
            *("specificity", "f1"),
        ]
        rate = by_metric["accuracy"].estimate.powered
        assert rate.lo is not None
        assert rate.hi is not None
        assert rate.lo < right < rate.hi
        needed = by_metric["accuracy"].needed
        assert needed is not None
        assert needed > 0
    marked = by_model["alder"].estimates[0].estimate
    more = labels_until_nominal(marked)
    assert marked.is_conservative
    assert 100 < 100 + more <= len(ITEMS)
    page = as_text(quality_blocks(result, 0.95, 0.05))
    assert f"conservative, +{more}" in page
    assert "fewer than 30 effective residuals" in page
    share = by_model["cedar"].estimates[1].estimate
    assert share.powered.width is not None
    assert share.labels_alone.width is not None
    assert share.powered.width < 0.8 * share.labels_alone.width


def test_an_interval_from_many_residuals_bears_no_mark() -> None:
    labels = label_set([*drawn(ITEMS[:350], 0.875), *labelled(ITEMS[:350], TRUTH)])
    result = quality(labels)
    (accuracy,) = (
        one.estimate for one in result.models[2].estimates if one.metric == "accuracy"
    )
    assert not accuracy.is_conservative
    assert labels_until_nominal(accuracy) == 0
    (row,) = (
        row
        for row in quality_json(result)["models"][2]["metrics"]
        if row["metric"] == "accuracy"
    )
    assert (row["conservative"], row["labels_until_nominal"]) == (False, 0)


def test_labels_of_a_random_draw_have_an_interval_that_holds_at_all_looks() -> None:
    sample = random.Random(2).sample(ITEMS, 200)
    draws = drawn(sample, 0.5)
    widths = []
    for n in (50, 100, 200):
        result = quality(label_set([*draws, *labelled(sample[:n], TRUTH)]))
        (alder, *_) = result.models
        by_metric = {one.metric: one.any_time for one in alder.estimates}
        accuracy = by_metric["accuracy"]
        assert accuracy is not None
        assert accuracy.labels == n
        assert accuracy.lo <= 1 - ERRORS["alder"] <= accuracy.hi
        alone = alder.estimates[0].estimate.labels_alone
        assert alone.width is not None
        assert alone.width < accuracy.hi - accuracy.lo
        widths.append(accuracy.hi - accuracy.lo)
    assert widths == sorted(widths, reverse=True)
    precision = by_metric["precision"]
    assert precision is not None
    assert precision.labels < 200
    assert by_metric["recall"] is None
    page = as_text(quality_blocks(result, 0.95, None))
    assert f"[{accuracy.lo:.3f}, {accuracy.hi:.3f}]" in page
    assert "the draw's first 200 labels" in page
    (row, *_) = quality_json(result)["models"][0]["metrics"]
    assert row["any_time"] == {"lo": accuracy.lo, "hi": accuracy.hi, "labels": 200}


def test_such_an_interval_ends_before_a_gap_and_holds_whatever_is_undecided() -> None:
    draws = drawn(ITEMS[:100], 0.25)
    gap = [item for item in ITEMS[:100] if item != ITEMS[60]]

    def accuracy(values: Mapping[str, str]) -> AnyTimeInterval:
        found = quality(label_set([*draws, *labelled(gap, values)]))
        interval = found.models[0].estimates[0].any_time
        assert interval is not None
        assert interval.labels == 60  # of an item that was skipped, nobody knows why
        return interval

    undecided = accuracy(TRUTH | dict.fromkeys(ITEMS[20:25], "unclear"))
    for value in ("include", "exclude"):
        decided = accuracy(TRUTH | dict.fromkeys(ITEMS[20:25], value))
        assert undecided.lo <= decided.lo <= decided.hi <= undecided.hi


def test_labels_without_a_random_draw_of_these_items_have_no_such_interval() -> None:
    draws = drawn(ITEMS[:100], 0.25)
    labels = labelled(ITEMS[:100], TRUTH)
    weighted = [replace_event(event, design="uncertainty") for event in draws]
    foreign = [replace_event(event, population_sha256="0") for event in draws]
    for events in ([], weighted, foreign):
        result = quality(label_set([*events, *labels]))
        estimates = [one for model in result.models for one in model.estimates]
        assert estimates
        assert all(one.any_time is None for one in estimates)
        assert "any time" not in as_text(quality_blocks(result, 0.95, None))


def test_labels_that_nobody_drew_do_not_count() -> None:
    sample = random.Random(3).sample(ITEMS, 60)
    chosen = [item for item in ITEMS if item not in sample][:20]
    labels = label_set([*drawn(sample, 0.15), *labelled([*sample, *chosen], TRUTH)])
    with_more = quality(labels)
    assert (with_more.labels, with_more.outside) == (60, 20)
    alone = quality(label_set([*drawn(sample, 0.15), *labelled(sample, TRUTH)]))
    assert with_more.models == alone.models


def test_disputed_and_unclear_labels_decide_nothing() -> None:
    sample = ITEMS[:50]
    values = TRUTH | {sample[0]: "unclear"}
    other = LabelRecorded(
        author="bo",
        item=sample[1],
        value="exclude" if TRUTH[sample[1]] == "include" else "include",
    )
    labels = label_set([*drawn(sample, 0.125), *labelled(sample, values), other])
    assert quality(labels).labels == 48


def test_one_label_is_too_few() -> None:
    labels = label_set([*drawn(ITEMS[:1], 0.01), *labelled(ITEMS[:1], TRUTH)])
    assert all(not model.estimates for model in quality(labels).models)


def test_a_named_judge_predicts_alone() -> None:
    sample = random.Random(4).sample(ITEMS, 80)
    labels = label_set([*drawn(sample, 0.2), *labelled(sample, TRUTH)])
    by_all, by_cedar = quality(labels), quality(labels, judge="cedar")
    assert by_all.models[0] != by_cedar.models[0]


def test_the_command_estimates_from_a_draw(tmp_path: Path) -> None:
    fast = ("--limit=40", "--boot-b=20", "--no-report")
    siftlog("run", "screening", "--run-id=s", *fast, cwd=tmp_path)
    nothing = siftlog("estimate-quality", "s", cwd=tmp_path)
    assert "holds no label that counts" in nothing.stderr
    before, sys.stdin = sys.stdin, io.StringIO("i\ne\n" * 10)
    try:
        words = ("--plain", "--draw=random", "--n=20", "--author=ann")
        siftlog("label", "s", *words, cwd=tmp_path)
    finally:
        sys.stdin = before
    text = siftlog("estimate-quality", "s", "--width=0.2", cwd=tmp_path).stdout
    assert "20, drawn by random" in text
    assert "labels to 0.2" in text
    assert "the draw's first 20 labels" in text
    (row,) = map(
        json.loads,
        siftlog("estimate-quality", "s", "--json", cwd=tmp_path).stdout.splitlines(),
    )
    (model,) = row["fields"][0]["models"]
    assert model["labels"] == 20
    assert "accuracy" in {one["metric"] for one in model["metrics"]}
    wrong = siftlog("estimate-quality", "s", "--judge=elm", cwd=tmp_path, check=False)
    assert "No reply is by elm" in wrong.stderr


def numbered() -> dict[ItemField, Sequence[ModelLabel]]:
    """The replies of one model, with the number of a task each."""
    return {
        about: [replace(of_item[0], task=number)]
        for number, (about, of_item) in enumerate(replies().items(), 1)
    }


def test_recorded_verdicts_predict_if_they_judge_every_item() -> None:
    sample = random.Random(5).sample(ITEMS, 80)
    labels = label_set([*drawn(sample, 0.2), *labelled(sample, TRUTH)])
    by_task = numbered()
    verdicts = {
        of_item[0].task or 0: float(of_item[0].value == TRUTH[about.item])
        for about, of_item in by_task.items()
    }
    (model,) = field_quality(DECISION, labels, {}, by_task, verdicts=verdicts).models
    assert model.predictor == "verdicts"
    powered = model.estimates[0].estimate.powered
    alone = model.estimates[0].estimate.labels_alone
    assert powered.width is not None
    assert alone.width is not None
    assert powered.width < 0.5 * alone.width  # this judge is always right
    del verdicts[7]
    (model,) = field_quality(DECISION, labels, {}, by_task, verdicts=verdicts).models
    assert model.predictor == "itself"


def test_strata_of_a_draw_are_those_of_the_estimate() -> None:
    by_task = numbered()
    of_item = {about.item: of_item for about, of_item in by_task.items()}
    population = draw_items(of_item, ITEMS, "stratified", {})
    sample = draw("stratified", population, 100, seed=1)
    draws = [
        replace_event(
            event,
            design="stratified",
            probability=one.probability,
            stratum=one.item.stratum,
        )
        for one, event in zip(
            sample, drawn([one.item.key for one in sample], 0.25), strict=True
        )
    ]
    events = [*draws, *labelled([one.item.key for one in sample], TRUTH)]
    known = field_quality(DECISION, label_set(events), {}, by_task)
    assert known.strata == ["exclude", "include"]
    estimate = known.models[0].estimates[0].estimate
    assert {*estimate.weights} == {"exclude", "include"}
    (first, *_) = quality_json(known)["models"][0]["metrics"]
    assert first["weights"] == estimate.weights
    # a reply that came after the draw: its strata are others now
    changed = sample[0].item.key
    reply = by_task[ItemField(changed, "")][0]
    by_task[ItemField(changed, "")] = [replace(reply, value="unsure")]
    assert not field_quality(DECISION, label_set(events), {}, by_task).strata


def test_a_label_of_a_reply_counts_with_what_a_scoring_says_of_it() -> None:
    field = LabelField(name="question m 1", question="?", choices=CHOICES)
    texts = {
        ItemField(item, field.name): [
            ModelLabel(
                item=item,
                field=field.name,
                model="m",
                replicate=1,
                value=f"reply about {item}",
                task=number,
            )
        ]
        for number, item in enumerate(ITEMS, 1)
    }
    right = {item: random.Random(item).random() < 0.8 for item in ITEMS}
    sample = random.Random(6).sample(ITEMS, 60)
    labels = label_set(
        [
            *drawn(sample, 0.15),
            *(
                LabelRecorded(
                    author="ann",
                    item=item,
                    field=field.name,
                    value="correct" if right[item] else "incorrect",
                )
                for item in sample
            ),
        ]
    )
    verdicts = {n: float(right[item]) for n, item in enumerate(ITEMS, 1)}
    (model,) = field_quality(
        field, labels, {}, texts, verdicts=verdicts, is_about_replies=True
    ).models
    (accuracy,) = model.estimates
    share = sum(right.values()) / len(ITEMS)
    assert (accuracy.metric, model.labels) == ("accuracy", 60)
    assert accuracy.estimate.powered.value == pytest.approx(share, abs=0.01)


def test_the_command_takes_verdicts_that_labels_did_not_make(tmp_path: Path) -> None:
    fast = ("--limit=30", "--boot-b=0", "--no-report")
    siftlog("run", "screening", "--run-id=s", *fast, cwd=tmp_path)
    before, sys.stdin = sys.stdin, io.StringIO("i\ne\n" * 12)
    try:
        words = ("--plain", "--draw=stratified", "--n=24", "--author=ann")
        siftlog("label", "s", *words, cwd=tmp_path)
    finally:
        sys.stdin = before
    siftlog("score", "s", "--gold", "labels", "--no-report", cwd=tmp_path)
    done = siftlog("estimate-quality", "s", "--json", cwd=tmp_path)
    row = json.loads(done.stdout)
    assert row["scoring"] == 1
    assert row["fields"][0]["models"][0]["predicted_by"] == "verdicts"
    by_labels = siftlog(
        "estimate-quality", "s", "--scoring=2", cwd=tmp_path, check=False
    )
    assert "Scoring 2 of s cannot predict labels" in by_labels.stderr
    text = siftlog("estimate-quality", "s", cwd=tmp_path).stdout
    assert "'as truth' trusts the recorded verdicts" in text


def test_replies_of_a_run_without_a_truth_are_estimated(tmp_path: Path) -> None:
    words = ("paper-investigation", "--mode=extract", "--run-id=p", "--boot-b=0")
    siftlog("run", *words, "--no-report", cwd=tmp_path)
    before, sys.stdin = sys.stdin, io.StringIO("c\ni\nc\nq\n")
    try:
        siftlog("label", "p", "--plain", "--author=ann", cwd=tmp_path)
    finally:
        sys.stdin = before
    row = json.loads(siftlog("estimate-quality", "p", "--json", cwd=tmp_path).stdout)
    (model,) = row["fields"][0]["models"]
    (metric,) = model["metrics"]
    assert (metric["metric"], model["labels"]) == ("accuracy", 3)
