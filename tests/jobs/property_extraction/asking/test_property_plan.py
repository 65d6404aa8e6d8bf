"""What a run asks, and what it does not."""

from __future__ import annotations

from pathlib import Path

from jobs.property_extraction import plan as asking
from jobs.property_extraction.name_pairs import NamePair
from jobs.property_extraction.parsing import ParsedExtraction, ReportedValue
from jobs.property_extraction.plan import follow_up, plan, planned_stages
from runner.messages import ParseFailure
from tests.jobs.property_extraction.asking.property_runs import (
    answer,
    dataset,
    task,
    told,
    verifying,
)

PAIRS = (
    NamePair(pred_name="Tc", gt_name="Tc onset"),
    NamePair(pred_name=" GAP", gt_name="gap"),
    NamePair(pred_name="Tc", gt_name="gap"),
    NamePair(pred_name="gap 2", gt_name="gap"),
)
LONG = "The gap is 1 meV.\n\n" * 20


def skips(specs: object) -> dict[str, str | None]:
    return {spec.key: spec.skip for spec in specs}  # type: ignore[attr-defined]


def test_every_paper_is_asked_about_and_those_without_text_are_skipped(
    tmp_path: Path,
) -> None:
    data = dataset(tmp_path, {"P2": "Text.", "P1": "Text.", "P3": " \n"})
    assert list(skips(plan(data)).items()) == [
        ("P1", None),
        ("P2", None),
        ("P3", "empty_text"),
        ("P9", "no_text"),
    ]
    assert planned_stages(data) == {"extract"}


def test_a_paper_beyond_the_longest_prompt_is_skipped_and_its_pieces_are_not(
    tmp_path: Path,
) -> None:
    data = dataset(tmp_path, {"P1": LONG * 40}, max_prompt_tokens=1000)
    assert skips(plan(data))["P1"] == "too_long"
    cut = dataset(
        tmp_path, {"P1": LONG}, max_prompt_tokens=1000, max_chars=150, chunk_overlap=30
    )
    specs = [spec for spec in plan(cut) if spec.key != "P9"]
    assert [spec.key for spec in specs] == [f"P1#{n}" for n in range(1, 1 + len(specs))]
    assert len(specs) > 1
    for spec in specs:
        assert len(told(asking.request(cut, task(spec)))) < 250


def test_one_request_follows_about_all_quotes_of_a_paper_that_are_lacking(
    tmp_path: Path,
) -> None:
    data = dataset(tmp_path, {"P1": LONG}, requote=True)
    assert planned_stages(data) == {"extract", "requote"}
    assert next(plan(data)).group == "P1"
    good = ReportedValue(name="gap", value="1", quote="The gap is 1 meV")
    bad = ReportedValue(name="gap", value="2", quote="The distance is some 2 eV here")
    mute = ReportedValue(name="gap", value="3")
    group = (
        answer("P1#1", ParsedExtraction(rows=(good, bad, good))),
        answer("P1#2", ParseFailure(reason="truncated")),
        answer("P1#3", ParsedExtraction(rows=(mute, bad))),
    )
    (spec,) = follow_up(data, group)
    assert (spec.stage, spec.key) == ("requote", "P1")
    assert asking.rows_of_context(spec.context) == (bad, mute)
    prompt = told(asking.request(data, task(spec)))
    assert bad.quote in prompt
    assert '"id": 2' in prompt


def test_nothing_follows_good_quotes_or_where_nobody_asks_for_it(
    tmp_path: Path,
) -> None:
    mute = answer("P1", ParsedExtraction(rows=(ReportedValue(name="gap", value="3"),)))
    good = answer(
        "P1",
        ParsedExtraction(
            rows=(ReportedValue(name="gap", value="1", quote="gap is 1 meV"),)
        ),
    )
    asks = dataset(tmp_path, {"P1": LONG}, requote=True)
    assert not list(follow_up(asks, (good,)))
    assert not list(follow_up(asks, (answer("P1", None),)))
    assert not list(follow_up(dataset(tmp_path, {"P1": LONG}), (mute,)))


def test_pairs_are_asked_about_one_by_one_but_for_equal_and_verified_ones() -> None:
    data = verifying(*PAIRS, verified=frozenset({("Tc", "gap")}))
    assert skips(plan(data)) == {
        "Tc => Tc onset": None,
        " GAP => gap": "auto_verified",
        "Tc => gap": "already_verified",
        "gap 2 => gap": None,
    }
    assert planned_stages(data) == {"verify"}


def test_a_choice_offers_a_name_all_its_targets_at_once() -> None:
    data = verifying(*PAIRS, verify="choice", verified=frozenset({("gap 2", "gap")}))
    found = {key: question.targets for key, question in data.questions.items()}
    assert list(skips(plan(data)).values()) == [
        *("auto_verified", None, "already_verified")
    ]
    assert list(found.values()) == [("gap",), ("Tc onset", "gap"), ("gap",)]


def test_a_candidate_that_is_added_is_one_more_question() -> None:
    before = set(skips(plan(verifying(*PAIRS[:2]))))
    assert before < set(skips(plan(verifying(*PAIRS))))
