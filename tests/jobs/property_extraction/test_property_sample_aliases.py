"""One turn of the loop that aliases go through, on the sample that ships."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.property_extraction.inputs import SAMPLE
from runner.typeset import (
    as_meant,
)
from tests.jobs.screening.commanded import Done, command, rows

VERIFIED, REVIEWED = "cbb87a5ad421", "e6a4cd75734f"
RULES = ("--truth", SAMPLE / "truth.csv", "--rubric", SAMPLE / "rubric.csv")
CANDIDATES = ("--candidates", SAMPLE / "candidates.csv")
QUICK = ("--no-report", "--boot-b", 0)
MODELS = tuple(
    word
    for model in ("teasel-70b", "yarrow-8b")
    for word in ("--model", f"recorded:{SAMPLE / 'replies' / model}.jsonl")
)


def shipped(name: str) -> Path:
    return SAMPLE / "aliases" / f"aliases-{name}.json"


def verdicts() -> Iterator[object]:
    for path in sorted((SAMPLE / "verdicts").iterdir()):
        yield from ("--verdicts", path)


def prepare(out: Path, *words: object) -> Done:
    done = command(
        "prepare", "property-extraction", "aliases", *words, *RULES, "--out", out
    )
    assert done.code == 0, done.err
    return done


def told(done: Done, rule: str) -> list[str]:
    """What a rule did, by the names that it did it to."""
    lines = done.out.splitlines()
    return [line.split("'")[1] for line in lines if line.startswith(f"{rule}: ")]


def test_the_first_set_is_what_verdicts_make_of_candidates(tmp_path: Path) -> None:
    done = prepare(tmp_path / "made", *CANDIDATES, *verdicts())
    made = tmp_path / "made" / f"aliases-{VERIFIED}.json"
    assert made.read_bytes() == shipped(VERIFIED).read_bytes()
    assert told(done, "clash") == ["Tc"]
    decided = {
        (as_meant(row["pred_name"]), row["gt_name"]): row["status"]
        for row in rows(made.with_suffix(".csv"))
    }
    onset = "critical temperature, resistance onset"
    assert decided[onset, "critical temperature, onset"] == "accepted"
    assert decided[onset, "critical temperature, zero resistance"] == "undecided"
    field = ("upper critical field at 4.2 K, H // c", "upper critical field at 0 K")
    assert decided[field[0], f"{field[1]}, H // c"] == "rejected"
    assert decided["-slope of Hc2 at Tc", "lower critical field at 0 K"] == "rejected"
    assert decided["magnetic moment", "effective magnetic moment"] == "accepted"


def test_the_second_set_is_what_a_person_makes_of_the_first(tmp_path: Path) -> None:
    grown = ("--review", SAMPLE / "review.csv", "--parent", shipped(VERIFIED))
    done = prepare(tmp_path / "made", *CANDIDATES, *verdicts(), *grown)
    made = tmp_path / "made" / f"aliases-{REVIEWED}.json"
    assert made.read_bytes() == shipped(REVIEWED).read_bytes()
    assert told(done, "transitive") == ["Debye temp. Θ_D"]
    loop = {"residual resistance ratio", "resistivity ratio"}
    assert {*told(done, "cycle")} == loop


def test_a_set_is_prepared_where_no_input_is_named(tmp_path: Path) -> None:
    words = ("prepare", "property-extraction", "aliases", "--out", tmp_path / "made")
    done = command(*words)
    assert done.code == 0, done.err
    assert done.out.startswith(f"aliases {REVIEWED} ")


def test_recorded_verdicts_are_those_of_the_files_and_make_the_same_set(
    tmp_path: Path,
) -> None:
    verify = ("--mode", "verify", *CANDIDATES, *RULES, *MODELS, *QUICK)
    own = ("--runs-dir", tmp_path, "--run-id", "asked")
    done = command("run", "property-extraction", *verify, *own)
    assert done.code == 0, done.err
    (written,) = (tmp_path / "asked" / "scores").iterdir()
    for model in ("teasel-70b", "yarrow-8b"):
        (path,) = written.glob(f"alias_verification_all__*{model}*")
        (known,) = (SAMPLE / "verdicts").glob(f"*{model}.csv")
        assert nameless(path) == nameless(known)
    prepare(tmp_path / "made", *CANDIDATES, "--verdicts", tmp_path / "asked")
    assert (tmp_path / "made" / f"aliases-{VERIFIED}.json").exists()


@pytest.mark.parametrize(
    ("pred_name", "verdict"),
    [
        ("critical temperature, resistance onset", "true"),
        ("magnetic moment", ""),
        ("Space Group", "true"),
    ],
)
def test_verdict_files_hold_what_was_read_what_was_not_and_what_nobody_was_asked(
    pred_name: str, verdict: str
) -> None:
    (path,) = (SAMPLE / "verdicts").glob("*yarrow-8b.csv")
    own = [row for row in rows(path) if row["pred_name"] == pred_name]
    assert {row["is_match"] for row in own} == {verdict}
    asked = {row["model"] for row in own}
    assert asked == {"heuristic" if pred_name == "Space Group" else "sample/yarrow-8b"}


def test_each_set_gains_rows_and_candidates_come_from_both_models(
    tmp_path: Path,
) -> None:
    own = ("--runs-dir", tmp_path, *QUICK)
    # the shipped candidates are those of this scoring, with the cut reply left out
    strict = ("--partial", "fail", "--run-id", "x")
    done = command("run", "property-extraction", *MODELS, *own, *strict)
    assert done.code == 0, done.err
    totals = [found(done)]
    for name in (VERIFIED, REVIEWED):
        done = command("score", "x", "--aliases", shipped(name), *own)
        assert done.code == 0, done.err
        totals.append(found(done))
    assert totals == [["43", "6"], ["58", "13"], ["58", "15"]]
    written = {
        (row["pred_name"], row["gt_name"]): row
        for path in (tmp_path / "x" / "scores" / "1").rglob("alias_candidates.csv")
        for row in rows(path)
    }
    chosen = rows(SAMPLE / "candidates.csv")
    assert chosen == [written[row["pred_name"], row["gt_name"]] for row in chosen]


def nameless(path: Path) -> list[dict[str, str]]:
    """The rows of a file without their models, which recordings call otherwise."""
    return [row | {"model": ""} for row in rows(path)]


def found(done: Done) -> list[str]:
    """True positives of each model, as the summary has them."""
    lines = done.out.splitlines()
    return [line.split()[1] for line in lines if line.startswith("  TP ")]
