"""Runs that verify names, through the commands; what is counted, and the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.property_extraction.inputs import SAMPLE
from tests.jobs.screening.commanded import Done, command, rows, write_csv

COLUMNS = ["pred_name", "gt_name", "is_match", "reason", "model", "count", "avg_sim"]
PAIRS = ("pred_name", "gt_name", "count", "avg_sim")


def verify(folder: Path, run: str, *words: object) -> Done:
    done = command(
        *("run", "property-extraction", "--mode", "verify", "--no-report"),
        *("--runs-dir", folder, "--run-id", run, *words),
    )
    assert done.code == 0, done.err
    return done


def scored(folder: Path, run: str, scoring: int = 1) -> Path:
    return folder / run / "scores" / str(scoring)


def values(path: Path, model: str) -> dict[str, object]:
    models = json.loads((path / "scorecard.json").read_text("utf-8"))["models"]
    return {name: own["value"] for name, own in models[model]["metrics"].items()}


def recorded(folder: Path, name: str, replies: dict[str, str]) -> str:
    """A model that answers by key."""
    path = folder / f"{name}.jsonl"
    lines = (
        {"stage": "verify", "key": key, "response": text}
        for key, text in replies.items()
    )
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return f"recorded:{path}"


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    lines = [
        ("a", "x", 3, 0.5),
        ("b", "x", 2, 0.25),
        ("X ", "x", 1, 0.5),
        ("c", "y", 1, 0),
    ]
    return write_csv(tmp_path / "candidates.csv", PAIRS, lines)


def test_each_pair_has_the_verdict_of_each_model_and_of_most(
    tmp_path: Path, pairs: Path
) -> None:
    first = recorded(
        tmp_path,
        "first",
        {
            "a => x": '{"is_match": true, "reason": "same"}',
            "b => x": '{"is_match": "yes", "reason": "alike"}',
            "c => y": "true and false",
        },
    )
    second = recorded(
        tmp_path,
        "second",
        {
            "a => x": '{"is_match": true, "reason": "one"}',
            "b => x": '{"is_match": false, "reason": "other field"}',
            "c => y": "No.",
        },
    )
    words = ("--candidates", pairs, "--model", first, "--model", second)
    verify(tmp_path, "v", *words)
    path = scored(tmp_path, "v")
    found = values(path, first)
    assert found["pairs"] == 4
    assert (found["matches"], found["rejected"], found["undecided"]) == (2, 0, 1)
    assert (found["auto_verified"], found["unread"]) == (1, 1)
    assert (found["match_rate"], values(path, second)["match_rate"]) == (1.0, 1 / 3)
    assert [
        (row["pred_name"], row["is_match"], row["votes"], row["models"])
        for row in rows(path / "verification.csv")
    ] == [
        ("a", "true", "2", "2"),
        ("b", "", "1", "2"),
        ("X", "true", "", ""),
        ("c", "false", "0", "2"),
    ]
    (agreed,) = rows(path / "agreement.csv")
    assert (agreed["pairs"], agreed["agree"]) == ("2", "0.5")


def test_files_are_named_by_the_model_and_none_leaves_its_folder(
    tmp_path: Path, pairs: Path
) -> None:
    verify(tmp_path, "v", "--candidates", pairs)
    path = scored(tmp_path, "v")
    every = rows(path / "alias_verification_all__baseline--lexical.csv")
    assert list(every[0]) == COLUMNS
    assert [row["model"] for row in every].count("heuristic") == 1
    (equal,) = rows(path / "alias_verification_matches__baseline--lexical.csv")
    assert equal == {
        "pred_name": "X",
        "gt_name": "x",
        "is_match": "true",
        "reason": "Exact string match (auto-verified)",
        "model": "heuristic",
        "count": "1",
        "avg_sim": "0.5",
    }
    odd = write_csv(
        tmp_path / "verdicts.csv", COLUMNS[:5], [("a", "x", "yes", "", "../up/..")]
    )
    done = command(
        *("import", "property-extraction", "--verdicts", odd, "--no-report"),
        *("--runs-dir", tmp_path, "--run-id", "odd"),
    )
    assert done.code == 0, done.err
    made = scored(tmp_path, "odd")
    (named,) = made.glob("alias_verification_all__*")
    assert named.parent == made
    assert rows(named)[0]["model"] == "../up/.."


def test_finished_pairs_are_not_asked_again_and_scoring_twice_adds_no_column(
    tmp_path: Path, pairs: Path
) -> None:
    verify(tmp_path, "v", "--candidates", pairs)
    name = "alias_verification_all__baseline--lexical.csv"
    before = (scored(tmp_path, "v") / name).read_bytes()
    assert command("resume", "v", "--runs-dir", tmp_path, "--no-report").code == 0
    assert command("score", "v", "--runs-dir", tmp_path, "--no-report").code == 0
    again = [
        path.read_bytes() for path in (tmp_path / "v" / "scores").glob(f"*/{name}")
    ]
    assert len(again) > 1
    assert set(again) == {before}
    verdicts = scored(tmp_path, "v") / name
    more = write_csv(
        tmp_path / "more.csv", PAIRS, [("a", "x", 3, 0.5), ("new", "y", 1, 0.5)]
    )
    verify(tmp_path, "w", "--candidates", more, "--verdicts", verdicts)
    (asked,) = rows(scored(tmp_path, "w") / name)
    assert asked["pred_name"] == "new"


def test_pairs_are_asked_about_as_often_as_the_settings_or_the_command_say(
    tmp_path: Path, pairs: Path
) -> None:
    words = ("--candidates", pairs, "--verify-replicates", 2)
    for run, more, asked in (("a", (), 2), ("b", ("--replicates", 3), 3)):
        verify(tmp_path, run, *words, *more)
        found = values(scored(tmp_path, run), "baseline/lexical")
        assert (found["pairs"], found["replicates_agree"]) == (4, 1.0)
        (first, *_) = rows(scored(tmp_path, run) / "verification.csv")
        assert first["votes"] in {"0", str(asked)}
        tasks = command("tasks", run, "--runs-dir", tmp_path, "--json")
        assert len(tasks.out.splitlines()) == 4 * asked


def test_a_choice_gives_a_verdict_for_each_of_its_targets(tmp_path: Path) -> None:
    lines = [("Tc", "x", 1, 0.5), ("Tc", "critical temperature", 1, 0.1)]
    path = write_csv(tmp_path / "c.csv", PAIRS, lines)
    verify(tmp_path, "v", "--candidates", path, "--verify", "choice")
    found = rows(scored(tmp_path, "v") / "verification.csv")
    assert [row["is_match"] for row in found] == ["false", "true"]


def test_verdicts_that_are_imported_come_out_as_they_were(tmp_path: Path) -> None:
    given = SAMPLE / "verdicts" / "alias_verification_all__sample--teasel-70b.csv"
    for run, path in (("i", given), ("j", scored(tmp_path, "i") / given.name)):
        done = command(
            *("import", "property-extraction", "--verdicts", path, "--no-report"),
            *("--runs-dir", tmp_path, "--run-id", run),
        )
        assert done.code == 0, done.err
        assert (scored(tmp_path, run) / given.name).read_bytes() == given.read_bytes()


@pytest.mark.parametrize("verb", ["run", "import"])
def test_without_pairs_a_verification_says_what_to_name(
    tmp_path: Path, verb: str
) -> None:
    done = command(
        *(verb, "property-extraction", "--mode", "verify", "--runs-dir", tmp_path),
        *("--truth", SAMPLE / "truth.csv"),
    )
    assert done.code == 2
    assert "--candidates FILE" in done.err
    assert "--verdicts FILE" in done.err
