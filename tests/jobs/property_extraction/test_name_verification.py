"""Runs that verify names, through the commands; what is counted, and the files.

The figure of a verification has each answered pair once, by verdict. A name of a
verification is explained by what was said of its pairs. What most verdicts on a pair
say.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.inputs import SAMPLE
from jobs.property_extraction.name_pairs import (
    HEURISTIC,
    NamePair,
    NameVerdict,
    majority,
)
from jobs.property_extraction.name_verification import NameVerification
from jobs.property_extraction.score_name_verification import figures
from runner.scorecard import Stack
from tests.commands import Done, command, summary_of
from tests.csv_files import rows, write_csv

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


def verification(*pairs: tuple[float | None, bool | None]) -> NameVerification:
    names = [f"n{at}" for at, _ in enumerate(pairs)]
    return NameVerification(
        pairs=tuple(
            NamePair(pred_name=name, gt_name="t", avg_sim=similarity)
            for name, (similarity, _) in zip(names, pairs, strict=True)
        ),
        equal=frozenset(),
        verified_before=0,
        columns=(),
        rulings=majority(
            NameVerdict(pred_name=name, gt_name="t", is_match=said, model="m")
            for name, (_, said) in zip(names, pairs, strict=True)
        ),
        outcomes=(),
        missing=0,
        stale=0,
    )


def test_pairs_stand_in_the_bin_of_their_similarity() -> None:
    pairs = ((0.0, False), (0.99, True), (1.0, True), (0.95, False), (0.5, None))
    (figure,) = figures(verification(*pairs, (None, True)))
    stacks = {m.label: m.values for m in figure.panels[0].marks if isinstance(m, Stack)}
    assert stacks["match"] == (0,) * 9 + (2,)
    assert stacks["no match"] == (1, *(0,) * 8, 1)
    assert stacks["undecided"] == (0,) * 5 + (1,) + (0,) * 4


def test_without_similarities_there_is_none() -> None:
    assert list(figures(verification((None, True)))) == []


PAGES_COLUMNS = ("pred_name", "gt_name", "count", "avg_sim")
PAGES_PAIRS = [
    ("critical temperature Tc", "critical temperature", 3, 0.5),
    ("Debye frequency", "critical temperature", 2, 0.25),
    ("GAP", "gap", 1, 1.0),
]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = write_csv(tmp_path / "candidates.csv", PAGES_COLUMNS, PAGES_PAIRS)
    done = command(
        *("run", "property-extraction", "--mode", "verify", "--candidates", path),
        *("--runs-dir", tmp_path, "--run-id", "v", "--no-report"),
    )
    assert done.code == 0, done.err
    return tmp_path


def test_a_name_has_each_of_its_pairs_with_who_said_what(runs: Path) -> None:
    told = command("explain", "v", "critical temperature", "--runs-dir", runs).out
    lines = told.splitlines()
    assert lines.count("  asked      baseline/lexical") == 2
    at = lines.index("critical temperature Tc => critical temperature")
    assert lines[at + 1 : at + 3] == [
        "  seen       in 3 papers, similarity 0.500, equal values 0",
        "  ruling     match, 1 vote for",
    ]
    at = lines.index("Debye frequency => critical temperature")
    assert lines[at + 2] == "  ruling     no match, 0 votes for"


def test_equal_names_and_unknown_ones_say_so(runs: Path) -> None:
    told = command("explain", "v", "GAP", "--runs-dir", runs).out
    assert "match: the names differ in case only; no model was used" in told
    refused = command("explain", "v", "nothing", "--runs-dir", runs)
    assert refused.code != 0
    assert "No pair has the name 'nothing'" in refused.err


def test_of_a_longer_list_the_new_pairs_alone_are_asked_about(runs: Path) -> None:
    first = runs / "v/scores/1/alias_verification_all__baseline--lexical.csv"
    pairs = [*PAGES_PAIRS, ("coherence length", "gap", 1, 0.5)]
    longer = write_csv(runs / "longer.csv", PAGES_COLUMNS, pairs)
    done = command(
        *("run", "property-extraction", "--mode", "verify", "--candidates", longer),
        *("--verdicts", first, "--runs-dir", runs, "--run-id", "w", "--no-report"),
    )
    assert done.code == 0, done.err
    summary = summary_of("w", "--runs-dir", runs)
    assert "Names verified: 4 pairs, 1 equal, 2 verified before\n" in summary
    assert command("tasks", "w", "--runs-dir", runs).out.count("completed") == 1


def verdict(
    *, is_match: bool | None, model: str = "m", reason: str = ""
) -> NameVerdict:
    return NameVerdict(
        pred_name="a", gt_name="b", is_match=is_match, model=model, reason=reason
    )


@pytest.mark.parametrize(
    ("said", "ruling"),
    [
        ([True], True),
        ([False], False),
        ([True, True, False], True),
        ([True, False], None),
        ([True, None, None], True),
        ([None], None),
    ],
)
def test_the_majority_rules_and_a_tie_is_undecided(
    said: list[bool | None], ruling: bool | None
) -> None:
    found = majority(verdict(is_match=is_match) for is_match in said)["a", "b"]
    assert found.is_match is ruling
    assert found.votes == said.count(True)


def test_a_ruling_has_a_reason_of_its_side_and_all_models_that_were_asked() -> None:
    found = majority(
        [
            verdict(is_match=True, model="z", reason="late"),
            verdict(is_match=False, model="a", reason="no"),
            verdict(is_match=True, model="b", reason="same"),
        ]
    )["a", "b"]
    assert found.reason == "same"
    assert found.models == ("a", "b", "z")


def test_what_nobody_was_asked_is_no_verdict() -> None:
    assert majority([verdict(is_match=True, model=HEURISTIC)]) == {}


VERDICTS = st.lists(
    st.builds(
        NameVerdict,
        pred_name=st.sampled_from("ab"),
        gt_name=st.sampled_from("xy"),
        is_match=st.sampled_from([True, False, None]),
        reason=st.sampled_from(["", "r", "s"]),
        model=st.sampled_from(["", "m", "n"]),
    ),
    max_size=8,
)


@given(VERDICTS, st.randoms(use_true_random=False))
def test_the_order_of_verdicts_changes_nothing(
    said: list[NameVerdict], random: object
) -> None:
    before = majority(said)
    random.shuffle(said)
    assert majority(said) == before
