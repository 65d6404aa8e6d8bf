"""Differences between scorings of real logs: parts, items and verdicts add up."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.kit.differences.attribution import find_difference
from jobs.kit.differences.difference import (
    PARSER,
    SCORER,
    CauseKind,
    ChangedMetric,
    ScoringDifference,
)
from runner.errors import DatasetError, RunnerError, UsageError
from runner.score import scoring
from runner.score.repeat import rescorer
from tests.jobs.kit.differences.rated import MODEL, Given, Rated, RatedRun
from tests.plugging import plugged

GOLD = {"P1/a": 1.0, "P1/b": 0.0, "P2/a": 1.0, "P2/b": 0.25}
TOLD = {"P1/a": 0.9, "P1/b": 0.7, "P2/a": 0.2, "P2/b": 0.1}


@pytest.fixture(scope="module", autouse=True)
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("plugins")
    plugged(folder, rated="tests.jobs.kit.differences.rated:job")
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))


@pytest.fixture
def run(tmp_path: Path) -> RatedRun:
    made = RatedRun(tmp_path)
    made.answer(TOLD)
    return made


def found(run: RatedRun, before: int = 1, after: int = 2) -> ScoringDifference:
    with rescorer(run.folder) as opened:
        return find_difference(
            opened,
            opened.recorded(before),
            opened.recorded(after),
            progress=lambda _: None,
        )


def metric(made: ScoringDifference, path: str) -> ChangedMetric:
    (own,) = (each for each in made.changed if each.path == path)
    return own


def adds_up(made: ScoringDifference) -> None:
    """Parts to changes, and the shares of items to parts."""
    for each in made.changed:
        if each.change is not None:
            changes = [part.change for part in each.parts]
            assert None not in changes
            assert sum(filter(None, changes), Fraction()) == each.change
            assert each.change == Fraction(each.after or 0) - Fraction(each.before or 0)
        for part in each.parts:
            if part.rounding is not None:
                shares = (item.share for item in part.items)
                total = sum(filter(None, shares), part.rounding)
                assert part.change in {None, total}
                assert abs(part.rounding) < Fraction(1, 10**12)


def test_gold_settings_and_answers_have_their_part_each(run: RatedRun) -> None:
    run.scored(GOLD)
    run.answer({"P1/b": 0.1, "P3/a": 0.6})
    run.scored({**GOLD, "P2/b": 1.0, "P3/a": 1.0}, threshold=0.15)
    made = found(run)
    assert [
        (cause.kind, cause.name) for stage in made.stages for cause in stage.causes
    ] == [("items", ""), ("input", "gold"), ("setting", "threshold")]
    accuracy = metric(made, "accuracy")
    assert (accuracy.before, accuracy.after) == (0.5, 0.8)
    assert [part.change for part in accuracy.parts] == [
        Fraction(1, 4),
        Fraction(0.6) - Fraction(0.75),
        Fraction(0.8) - Fraction(0.6),
    ]
    assert [
        [(item.item, item.before, item.after) for item in part.items]
        for part in accuracy.parts
    ] == [
        [("P1/b", 0.0, 1.0)],
        [("P2/b", 1.0, 0.0), ("P3/a", None, 1.0)],
        [("P2/a", 0.0, 1.0)],
    ]
    adds_up(made)


def test_verdicts_that_changed_are_listed_with_their_tasks(run: RatedRun) -> None:
    run.scored(GOLD)
    run.answer({"P1/b": 0.1})
    run.scored(GOLD)
    (stage,) = found(run).stages
    (change,) = stage.verdicts[MODEL]
    assert (change.task, change.key, change.right) == (2, "P1/b", 1)


def test_what_the_job_books_stands_with_its_cause(run: RatedRun) -> None:
    run.scored(GOLD)
    run.scored({**GOLD, "P1/b": 0.3}, threshold=0.15, power=2)
    made = found(run)
    booked = {stage.causes[0].name: stage.bookings for stage in made.stages}
    assert [name for name, own in booked.items() if own] == ["threshold"]
    (part,) = (
        part
        for part in metric(made, "right").parts
        if part.causes[0].name == "threshold"
    )
    assert booked["threshold"][MODEL].change == part.change


def test_settings_that_hold_together_only_are_one_step(run: RatedRun) -> None:
    run.scored(GOLD, threshold=0.5)
    run.scored(GOLD, threshold=2.0, least=1.5)
    run.scored(GOLD, threshold=0.5)
    (together,) = found(run, 2, 3).stages
    assert [cause.name for cause in together.causes] == ["threshold", "least"]
    assert len(found(run, 1, 2).stages) == 2


def test_an_edited_gold_file_is_taken_from_the_log(run: RatedRun) -> None:
    run.scored(GOLD)
    run.scored(GOLD, threshold=0.15)
    before = found(run)
    run.gold.write_text("{}")
    assert found(run) == before
    run.gold.unlink()
    assert found(run) == before


def test_an_input_that_is_not_kept_is_named(
    run: RatedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "LIMIT", 3)
    run.scored(GOLD)
    run.scored(GOLD, threshold=0.15)
    run.gold.write_text("{}")
    with pytest.raises(DatasetError, match=r"gold\.json \(gold\) is not the file"):
        found(run)


def test_the_same_log_settings_inputs_and_code_give_the_same_digest(
    run: RatedRun,
) -> None:
    first = run.scored(GOLD)
    second = run.scored(GOLD)
    assert first.digest == second.digest
    made = found(run)
    assert (made.stages, made.changed) == ((), ())
    assert made.notes == ("Both scorecards are the same, byte for byte.",)


@pytest.mark.parametrize(
    ("changed", "kinds"),
    [
        ({"factor": 3.0}, ["parser"]),
        ({"slack": 0.3}, ["scorer"]),
        ({"factor": 3.0, "slack": -0.6}, ["parser", "scorer"]),
    ],
)
def test_a_part_of_the_code_is_the_parsers_or_the_scorers(
    run: RatedRun,
    monkeypatch: pytest.MonkeyPatch,
    changed: dict[str, float],
    kinds: list[str],
) -> None:
    run.answer({"P3/a": 0.0})  # which no factor changes
    gold = {**GOLD, "P3/a": 0.0}
    run.scored(gold)
    for name, value in changed.items():
        monkeypatch.setattr(Rated, name, value)
    run.scored(gold, power=2)
    made = found(run)
    assert [stage.causes[0].kind for stage in made.stages] == [
        CauseKind.CODE,
        CauseKind.SETTING,
    ]
    by_path = {
        each.path: [
            [cause.kind for cause in part.causes]
            for part in each.parts
            if part.causes[0].kind is not CauseKind.SETTING
        ]
        for each in made.changed
    }
    # the items of one are told by verdicts, the weights of the other by nothing
    assert by_path["accuracy"] == [[kind] for kind in kinds]
    assert by_path["weighted"] == [kinds]
    adds_up(made)


def test_items_of_code_that_is_gone_are_told_by_its_verdicts(
    run: RatedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.answer({"P3/a": 0.0})
    gold = {**GOLD, "P3/a": 0.0}
    run.scored(gold)
    monkeypatch.setattr(Rated, "factor", 3.0)
    monkeypatch.setattr(Rated, "slack", -0.6)
    run.scored(gold)
    for before, after, sign in ((1, 2, 1), (2, 1, -1)):
        made = found(run, before, after)
        parser, scorer = metric(made, "accuracy").parts
        assert [(each.item, each.share) for each in parser.items] == [
            ("P2/a", Fraction(sign, 5)),
            ("P2/b", Fraction(-sign, 5)),
        ]
        assert [(each.item, each.share) for each in scorer.items] == [
            ("P3/a", Fraction(-sign, 5))
        ]
        adds_up(made)


def test_a_scoring_in_between_divides_the_codes_part(
    run: RatedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.scored(GOLD)
    monkeypatch.setattr(Rated, "factor", 3.0)
    run.scored(GOLD)
    run.scored(GOLD, power=3)  # on another basis, and passed over
    monkeypatch.setattr(Rated, "slack", 1.7)
    run.scored(GOLD, power=2)
    made = found(run, 1, 4)
    assert [(stage.causes[0].kind, stage.causes[0].after) for stage in made.stages] == [
        (CauseKind.CODE, "scoring 2"),
        (CauseKind.CODE, "today"),
        (CauseKind.SETTING, "2"),
    ]
    assert [part.causes[0].kind for part in metric(made, "weighted").parts] == [
        CauseKind.PARSER,
        CauseKind.SCORER,
        CauseKind.SETTING,
    ]
    assert [causes for stage in made.stages for _, causes, _ in stage.by_cause()] == [
        (PARSER,),
        (SCORER,),
    ]
    adds_up(made)


def test_without_verdicts_the_codes_part_is_not_divided(
    run: RatedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.scored(GOLD)
    monkeypatch.setattr(Rated, "factor", 3.0)
    run.scored(GOLD)
    (run.folder.scores / "1" / "verdicts.db").unlink()
    (run.folder.scores / "1" / "scorecard.json").unlink()  # the log has it
    made = found(run)
    (part,) = metric(made, "accuracy").parts
    assert [cause.kind for cause in part.causes] == [CauseKind.CODE]
    adds_up(made)


def test_a_scoring_that_does_not_exist_is_named(run: RatedRun) -> None:
    run.scored(GOLD)
    with pytest.raises(UsageError, match="has no scoring 2; its newest is 1"):
        found(run)


ITEMS = [f"P{paper}/{question}" for paper in range(3) for question in "ab"]
NUMBERS = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0])
GIVEN = st.dictionaries(st.sampled_from(ITEMS), NUMBERS)
SETTINGS = st.fixed_dictionaries(
    {"threshold": st.sampled_from([0.1, 0.3, 0.7]), "power": st.integers(1, 3)}
)


@settings(max_examples=12)
@given(
    answers=st.tuples(GIVEN, GIVEN),
    gold=st.tuples(GIVEN, GIVEN),
    by=st.tuples(SETTINGS, SETTINGS),
)
def test_parts_add_up_after_any_edits(
    answers: tuple[Given, Given],
    gold: tuple[Given, Given],
    by: tuple[dict[str, object], dict[str, object]],
) -> None:
    with TemporaryDirectory() as home:
        run = RatedRun(Path(home))
        run.answer(answers[0])
        run.scored(gold[0], **by[0])
        run.answer(answers[1])
        run.scored({**gold[0], **gold[1]}, **by[1])
        adds_up(found(run))
        adds_up(found(run, 2, 1))


def test_a_scorecard_of_other_code_that_is_gone_is_named(
    run: RatedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.scored(GOLD)
    monkeypatch.setattr(Rated, "factor", 3.0)
    run.scored(GOLD)
    monkeypatch.setattr("runner.score.repeat.parts", lambda *_: {})
    (run.folder.scores / "1" / "scorecard.json").unlink()
    with pytest.raises(RunnerError, match=r"Scoring 1 was made by other code, and its"):
        found(run)
