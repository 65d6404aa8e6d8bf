"""Real reviews without their labels get the files that they get with them."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from pathlib import Path

import pytest

from tests.commands import command

pytestmark = [pytest.mark.realdata, pytest.mark.timeout(180)]

REVIEWS = ("Triptans", "Antihistamines")
TRUTH = {"label", "kind"}


@pytest.fixture(scope="module")
def cohen(realdata: Path) -> Path:
    return realdata / "near_miss" / "cohen2006"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return [*csv.DictReader(lines)]


def answers(path: Path) -> dict[tuple[str, str], dict[str, str]]:
    """What a model says of each record, without the truth."""
    return {
        (row["review_pmid"], row["paper_pmid"]): {
            name: cell for name, cell in row.items() if name not in TRUTH
        }
        for row in rows(path)
    }


def test_a_set_without_labels_gives_the_same_decisions(
    cohen: Path, tmp_path: Path
) -> None:
    told, blind = tmp_path / "told", tmp_path / "blind"
    records = ",".join(str(cohen / f"{name}.csv") for name in REVIEWS)
    prepared = command(
        *("prepare", "screening", "--records", records, "--out", told),
        *("--negatives", "true-excluded", "--per-review", 100),
    )
    assert prepared.code == 0, prepared.err
    shutil.copytree(told, blind)
    source = rows(told / "validation_set.csv")
    with (blind / "validation_set.csv").open("w", newline="") as lines:
        writer = csv.DictWriter(lines, source[0])
        writer.writeheader()
        writer.writerows({**row, "label": "", "kind": ""} for row in source)
    manifest = json.loads((blind / "manifest.json").read_text())
    changed = (blind / "validation_set.csv").read_bytes()
    manifest["files"]["validation_set.csv"] = hashlib.sha256(changed).hexdigest()
    (blind / "manifest.json").write_text(json.dumps(manifest))
    for folder in (told, blind):
        done = command(
            *("run", "screening", "--validation-set", folder, "--title-criteria"),
            *("--run-id", folder.name, "--runs-dir", tmp_path / "runs", "--no-report"),
            *("--set", "boot_b=0"),
        )
        assert done.code == 0, done.err
    with_labels, without = (
        tmp_path / "runs" / folder.name / "scores" / "1" for folder in (told, blind)
    )
    expected = answers(with_labels / "decisions.csv")
    assert len(expected) > 200
    assert answers(without / "decisions.csv") == expected
    assert {row["label"] for row in rows(without / "decisions.csv")} == {""}
    for row in rows(without / "ranking.csv"):
        answer = expected[row["review_pmid"], row["paper_pmid"]]
        assert (row["decision"], row["p_include"], row["reason"]) == (
            answer["decision"],
            answer["confidence"],
            answer["reason"],
        )


def test_a_real_library_is_measured_once_its_labels_are_given(
    cohen: Path, tmp_path: Path
) -> None:
    library = cohen / "Triptans.csv"
    place = ("--runs-dir", tmp_path / "runs", "--no-report")
    question = "Are triptans effective for migraine in adults?"
    ran = command(
        *("run", "screening", "--library", library, "--question", question),
        *("--run-id", "r", *place),
    )
    assert ran.code == 0, ran.err
    scored = command("score", "r", "--labels", library, *place)
    assert scored.code == 0, scored.err
    first, second = (tmp_path / "runs" / "r" / "scores" / str(n) for n in (1, 2))
    assert answers(first / "decisions.csv") == answers(second / "decisions.csv")
    assert (first / "ranking.csv").read_bytes() == (second / "ranking.csv").read_bytes()
    labels = {row["pubmedID"]: row["label_included"] for row in rows(library)}
    decided = rows(second / "decisions.csv")
    assert {row["paper_pmid"]: row["label"] for row in decided} == labels
    card = json.loads((second / "scorecard.json").read_text())
    (metrics,) = card["models"].values()
    included = [row for row in decided if row["label"] == "1"]
    found = sum(row["decision"] == "include" for row in included)
    missed = sum(row["decision"] == "exclude" for row in included)
    sensitivity = metrics["metrics"]["all.micro.sensitivity"]["value"]
    assert sensitivity == pytest.approx(found / (found + missed))
