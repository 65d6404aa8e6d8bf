"""Alias sets as files: three forms, read back as they were.

Aliases at work: which name a row is matched under, and what it is booked on. Whatever
aliases do to a matching, their bookings come to the change.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.property_extraction.aliases.alias_set import (
    SOURCES,
    STATUSES,
    AliasEntry,
    AliasOrigin,
    AliasSet,
    Renaming,
    Status,
)
from jobs.property_extraction.aliases.differences import (
    bookable_predictions,
    changes_by_alias,
)
from jobs.property_extraction.aliases.files import read_aliases, set_csv, set_json
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.predictions import ReplicatePredictions
from jobs.property_extraction.row_outcomes import RowOutcome, RowOutcomes, row_outcomes
from jobs.property_extraction.rows import Prediction, TruthRow
from jobs.property_extraction.settings import PropertySettings
from jobs.property_extraction.values.comparer import Comparer
from runner.errors import DatasetError

NAMES = [
    "-slope in Hc2 vs T",
    "=x",
    "+y",
    "@z",
    "'=quoted already",
    "*shape",
    'with "quotes", commas',
    "on two\nlines",
    "H⊥ab-plane",
    "H ⊥ab-plane",
    "#NAME?",
    "//",
]


def given_file(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def entries(*names: str) -> tuple[AliasEntry, ...]:
    return tuple(
        AliasEntry(
            pred_name=name,
            gt_name=f"{name} too",
            refno="=P1" if at % 2 else None,
            status=STATUSES[at % 3],
            source=SOURCES[at % 5],
            models=("a/b", "m:c") if at % 2 else (),
            votes=at,
            reason=name,
            count=at,
            avg_sim=None if at % 2 else 1 / 3,
        )
        for at, name in enumerate(names)
    )


def test_every_name_survives_both_forms(tmp_path: Path) -> None:
    made = AliasSet(entries=entries(*NAMES))
    for name, text in (("a.json", set_json(made)), ("a.csv", set_csv(made))):
        assert read_aliases(given_file(tmp_path, name, text)).alias_set == made


TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), min_size=1
).filter(lambda text: text.strip())


@given(name=TEXTS, target=TEXTS)
def test_a_spreadsheet_can_hold_any_entry(
    tmp_path_factory: pytest.TempPathFactory, name: str, target: str
) -> None:
    entry = AliasEntry(pred_name=name.strip(), gt_name=target.strip())
    path = tmp_path_factory.getbasetemp() / "any.csv"
    given_file(path.parent, path.name, set_csv(AliasSet(entries=(entry,))))
    assert read_aliases(path).alias_set.entries == (entry,)


def test_the_json_keeps_where_a_set_comes_from(tmp_path: Path) -> None:
    made = AliasSet(
        entries=entries("a"),
        parent="e3b0c44298fc",
        created_from=AliasOrigin(run="free", scoring=1, verification_runs=("v1", "v2")),
    )
    path = given_file(tmp_path, "a.json", set_json(made))
    assert read_aliases(path).alias_set == made
    shown = json.loads(path.read_text(encoding="utf-8"))
    assert shown["schema"] == "siftlog.aliases/1"
    assert list(shown) == ["schema", "id", "parent", "created_from", "entries"]


def test_an_id_is_of_accepted_pairs_alone_whatever_else_is_known_of_them() -> None:
    pair = AliasEntry(pred_name="a", gt_name="b", status="accepted", source="human")
    other = AliasEntry(pred_name="c", gt_name="d", status="rejected")
    one = AliasSet(entries=(pair, other))
    same = AliasSet(
        entries=(
            AliasEntry(
                pred_name="a", gt_name="b", status="accepted", source="llm", votes=3
            ),
        ),
        parent="e3b0c44298fc",
    )
    scoped = AliasSet(
        entries=(AliasEntry(pred_name="a", gt_name="b", refno="P1", status="accepted"),)
    )
    assert AliasSet(entries=(other,)).id == AliasSet().id == "e3b0c44298fc"
    assert one.id == same.id == "894891f8b78a"
    assert scoped.id != one.id


def test_the_mix_says_who_accepted_and_what_was_not() -> None:
    made = AliasSet(
        entries=(
            AliasEntry(pred_name="a", gt_name="x", status="accepted", source="human"),
            AliasEntry(pred_name="b", gt_name="x", status="accepted", source="llm"),
            AliasEntry(pred_name="c", gt_name="x", status="accepted", source="human"),
            AliasEntry(pred_name="d", gt_name="x", status="rejected", source="llm"),
        )
    )
    assert made.status_mix == "2 human, 1 llm, 1 rejected"
    assert AliasSet().status_mix == "none"


def test_a_sheet_of_decisions_needs_little_and_blank_means_undecided(
    tmp_path: Path,
) -> None:
    path = given_file(
        tmp_path,
        "mine.csv",
        "\ufeffpred_name,gt_name,status,note\n'-s,T1, Accepted ,mine\nb,T2,,\n",
    )
    found = read_aliases(path)
    assert found.row_labels == ("row 2", "row 3")
    assert [(e.pred_name, e.status, e.source) for e in found.alias_set.entries] == [
        ("-s", "accepted", "human"),
        ("b", "undecided", "human"),
    ]


def test_a_flat_object_is_a_draft_and_names_that_are_there_twice_are_kept(
    tmp_path: Path,
) -> None:
    path = given_file(tmp_path, "d.json", '{"a": "T1", "b": "T2", "a": "T3"}')
    found = read_aliases(path).alias_set.entries
    assert [(entry.pred_name, entry.gt_name) for entry in found] == [
        ("a", "T1"),
        ("b", "T2"),
        ("a", "T3"),
    ]
    assert all(entry.is_draft for entry in found)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.csv", "pred_name,gt_name\na,b\n", "a.csv: column 'status' is missing"),
        (
            "a.csv",
            "pred_name,gt_name,status\na,b,yes\n",
            "a.csv row 2: status is 'yes' (one of accepted, rejected, undecided",
        ),
        ("a.csv", "pred_name,gt_name,status\n ,b,accepted\n", "row 2: pred_name is"),
        ("a.json", "[]", "a.json: a list instead of an object"),
        ("a.json", '{"a": 1}', "a.json: 'a' stands for a number"),
        ("a.json", '{"a": {"b": "c"}}', "a.json: 'a' stands for an object"),
        ("a.json", '{"a": " "}', "a.json pair 1: gt_name is missing"),
        ("a.json", '{"entries": []}', "a.json: schema is None"),
        (
            "a.json",
            '{"schema": "siftlog.aliases/1", "entries": [7]}',
            "a.json entry 1: a number instead of an object",
        ),
        (
            "a.json",
            '{"schema": "siftlog.aliases/1", "id": "0", "entries": []}',
            "id is '0', and that of its entries is 'e3b0c44298fc'",
        ),
        ("a.json", '{"a": ', "a.json: not valid JSON"),
    ],
)
def test_what_is_off_is_told_with_its_place(
    tmp_path: Path, name: str, text: str, sentence: str
) -> None:
    with pytest.raises(DatasetError) as error:
        read_aliases(given_file(tmp_path, name, text))
    assert sentence in str(error.value)
    assert str(error.value).endswith(".")


def alias(
    name: str, target: str, refno: str | None = None, status: Status = "accepted"
) -> AliasEntry:
    return AliasEntry(
        pred_name=name, gt_name=target, refno=refno, status=status, source="human"
    )


def renaming(*entries: AliasEntry, **options: object) -> Renaming:
    return Renaming.of(AliasSet(entries=entries), **options)


def test_a_name_without_an_alias_stands_for_itself() -> None:
    renamed = renaming(alias("a", "T1")).renamed("P1", "b")
    assert (renamed.name, renamed.targets, renamed.entry()) == ("b", ("b",), None)


def test_what_is_not_accepted_does_nothing() -> None:
    made = renaming(
        alias("a", "T1", status="rejected"), alias("b", "T1", status="undecided")
    )
    assert made.renamed("P1", "a").name == "a"
    assert made.renamed("P1", "b").name == "b"


def test_one_step_is_made_whatever_the_target_stands_for() -> None:
    made = renaming(alias("a", "b"), alias("b", "c"))
    assert made.renamed("P1", "a").name == "b"


def test_names_go_by_their_letters_unless_they_are_to_be_folded() -> None:
    entry = alias("Hc2 (0)", "T1")
    assert renaming(entry).renamed("P1", "hc2  (0)").name == "hc2  (0)"
    folded = renaming(entry, name_match="fold")
    assert folded.renamed("P1", " ｈc2  (0)").name == "T1"


def test_a_folded_alias_never_takes_a_right_name_that_is_spelled_otherwise() -> None:
    entry = alias("debye temperature", "T1")
    made = renaming(entry, name_match="fold", canonical={"Debye temperature"})
    assert made.renamed("P1", "Debye temperature").name == "Debye temperature"
    assert made.renamed("P1", "DEBYE temperature").name == "T1"


def test_the_alias_of_a_paper_goes_first_and_then_the_exact_spelling() -> None:
    made = renaming(
        alias("a", "T1"), alias("A", "T2"), alias("a", "T3", "P1"), name_match="fold"
    )
    assert made.renamed("P1", "A").name == "T3"
    assert made.renamed("P2", "A").name == "T2"
    assert made.renamed("P2", "a").name == "T1"


def test_a_row_of_a_target_set_is_booked_on_the_target_it_met() -> None:
    renamed = renaming(alias("a", "T2"), alias("a", "T1")).renamed("P1", "a")
    assert renamed.targets == ("T1", "T2")
    assert renamed.entry() == renamed.entry("T1") == alias("a", "T1")
    assert renamed.entry("T2") == alias("a", "T2")


PAPERS = st.sampled_from(["P1", "P2"])
SETS_NAMES = st.sampled_from("abcde")
VALUES = st.sampled_from(["1", "2", "3"])
ROWS = st.lists(st.tuples(PAPERS, SETS_NAMES, VALUES), max_size=12)
SETS = st.dictionaries(
    st.tuples(SETS_NAMES, st.none() | PAPERS), SETS_NAMES, max_size=5
)


def scored(
    truth: list[tuple[str, str, str]],
    stated: list[tuple[str, str, str]],
    aliases: dict[tuple[str, str | None], str],
) -> RowOutcomes:
    """Rows of that paper, name and value, matched under those aliases."""
    own = PropertySettings()
    dataset = PropertyDataset(
        settings=own,
        truth=tuple(
            TruthRow(refno=refno, name=name, value=value)
            for refno, name, value in truth
        ),
        aliases=AliasSet(
            entries=tuple(
                AliasEntry(
                    pred_name=name, gt_name=target, refno=refno, status="accepted"
                )
                for (name, refno), target in aliases.items()
            )
        ),
    )
    predictions = tuple(
        Prediction(refno=refno, name=name, value=value, row=number)
        for number, (refno, name, value) in enumerate(stated, 1)
    )
    return row_outcomes(
        dataset,
        ReplicatePredictions(model="m", replicate=1, predictions=predictions),
        Comparer(own),
        Renaming.of(dataset.aliases),
        lambda *_: True,
    )


@settings(max_examples=60)
@given(truth=ROWS, stated=ROWS, sets=st.tuples(SETS, SETS))
def test_bookings_come_to_the_change_of_the_true_positives(
    truth: list[tuple[str, str, str]],
    stated: list[tuple[str, str, str]],
    sets: tuple[dict[tuple[str, str | None], str], dict[tuple[str, str | None], str]],
) -> None:
    before, after = (scored(truth, stated, aliases) for aliases in sets)
    made = changes_by_alias(bookable_predictions(before), bookable_predictions(after))
    hits = [
        list(own.prediction_outcomes).count(RowOutcome.TP) for own in (before, after)
    ]
    misses = [list(own.truth_outcomes).count(RowOutcome.FN) for own in (before, after)]
    assert made.change == hits[1] - hits[0] == misses[0] - misses[1]
    columns = made.table.columns
    totals = {
        name: sum(int(row[columns.index(name)] or 0) for row in made.table.rows)
        for name in ("tp_gained", "tp_lost", "rows_renamed")
    }
    assert totals["tp_gained"] - totals["tp_lost"] == made.change
    renamed = (own for own in after.renamed if own.entries)
    assert totals["rows_renamed"] == sum(1 for _ in renamed)
