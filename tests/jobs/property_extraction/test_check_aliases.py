"""What aliases change on real predictions: drafts, a guard, and a reader's own set.

Real predictions, scored by the command with one option changed at a time.

Each set goes through the commands that a person would use, and every count is one that
was known beforehand.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.commands import command
from tests.csv_files import rows, write_csv
from tests.jobs.property_extraction.aliases.reviewed_names import (
    digest,
    reviewed_aliases,
)
from tests.jobs.property_extraction.real_predictions import (
    CHAT,
    FREE,
    GEMINI,
    RealPredictions,
    Scoring,
)

pytestmark = [pytest.mark.realdata, pytest.mark.timeout(120)]

DOCUMENT = ("--profile", "document")
PUBLISHED = ("--profile", "published")
WORDS = (
    *("tp", "fp", "fn", "precision", "recall", "f1", "macro.f1"),
    *("misses", "name_matches"),
)
EMPTY = "e3b0c44298fc"

DRAFTED_SCORES = (
    5, 141, 31, 0.03424657534246575, 0.1388888888888889, 0.054945054945054944,
    0.04933887250960421, 28, 16,
)  # fmt: skip
"""Of the free names, by `WORDS`, with the draft that the guard leaves."""

REVIEWED_SCORES = {
    ("best", "ignore"): (
        13, 133, 23, 0.08904109589041095, 0.3611111111111111, 0.14285714285714285,
        0.07277537277537277, 22, 6,
    ),
    ("best", "convert"): (
        16, 130, 20, 0.1095890410958904, 0.4444444444444444, 0.17582417582417584,
        0.08912938912938911, 19, 3,
    ),
    ("set", "ignore"): (
        16, 130, 20, 0.1095890410958904, 0.4444444444444444, 0.17582417582417584,
        0.10505050505050506, 19, 6,
    ),
    ("set", "convert"): (
        22, 124, 14, 0.1506849315068493, 0.6111111111111112, 0.24175824175824176,
        0.1589225589225589, 13, 3,
    ),
}  # fmt: skip
"""Of the free names, by `WORDS`: single targets and target sets, by what units do."""


def prepared(real: RealPredictions, folder: Path, *words: object) -> Path:
    """The alias set that `siftlog prepare` makes, as JSON."""
    done = command(
        *("prepare", "property-extraction", "aliases", "--out", folder),
        *("--truth", real.truth, "--rubric", real.rubric, *words),
    )
    assert done.code == 0, done.err
    (path,) = folder.glob("aliases-*.json")
    return path


@pytest.fixture(scope="module")
def described(real: RealPredictions) -> dict[str, Scoring]:
    """A scoring of each file by the method as it is described, with candidates."""
    return {name: real.scoring(name, *DOCUMENT) for name in (GEMINI, CHAT, FREE)}


@pytest.mark.parametrize(
    ("name", "first", "numbers"),
    [
        (GEMINI, (1164, 74, 222, 194), (52, 52)),
        (CHAT, (1756, 36, 324, 281), (49, 19)),
        (FREE, (2728, 2, 264, 264), (78, 1)),
    ],
)
def test_mismatched_names_are_as_many_as_is_known(
    real: RealPredictions,
    described: dict[str, Scoring],
    name: str,
    first: tuple[int, ...],
    numbers: tuple[int, int],
) -> None:
    found = real.scored(name, *DOCUMENT)
    words = ("pairs", "contained", "near", "near_distinct")
    assert found.values(*(f"mismatch.{word}" for word in words)) == first
    draft = described[name].draft()
    assert (len(draft), sum(a == b for a, b in draft.items())) == numbers


@pytest.mark.parametrize(
    ("name", "place", "row"),
    [
        (GEMINI, 0, ("7c6d92565b81",) * 2 + ("4", 1.0)),
        (
            CHAT,
            1,
            ("1ce36e7d61f4", "74db93bb9e29", "4", 0.47619047619047616),
        ),
        (
            FREE,
            1,
            ("29a2bba4ab88", "9d436c7ef779", "1", 0.9189189189189189),
        ),
    ],
)
def test_the_first_candidates_are_those_that_are_known(
    described: dict[str, Scoring],
    name: str,
    place: int,
    row: tuple[str, str, str, float],
) -> None:
    found = rows(described[name].folder / "alias_candidates_review.csv")[place]
    names = (digest(found["pred_name"]), digest(found["gt_name"]))
    assert (*names, found["count"]) == row[:3]
    assert float(found["avg_sim"]) == row[3]


def test_free_names_are_as_far_from_the_truth_as_is_known(
    real: RealPredictions, described: dict[str, Scoring]
) -> None:
    found = real.scored(FREE, *DOCUMENT)
    words = ("similarity", "clashing", "by_value")
    similarity, *others = found.values(*(f"mismatch.{word}" for word in words))
    assert similarity == pytest.approx(0.43190498346911377, abs=1e-15)
    assert others == [68, 27]
    review = rows(described[FREE].folder / "alias_candidates_review.csv")
    assert len(review) == 200


@pytest.mark.parametrize(
    ("name", "named", "counts"),
    [
        (GEMINI, "56bebefd9399", (31, 83, 83)),
        (CHAT, "64921ff19cb4", (17, 317, 97)),
        (FREE, "4ba89305c984", (5, 141, 31)),
    ],
)
def test_a_draft_acts_only_if_it_is_named_and_accepted(
    real: RealPredictions,
    described: dict[str, Scoring],
    name: str,
    named: str,
    counts: tuple[int, int, int],
) -> None:
    path = described[name].folder / "property_aliases.json"
    words = (*DOCUMENT, "--aliases", path)
    refused = command("score", real.run(name), "--no-record", "--no-report", *words)
    assert refused.code == 1
    assert "--accept-drafts" in refused.err
    found = real.scored(name, *words, "--accept-drafts")
    assert (found.alias_id, found.counts) == (named, counts)


@pytest.mark.parametrize(
    ("name", "kept"),
    [(GEMINI, (EMPTY, 0, 31)), (CHAT, (EMPTY, 0, 26)), (FREE, ("ab68167821bb", 77, 5))],
)
def test_the_guard_keeps_right_names(
    real: RealPredictions,
    described: dict[str, Scoring],
    tmp_path: Path,
    name: str,
    kept: tuple[str, int, int],
) -> None:
    """By the id of what is left of the draft: its entries, and the pairs with it."""
    candidates = described[name].folder / "alias_candidates_review.csv"
    words = ("--candidates", candidates, "--accept-drafts")
    path = prepared(real, tmp_path / "made", *words)
    own = json.loads(path.read_text("utf-8"))
    entries = sum(entry["status"] == "accepted" for entry in own["entries"])
    found = real.scored(name, *DOCUMENT, "--aliases", path, "--accept-drafts")
    assert (found.alias_id, entries, *found.values("tp")) == kept
    assert own["id"] == found.alias_id


@pytest.mark.parametrize(
    ("name", "counts"),
    [(GEMINI, (17, 97, 97)), (CHAT, (15, 319, 99)), (FREE, (5, 141, 31))],
)
def test_without_the_guard_right_names_are_lost(
    real: RealPredictions,
    described: dict[str, Scoring],
    tmp_path: Path,
    name: str,
    counts: tuple[int, int, int],
) -> None:
    draft: dict[str, str] = {}
    for row in rows(described[name].folder / "alias_candidates_review.csv"):
        if row["pred_name"] != row["gt_name"]:
            draft.setdefault(meant(row["pred_name"]), meant(row["gt_name"]))
    path = tmp_path / "draft.json"
    path.write_text(json.dumps(draft), "utf-8")
    found = real.scored(name, *DOCUMENT, "--aliases", path, "--accept-drafts")
    assert found.counts == counts


def meant(cell: str) -> str:
    """A name without the quote that keeps spreadsheets from running it."""
    return cell.removeprefix("'")


def test_what_the_draft_renames_and_gains(
    real: RealPredictions, described: dict[str, Scoring]
) -> None:
    path = described[FREE].folder / "property_aliases.json"
    words = (*DOCUMENT, "--aliases", path, "--accept-drafts")
    own = rows(real.scoring(FREE, *words).folder / "score_pr_rows.csv")
    renamed = [
        row
        for row in own
        if row["alias_id"] and row["raw_pred_name"] != row["property_name"]
    ]
    assert len(renamed) == 120
    right = {digest(row["raw_pred_name"]) for row in renamed if row["status"] == "TP"}
    assert right == {"29a2bba4ab88", "312c7383822f", "406a9f645a68"}
    words = ("misses", "name_matches", "encompassment")
    found = real.scored(FREE, *DOCUMENT, "--aliases", path, "--accept-drafts")
    assert found.values(*words) == (28, 16, 57.142857142857146)


def test_only_a_map_that_is_named_steers_the_next_score(
    real: RealPredictions, tmp_path: Path
) -> None:
    """The old loop, in which each score reads the map that the last one wrote."""
    steered = []
    named: tuple[object, ...] = ()
    for number in range(4):
        scoring = real.scoring(FREE, *PUBLISHED, *named)
        steered.append((len(scoring.draft()), counted(scoring)))
        kept = tmp_path / f"{number}.json"
        kept.write_text(json.dumps(scoring.draft()), "utf-8")
        named = ("--aliases", kept, "--accept-drafts")
    assert [counts for _, counts in steered] == [
        (2, 144, 34),
        (5, 141, 31),
        (1, 145, 35),
        (5, 141, 31),
    ]
    assert [entries for entries, _ in steered][:3] == [78, 29, 80]
    again = [real.scoring(FREE, *PUBLISHED) for _ in range(2)]
    assert [counted(own) for own in again] == [(2, 144, 34)] * 2
    first, second = (
        {
            path.name: path.read_bytes()
            for path in own.folder.glob("*")
            # the one file that tells a scoring's own number
            if path.is_file() and path.name != "operations.json"
        }
        for own in again
    )
    assert first == second


def counted(scoring: Scoring) -> tuple[int, ...]:
    """TP, FP and FN of all properties."""
    own = rows(scoring.folder / "score_pr_summary.csv")
    return tuple(sum(int(row[word]) for row in own) for word in ("tp", "fp", "fn"))


def reviewed(path: Path, real: RealPredictions, *, all_targets: bool) -> Path:
    """A reader's decisions, as a spreadsheet would hold them."""
    pairs: Iterable[tuple[str, str]] = (
        (name, target)
        for name, targets in reviewed_aliases(real.folder).items()
        for target in (targets if all_targets else targets[:1])
    )
    lines = [
        (name, f"'{target}" if target.startswith("-") else target, "accepted")
        for name, target in pairs
    ]
    return write_csv(path, ("pred_name", "gt_name", "status"), lines)


@pytest.mark.parametrize(("clash", "units"), REVIEWED_SCORES)
def test_what_a_reader_accepted_finds_what_was_missed(
    real: RealPredictions,
    tmp_path: Path,
    clash: str,
    units: str,
) -> None:
    names = {row["label"] for row in rows(real.truth)}
    assert {
        target
        for targets in reviewed_aliases(real.folder).values()
        for target in targets
    } <= names
    review = reviewed(tmp_path / "review.csv", real, all_targets=clash == "set")
    path = prepared(real, tmp_path / "made", "--review", review, "--clash", clash)
    words = ("--aliases", path, "--clash", clash, "--units", units)
    found = real.scored(FREE, *words)
    assert found.values(*WORDS) == pytest.approx(
        REVIEWED_SCORES[clash, units], abs=1e-12
    )
    assert path.name == f"aliases-{found.alias_id}.json"


def test_a_readers_aliases_rename_43_rows_of_free_names(
    real: RealPredictions, tmp_path: Path
) -> None:
    review = reviewed(tmp_path / "review.csv", real, all_targets=False)
    path = prepared(real, tmp_path / "made", "--review", review)
    found = json.loads(path.read_text("utf-8"))["entries"]
    assert [entry["status"] for entry in found] == ["accepted"] * 19
    own = rows(real.scoring(FREE, "--aliases", path).folder / "score_pr_rows.csv")
    renamed = [row for row in own if row["alias_id"]]
    assert len(renamed) == 43
    gained = [row["raw_pred_name"] for row in renamed if row["status"] == "TP"]
    assert (len(gained), len(set(gained))) == (14, 13)
    assert gained.count("superconducting transition temperature Tonset") == 2


def test_the_draft_with_the_guard_gains_three(
    real: RealPredictions, described: dict[str, Scoring], tmp_path: Path
) -> None:
    candidates = described[FREE].folder / "alias_candidates_review.csv"
    path = prepared(
        *(real, tmp_path / "made", "--candidates", candidates, "--accept-drafts")
    )
    found = real.scored(FREE, "--aliases", path, "--accept-drafts")
    assert found.values(*WORDS) == pytest.approx(DRAFTED_SCORES, abs=1e-12)


@pytest.mark.parametrize(
    ("words", "counts"),
    [
        (("--numbers", "strict"), (32, 71, 82)),
        (("--categorical", "substring"), (39, 64, 75)),
        (("--units", "ignore"), (36, 67, 78)),
        (("--abstentions", "value"), (37, 77, 77)),
        (("--matching", "greedy"), (37, 66, 77)),
        (("--paper-set", "common"), (37, 66, 77)),
    ],
)
def test_one_option_at_a_time(
    real: RealPredictions, words: tuple[str, str], counts: tuple[int, int, int]
) -> None:
    assert real.scored(GEMINI, *words).counts == counts


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("rubric_2.csv", (33, 70, 81)),
        ("rubric_4.csv", (29, 74, 85)),
        ("rubric_5.csv", (33, 73, 84)),
    ],
)
def test_one_rubric_after_another(
    real: RealPredictions, name: str, counts: tuple[int, int, int]
) -> None:
    path = real.folder / "scoring_assets" / name
    assert real.scored(GEMINI, "--rubric", path).counts == counts


def test_space_groups_compared_as_such(real: RealPredictions, tmp_path: Path) -> None:
    with real.rubric.open(encoding="utf-8", newline="") as lines:
        table = csv.DictReader(lines)
        own = [
            {**row, "rubric": "space_group"}
            if row["property_name"] == "space group"
            else row
            for row in table
        ]
        columns = list(table.fieldnames or ())
    path = write_csv(tmp_path / "rubric.csv", columns, own)
    assert real.scored(GEMINI, "--rubric", path).counts == (38, 65, 76)


@pytest.mark.parametrize(
    ("name", "profile", "counts"),
    [
        (GEMINI, "siftlog", (37, 77, 89)),
        (CHAT, "siftlog", (26, 383, 100)),
        (FREE, "siftlog", (2, 144, 35)),
        (GEMINI, "published", (33, 93, 93)),
        (CHAT, "published", (27, 382, 99)),
    ],
)
def test_compositions_are_in_all_counts_or_in_none(
    real: RealPredictions, name: str, profile: str, counts: tuple[int, int, int]
) -> None:
    pytest.importorskip("pymatgen.core")
    words = ("--pymatgen", "on", "--profile", profile)
    assert real.scored(name, *words).counts == counts


def test_what_substrings_and_units_add_is_known(real: RealPredictions) -> None:
    """Both pairs that substrings add are accidents; one pair needs its unit."""
    usual, loose, plain = (
        real.scoring(GEMINI, *words).folder
        for words in ((), ("--categorical", "substring"), ("--units", "ignore"))
    )

    def pairs(folder: Path) -> set[tuple[str, str]]:
        return {
            (row["pred_value"], row["gt_value"])
            for row in rows(folder / "score_pr_matches.csv")
            if row["status"] == "TP"
        }

    accidents = pairs(loose) - pairs(usual)
    assert len(accidents) == 2
    assert all(
        truth != stated and (truth.lower() in stated.lower() or stated in truth)
        for stated, truth in accidents
    )
    (converted,) = (
        row
        for row in rows(usual / "score_pr_rows.csv")
        if row["status"] == "TP" and row["unit_status"] == "converted"
    )
    assert (converted["pred_unit"], converted["gt_unit"]) == (
        "μΩ cm at 100 K",
        "m.ohm.cm",
    )
    lost = (converted["pred_value"], converted["gt_value"])
    assert pairs(usual) - pairs(plain) == {lost} == {("30", "0.03")}
