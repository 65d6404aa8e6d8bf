"""One turn of the loop that aliases go through, on the sample that ships.

Runs and imports that start from the sample: what every oddity in it leads to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobs.property_extraction.inputs import SAMPLE
from runner.table_files import as_meant
from tests.commands import Done, command
from tests.csv_files import rows

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
    totals = []
    for aliases in ([], [VERIFIED], [REVIEWED]):
        named = [word for name in aliases for word in ("--aliases", shipped(name))]
        done = command("score", "x", *named, *own)
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


COUNTS = ("tp", "fp", "fn")
RUNS_RULES = (
    *("--truth", SAMPLE / "truth.csv", "--rubric", SAMPLE / "rubric.csv"),
    *("--clusters", SAMPLE / "clusters.json", "--unit-table", SAMPLE / "units.csv"),
)
TEASEL, YARROW = (
    f"recorded:{SAMPLE / 'replies' / model}.jsonl"
    for model in ("teasel-70b", "yarrow-8b")
)


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the sample in a folder of its own."""

    folder: Path
    run: str

    def score(self, **settings: object) -> int:
        """Score it again; the number of the scoring."""
        words = (f"--set={name}={value}" for name, value in settings.items())
        done = command("score", self.run, "--runs-dir", self.folder, *QUICK, *words)
        assert done.code == 0, done.err
        return len([*(self.folder / self.run / "scores").iterdir()])

    def metrics(self, *names: str, scoring: int = 1) -> dict[str, tuple[object, ...]]:
        """Metrics by model."""
        path = self._scoring(scoring) / "scorecard.json"
        models = json.loads(path.read_text("utf-8"))["models"]
        return {
            model: tuple(own["metrics"][name]["value"] for name in names)
            for model, own in models.items()
        }

    def statuses(
        self, refno: str, name: str, *, scoring: int = 1, model: str = ""
    ) -> list[tuple[str, str, str]]:
        """Status, predicted and curated value of the rows of a group."""
        return [
            (row["status"], row["pred_value"], row["gt_value"])
            for path in self._scoring(scoring).rglob("score_pr_rows.csv")
            if model in path.parent.name
            for row in rows(path)
            if (row["refno"], as_meant(row["property_name"])) == (refno, name)
        ]

    def draft(self, model: str) -> dict[str, str]:
        """The draft of an alias map that a scoring writes."""
        (path,) = self._scoring(1).glob(f"*{model}*/property_aliases.json")
        found: dict[str, str] = json.loads(path.read_text("utf-8"))
        return found

    def _scoring(self, number: int) -> Path:
        return self.folder / self.run / "scores" / str(number)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("recorded")
    models = ("--model", TEASEL, "--model", YARROW)
    own = ("--runs-dir", folder, "--run-id", "two", *QUICK)
    done = command("run", "property-extraction", *models, *own)
    assert done.code == 0, done.err
    assert "using the sample that ships with property-extraction" in done.err
    return Run(folder, "two")


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("imported")
    words = ("--preds", SAMPLE / "predictions.csv", *RUNS_RULES)
    own = ("--runs-dir", folder, "--run-id", "told", *QUICK)
    done = command("import", "property-extraction", *words, *own)
    assert done.code == 0, done.err
    return Run(folder, "told")


def test_two_recorded_models_are_scored(recorded: Run) -> None:
    assert recorded.metrics(*COUNTS) == {TEASEL: (43, 27, 24), YARROW: (7, 19, 60)}
    fabricated = recorded.metrics("grounding.absent", "grounding.no_quote")
    assert fabricated == {TEASEL: (1, 0), YARROW: (0, 1)}


def test_habits_have_targets_that_a_draft_finds_and_false_friends(
    recorded: Run,
) -> None:
    draft = recorded.draft("teasel-70b")
    right = {
        "Debye temperature, fit": "Debye temperature",
        "Sommerfeld constant": "Sommerfeld coefficient",
        "a-axis lattice parameter": "lattice parameter a",
        "lower critical field at T = 0": "lower critical field at 0 K",
    }
    friends = {
        "critical temperature, resistance onset": (
            "critical temperature, zero resistance"
        ),
        "upper critical field at 4.2 K, H // c": "upper critical field at 0 K, H // c",
    }
    assert right.items() <= draft.items()
    assert friends.items() <= draft.items()


def test_fields_in_oersted_match_those_in_tesla_only_if_units_are_converted(
    recorded: Run, imported: Run
) -> None:
    upper = ("SL-002", "upper critical field at 0 K")
    assert recorded.statuses(*upper, model="teasel") == [("TP", "61.7", "6.17")]
    assert imported.statuses(*upper) == [("TP", "61.7", "6.17")]
    ignoring = imported.score(units="ignore")
    assert imported.statuses(*upper, scoring=ignoring) == [
        *(("FP", "61.7", ""), ("FN", "", "6.17"))
    ]


def test_a_factor_of_thousand_in_a_unit_is_no_match(recorded: Run) -> None:
    assert recorded.statuses("SL-001", "residual resistivity", model="yarrow") == [
        *(("FP", "31.4", ""), ("FN", "", "31.4"))
    ]


def test_repeated_values_need_maximum_matching(imported: Run) -> None:
    debye = ("SL-002", "Debye temperature")
    assert imported.statuses(*debye) == [
        *(("TP", "312.0", "311.8"), ("TP", "312.45", "312.2"))
    ]
    greedy = imported.score(matching="greedy")
    assert imported.statuses(*debye, scoring=greedy) == [
        *(("TP", "312.0", "312.2"), ("FP", "312.45", ""), ("FN", "", "311.8"))
    ]


def test_papers_of_one_file_count_unless_papers_of_both_are_asked_for(
    imported: Run,
) -> None:
    assert imported.metrics(*COUNTS) == {"sample/bryony-13b": (36, 11, 31)}
    common = imported.score(paper_set="common")
    assert imported.metrics(*COUNTS, scoring=common) == {
        "sample/bryony-13b": (36, 9, 19)
    }


def test_a_value_that_says_there_is_none_is_no_prediction(imported: Run) -> None:
    assert imported.metrics("abstained") == {"sample/bryony-13b": (4,)}
    kept = imported.score(abstentions="value")
    assert imported.metrics(*COUNTS, scoring=kept) == {
        "sample/bryony-13b": (36, 15, 31)
    }


def test_ranges_and_bounds_are_no_values(recorded: Run, imported: Run) -> None:
    kinds = ("numbers.si.range", "numbers.si.bound")
    assert imported.metrics(*kinds) == {"sample/bryony-13b": (1, 1)}
    assert recorded.metrics(*kinds) == {TEASEL: (0, 1), YARROW: (1, 0)}


def test_a_name_may_be_predicted_and_missed_at_once(recorded: Run) -> None:
    onset = recorded.statuses("SL-005", "critical temperature, onset", model="yarrow")
    assert onset == [("FP", "4.5", ""), ("FN", "", "4.52")]


def test_a_second_look_at_quotes_finds_withdraws_or_gives_up(
    tmp_path: Path, recorded: Run
) -> None:
    own = ("--runs-dir", tmp_path, "--run-id", "again", "--requote", *QUICK)
    models = ("--model", TEASEL, "--model", YARROW)
    done = command("run", "property-extraction", *models, *own)
    assert done.code == 0, done.err
    again = Run(tmp_path, "again")
    assert again.metrics(*COUNTS) == recorded.metrics(*COUNTS)
    quotes = again.metrics("grounding.absent", "grounding.no_quote")
    assert quotes == {TEASEL: (1, 0), YARROW: (0, 0)}


def test_the_baseline_runs_on_the_sample(tmp_path: Path) -> None:
    own = ("--runs-dir", tmp_path, "--run-id", "floor", *QUICK)
    done = command("run", "property-extraction", *own)
    assert done.code == 0, done.err
    ((tp, absent),) = Run(tmp_path, "floor").metrics("tp", "grounding.absent").values()
    assert tp
    assert not absent
