"""Score, verify, build, score again: each an explicit command, and nothing between.

`siftlog prepare property-extraction aliases`: from what is named to a folder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.property_extraction.aliases.files import read_aliases
from jobs.property_extraction.aliases.preparing import (
    AliasFolderSummary,
    prepare_aliases,
)
from jobs.property_extraction.settings import PropertySettings
from runner.errors import DatasetError, UsageError
from tests.commands import command

TRUTH = """\
refno,label,property_value,unit
P1,critical temperature,5.2,K
P1,-slope in Hc2 vs T,1.5,T/K
P2,critical temperature,6.5,K
P2,Debye temperature,200,K
"""
PREDICTIONS = """\
refno,property_name,value_string,units
P1,superconducting critical temperature,5.2,K
P1,'-slope of Hc2 vs T,1.7,T/K
P2,superconducting critical temperature,6.4,K
P2,debye temperature,200,K
"""


def done(*words: object) -> str:
    """What a command prints, which must go well."""
    found = command(*words)
    assert found.code == 0, found.err
    return found.out


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was imported and scored, and one that verified its candidates."""
    cwd = tmp_path_factory.mktemp("loop")
    (cwd / "truth.csv").write_text(TRUTH, encoding="utf-8")
    (cwd / "preds.csv").write_text(PREDICTIONS, encoding="utf-8")
    job, folder = "property-extraction", cwd / "runs"
    done(
        *("import", job, "--run-id", "free", "--runs-dir", folder, "--no-report"),
        *("--model", "m", "--preds", cwd / "preds.csv", "--truth", cwd / "truth.csv"),
        *("--set", "unknown_rubric=exact"),
    )
    done(
        *("run", job, "--mode", "verify", "--run-id", "asked", "--runs-dir", folder),
        *("--candidates", candidates(cwd), "--no-score"),
    )
    return cwd


def candidates(cwd: Path) -> Path:
    return cwd / "runs" / "free" / "scores" / "1" / "alias_candidates.csv"


def test_the_loop_gains_what_was_verified_and_leaves_no_trace_in_other_scorings(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    printed = done(
        *("prepare", "property-extraction", "aliases", "--verdicts", "asked"),
        *("--candidates", candidates(runs), "--out", "set", "--json"),
    )
    built: dict[str, Any] = json.loads(printed.splitlines()[-1])
    assert built["created_from"] == {
        "run": "free",
        "scoring": 1,
        "verification_runs": ["asked"],
    }
    path = runs / "set" / f"aliases-{built['id']}.json"
    found = read_aliases(path).alias_set
    assert {
        (entry.pred_name, entry.gt_name, entry.source, entry.models)
        for entry in found.accepted
    } >= {
        (
            "superconducting critical temperature",
            "critical temperature",
            "llm",
            ("baseline/lexical",),
        ),
        ("debye temperature", "Debye temperature", "exact", ()),
    }
    done("score", "free", "--aliases", path, "--no-report")
    done("score", "free", "--no-report")
    first, renamed, again = (
        runs / "runs" / "free" / "scores" / str(number) for number in (1, 2, 3)
    )
    values = [
        [own["metrics"][name]["value"] for name in ("tp", "fp", "fn")]
        for own in (
            json.loads((folder / "scorecard.json").read_text("utf-8"))["models"]["m"]
            for folder in (first, renamed)
        )
    ]
    assert values == [[0, 4, 4], [2, 2, 2]]
    # the draft map of the first scoring lies there, and no later one has looked at it
    for name in ("scorecard.json", "property_aliases.json", "alias_candidates.csv"):
        assert (first / name).read_bytes() == (again / name).read_bytes()
    # names with an alias are settled: their wrong values suggest no second target
    suggested = (renamed / "alias_candidates.csv").read_text("utf-8")
    assert "superconducting" not in suggested
    assert "'-slope in Hc2 vs T,'-slope in Hc2 vs T" in suggested


def test_a_run_whose_candidates_were_changed_gives_no_verdicts(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    asked, path = PropertySettings(verdicts=(Path("asked"),)), candidates(runs)
    before = path.read_text("utf-8")
    path.write_text(f"{before}1,a,b,1,0.5,false,0,false,1,\n", encoding="utf-8")
    with pytest.raises(DatasetError, match="is not the file that run asked was start"):
        prepare_aliases(asked)
    path.write_text(before, encoding="utf-8")
    with pytest.raises(UsageError, match="Run free verifies no names"):
        prepare_aliases(PropertySettings(verdicts=(Path("free"),)))


CANDIDATES = """\
rank,pred_name,gt_name,count,avg_sim,contained,value_hits,canonical,clash,examples
1,coherence length xi,coherence length,2,0.9,true,1,false,2,
2,coherence length xi,penetration length,2,0.6,false,0,false,2,
1,debye TEMPERATURE,Debye temperature,1,1.0,true,0,false,1,
1,coherence length,penetration length,1,0.7,false,0,true,1,
1,'-slope of Hc2,'-slope in Hc2 vs T,1,0.8,false,0,false,1,
"""
VERDICTS = """\
pred_name,gt_name,is_match,reason,model,count,avg_sim
coherence length xi,coherence length,True,same,a/b,2,0.9
coherence length xi,coherence length,False,other,c,2,0.9
coherence length xi,coherence length,True,same,d,2,0.9
'-slope of Hc2,'-slope in Hc2 vs T,False,not the same,a/b,1,0.8
debye TEMPERATURE,Debye temperature,True,equal but for case,heuristic,1,1.0
"""
REVIEW = """\
pred_name,gt_name,status,reason
'-slope of Hc2,'-slope in Hc2 vs T,accepted,looked at it
coherence length xi,penetration length,undecided,
"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for name, text in (
        ("candidates", CANDIDATES),
        ("verdicts", VERDICTS),
        ("review", REVIEW),
    ):
        path = tmp_path / f"{name}.csv"
        path.write_text(text, encoding="utf-8")
        named[name] = (path,) if name == "verdicts" else path
    return named


def made(tmp_path: Path, **settings: Any) -> tuple[Path, AliasFolderSummary]:
    folder = tmp_path / f"made-{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    return folder, prepare_aliases(PropertySettings(**settings)).write(folder)


def test_everything_that_decides_comes_together(
    tmp_path: Path, files: dict[str, Any]
) -> None:
    folder, told = made(tmp_path, **files)
    named = told.json["id"]
    for path in (folder / f"aliases-{named}.json", folder / f"aliases-{named}.csv"):
        found = read_aliases(path).alias_set
        assert found.id == named
        assert [
            (entry.pred_name, entry.gt_name, entry.source, entry.votes)
            for entry in found.accepted
        ] == [
            ("-slope of Hc2", "-slope in Hc2 vs T", "human", 0),
            ("coherence length xi", "coherence length", "llm", 2),
            ("debye TEMPERATURE", "Debye temperature", "exact", 0),
        ]
    assert "1 human, 1 llm, 1 exact, 2 undecided" in told.text
    assert (folder / "report.txt").read_text(encoding="utf-8") == ""


def test_drafts_act_only_if_that_is_said_and_right_names_are_kept(
    tmp_path: Path, files: dict[str, Any]
) -> None:
    folder, told = made(tmp_path, candidates=files["candidates"], accept_drafts=True)
    (path,) = folder.glob("*.json")
    accepted = read_aliases(path).alias_set.accepted
    assert [entry.pred_name for entry in accepted] == [
        "-slope of Hc2",
        "coherence length xi",
        "debye TEMPERATURE",
    ]
    (line,) = told.text.splitlines()[1:-1]
    assert line == (
        "canonical: 'coherence length' => 'penetration length' rejected: the name is "
        "itself one of truth or rubric"
    )


def test_a_set_knows_the_scoring_its_candidates_are_of_and_its_parent(
    tmp_path: Path, files: dict[str, Any]
) -> None:
    scoring = tmp_path / "runs" / "free" / "scores" / "7"
    scoring.mkdir(parents=True)
    (tmp_path / "runs" / "free" / "log.db").touch()
    candidates = scoring / "alias_candidates.csv"
    candidates.write_text(CANDIDATES, encoding="utf-8")
    folder, first = made(tmp_path, candidates=candidates, review=files["review"])
    assert first.json["created_from"] == {
        "run": "free",
        "scoring": 7,
        "verification_runs": (),
    }
    parent = folder / f"aliases-{first.json['id']}.json"
    _, second = made(tmp_path, parent=parent, candidates=files["candidates"])
    assert (second.json["id"], second.json["parent"]) == (first.json["id"],) * 2


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"candidates": None, "review": None, "verdicts": ()}, UsageError, "Name what"),
        ({"candidates": None}, UsageError, "Name --truth FILE or --rubric FILE"),
        ({"verdicts": (Path("nothing"),)}, UsageError, "neither a CSV file nor a run"),
        ({"verdicts": (Path("none.csv"),)}, DatasetError, "none.csv"),
    ],
)
def test_what_is_missing_is_told(
    files: dict[str, Any], change: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        prepare_aliases(PropertySettings(**{**files, **change}))


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("count", "row 2: count is 'x' (a whole number is expected)"),
        ("avg_sim", "row 2: avg_sim is 'x' (a number is expected)"),
        ("canonical", "row 2: canonical is 'x' (true or false is expected)"),
    ],
)
def test_a_candidate_that_is_off_is_told_with_its_row_and_column(
    files: dict[str, Any], cell: str, sentence: str
) -> None:
    files["candidates"].write_text(
        f"pred_name,gt_name,{cell}\na,b,x\n", encoding="utf-8"
    )
    with pytest.raises(DatasetError) as error:
        prepare_aliases(PropertySettings(**files))
    assert sentence in str(error.value)
    files["candidates"].write_text(
        "pred_name,gt_name,avg_sim\na,b,inf\n", encoding="utf-8"
    )
    with pytest.raises(DatasetError, match="from 0 to 1"):
        prepare_aliases(PropertySettings(**files))


def test_people_who_contradict_themselves_are_told_both_rows(
    tmp_path: Path, files: dict[str, Any]
) -> None:
    files["review"].write_text(
        "pred_name,gt_name,status\na,b,accepted\na,c,accepted\n", encoding="utf-8"
    )
    with pytest.raises(DatasetError, match="row 2 and row 3 clash"):
        prepare_aliases(PropertySettings(**files))
    _, told = made(tmp_path, **{**files, "clash": "set"})
    assert told.json["counts"]["human"] == 2
