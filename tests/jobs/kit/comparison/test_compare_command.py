"""The command itself, over real runs of the sample: what it says, and leaves alone."""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs.paper_investigation.inputs import SAMPLE
from tests.corpus import write_corpus
from tests.plugging import plugged
from tests.processes import environment, siftlog, simulated
from tests.terminals import on_terminal

JOB = "paper-investigation"
LARCH, MOSS, LEXICAL = "sample/larch-70b", "sample/moss-3b", "baseline/lexical"
INPUTS = (
    *("--bench", SAMPLE / "variant_bench.jsonl"),
    *("--papers", SAMPLE / "papers"),
    *("--questions", SAMPLE / "questions"),
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample answered by the baseline, and as recorded of two models."""
    cwd = tmp_path_factory.mktemp("compared")
    siftlog("run", JOB, "--run-id=base", cwd=cwd)
    replies = sorted((SAMPLE / "replies").glob("*.jsonl"))
    imported = siftlog(
        *("import", JOB, *replies, *INPUTS, "--run-id=recorded"), cwd=cwd, check=False
    )
    assert imported.returncode == 3, imported.stderr
    return cwd


def compared(cwd: Path, *words: object) -> dict[str, Any]:
    done = siftlog("compare", *words, "--json", cwd=cwd)
    (line,) = done.stdout.splitlines()
    said: dict[str, Any] = json.loads(line)
    return said


def bytes_of(cwd: Path) -> dict[str, str]:
    """Every file of the runs but those that any reader of a log touches."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((cwd / "runs").rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


def test_two_runs_as_a_table_of_80_columns(runs: Path) -> None:
    done = siftlog("compare", "base", f"recorded:{LARCH}", cwd=runs)
    lines = done.stdout.splitlines()
    assert lines[:2] == [f"A  base  {LEXICAL}", f"B  recorded  {LARCH}"]
    assert max(map(len, lines)) <= 80
    assert lines[4].startswith("Variant recall  ")
    assert lines[4].endswith("  too few")
    result = " ".join(" ".join(lines[-3:]).split())
    apart = f"{LARCH} of recorded from {LEXICAL} of base"
    assert f"7 papers are too few to tell {apart}; 10 are needed." in result
    assert done.stderr == ""


def test_numbers_are_those_of_the_papers_that_both_scored(runs: Path) -> None:
    said = compared(runs, f"recorded:{LARCH}", f"recorded:{MOSS}")
    (pair,) = said["pairs"]
    metric = pair["metrics"]["avg_paper_score"]
    with (runs / "runs/recorded/scores/1/papers.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["paper_score"]]
    a, b = (
        {r["pmcid"]: float(r["paper_score"]) for r in rows if r["model"] == model}
        for model in (LARCH, MOSS)
    )
    shared = a.keys() & b.keys()
    assert (metric["n"], metric["only_a"], metric["only_b"]) == (
        len(shared),
        len(a) - len(shared),
        len(b) - len(shared),
    )
    gaps = [b[pmcid] - a[pmcid] for pmcid in shared]
    assert metric["difference"] == pytest.approx(sum(gaps) / len(gaps), abs=1e-12)
    # the table that scoring itself writes has the same difference, the other way round
    with (runs / "runs/recorded/scores/1/pairs.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert float(row["avg_paper_score_difference"].lstrip("'")) == -metric["difference"]
    assert float(row["avg_paper_score_lo"].lstrip("'")) == pytest.approx(-metric["hi"])
    assert int(row["losses"]) == metric["standing"]["wins"]
    # and the same test, p and word as the comparison of all metrics has
    (whole,) = compared(runs, "recorded")["pairs"]
    for path in ("avg_paper_score", "avg_variant_recall", "avg_question_acc"):
        found = whole["metrics"][path]
        assert row[f"{path}_test"] == found["test"]["name"]
        assert float(row[f"{path}_p"]) == found["test"]["p"]
        assert float(row[f"{path}_p_holm"]) == found["test"]["p_holm"]
        assert row[f"{path}_verdict"] == found["verdict"] == "too few"
        won = [row[f"{path}_{word}"] for word in ("lost", "won", "tied")]
        assert won == [str(n) for n in found["standing"].values()]
    total = pair["metrics"]["pipeline.TOTAL.accuracy"]
    assert float(row["mcnemar_p"]) == total["beside"]["p"]


def test_every_metric_that_is_compared_is_one_of_the_scorecard(runs: Path) -> None:
    (pair,) = compared(runs, "recorded")["pairs"]
    card = json.loads((runs / "runs/recorded/scores/1/scorecard.json").read_bytes())
    for side, model in (("a", LARCH), ("b", MOSS)):
        metrics = card["models"][model]["metrics"]
        for path, found in pair["metrics"].items():
            assert metrics[path]["definition"].startswith(found["definition"])
            if found[f"only_{side}"] == found["undefined"] == 0:
                assert found[side] == pytest.approx(metrics[path]["value"], abs=1e-12)


def test_a_model_against_itself_is_undecided_in_everything(runs: Path) -> None:
    (pair,) = compared(runs, "base", f"base:{LEXICAL}", "--interval=percentile")[
        "pairs"
    ]
    for found in pair["metrics"].values():
        assert found["difference"] == 0.0
        assert found["lo"] == -found["hi"]
        assert found["verdict"] == "too few"
        assert found["test"] is None or found["test"]["p_holm"] == 1.0


def test_nothing_is_written_and_no_connection_made(runs: Path) -> None:
    before = bytes_of(runs)
    code = (
        "import socket, sys\n"
        "def refuse(*given): sys.exit('a connection was tried')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from runner.cli.main import exit_code\n"
        "sys.exit(exit_code(['compare', 'base', 'recorded:sample/larch-70b']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=runs,
        env=environment(None),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "avg_paper_score" in done.stdout
    assert bytes_of(runs) == before


def test_the_same_bytes_twice_whatever_the_hash_seed(runs: Path) -> None:
    told = {
        siftlog(
            "compare", "recorded", "--json", cwd=runs, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("0", "1")
    }
    assert len(told) == 1


def test_items_that_differ_most_are_listed(runs: Path) -> None:
    path = "pipeline.TOTAL.accuracy"
    done = siftlog(
        *("compare", "recorded", "--metric", path, "--items", path, "--top=3"), cwd=runs
    )
    *_, first, second, third = done.stdout.splitlines()
    for line in (first, second, third):
        assert line.split()[2] in {"+1.000", "-1.000"}
        assert line.split()[3].startswith("PMC0000")


def test_csv_is_written_where_it_is_asked_for(runs: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    siftlog("compare", "recorded", "--csv", file, "--metric=avg_*", cwd=runs)
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert {row["model_b"] for row in rows} == {MOSS}
    assert "avg_paper_score" in [row["metric"] for row in rows]


def test_settings_are_changed_for_both_sides(runs: Path) -> None:
    plain = compared(runs, "recorded")["pairs"][0]["metrics"]
    strict = compared(runs, "recorded", "--set", "variant_case=keep")
    assert strict["pairs"][0]["metrics"] != plain
    assert not [note for note in strict["notes"] if "settings differ" in note]


def test_what_bears_on_a_comparison_is_said_and_kept_in_the_json(runs: Path) -> None:
    bench = (SAMPLE / "variant_bench.jsonl").read_text().splitlines(keepends=True)
    (runs / "five.jsonl").write_text("".join(bench[:5]))
    inputs = ("--bench=five.jsonl", *INPUTS[2:], "--set=variant_case=keep")
    siftlog("run", JOB, *inputs, "--run-id=five", cwd=runs)
    words = ("base", "five", "--metric=avg_paper_score")
    said = compared(runs, *words)["notes"]
    assert said == [
        "the settings differ: variant_case (fold in base, keep in five).",
        (
            "bench was not the same file for base and five; "
            "where the truth differs, so do the scores."
        ),
    ]
    fewer = siftlog("compare", *words, "--set=max_questions_per_variant=1", cwd=runs)
    told = fewer.stderr.splitlines()
    assert [line.partition(" stored answers are stale")[1] != "" for line in told] == [
        *(True, True, False, False)
    ]
    assert told[2:] == [f"note: {note}" for note in said]
    (runs / "five.jsonl").write_text("".join(bench[:6]))
    changed = compared(runs, *words)["notes"]
    assert "five: bench is not the file that the run was started with." in changed


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("base",), "has one model only, baseline/lexical; name a second run"),
        (("base", "recorded"), "say which to compare as RUN:MODEL"),
        (("recorded:x",), "has no model 'x'; it has: sample/larch-70b"),
        (("recorded", "--metric=nothing"), "No metric 'nothing' can be compared"),
        (("recorded", "--items=nothing"), "'nothing' has no value for each item"),
        (("recorded", "--set=nothing=1"), "nothing"),
        ((), "Name one run or several, as RUN, RUN:MODEL or RUN@N."),
        (("base@7", "base"), "Run base has no scoring 7; its newest is "),
        (("base@1", "base@1", "--set=variant_case=keep"), "name the run without @"),
        (("recorded", "--out=x.csv"), "name their metric with --items PATH"),
        (("recorded", "--plot=x.pdf"), "x.pdf: name it .png or .svg"),
        (("recorded", "--plot=x.png"), "No side has a cost or a latency to draw"),
    ],
)
def test_usage_errors_are_one_sentence_with_the_next_step(
    runs: Path, words: tuple[str, ...], told: str
) -> None:
    done = siftlog("compare", *words, cwd=runs, check=False)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stdout == ""


def test_live_models_and_an_unfinished_run(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", 6)
    with simulated("--job", JOB, cwd=tmp_path) as url:
        asked = ("run", JOB, *corpus, "--model=m1", "--model=m2", f"--base-url={url}")
        siftlog(*asked, "--run-id=live", cwd=tmp_path)
        poor = (*asked, "--run-id=poor", "--price=1,1", "--budget=0.02", "--no-cache")
        assert siftlog(*poor, cwd=tmp_path, check=False).returncode == 4
    done = siftlog("compare", "live", "poor", cwd=tmp_path)
    heads = [line for line in done.stdout.splitlines() if line[:3] in {"A  ", "B  "}]
    assert heads == [
        *("A  live  m1", "B  poor  m1"),
        *("A  live  m2", "B  poor  m2"),
    ]
    assert "note: poor: partial: the run is unfinished." in done.stderr


def test_runs_of_other_jobs_and_jobs_without_items_are_not_compared(
    runs: Path, tmp_path: Path
) -> None:
    env = plugged(tmp_path / "plugins", panel="tests.crash.panel.job:job")
    words = ("panel", "--items=2", "--run-id=cells")
    siftlog("run", *words, "--runs-dir", runs / "runs", cwd=tmp_path, env=env)
    other = siftlog("compare", "base", "cells", cwd=runs, env=env, check=False)
    assert other.returncode == 2
    assert other.stderr == (
        "siftlog: base is a run of paper-investigation and cells is a run of panel; "
        "compare runs of one job.\n"
    )
    same = siftlog("compare", "cells", "cells", cwd=runs, env=env, check=False)
    assert same.returncode == 2
    assert "There is no metric that both sides give item by item" in same.stderr


def test_a_terminal_of_80_columns_shows_whole_rows(runs: Path) -> None:
    with on_terminal(
        ("stty cols 80;", "SIFTLOG", "compare", "recorded", "--interval=percentile"),
        cwd=runs,
    ) as terminal:
        shown = terminal.read_until(b"are needed.").decode()
    lines = shown.splitlines()
    (row,) = [line for line in lines if line.startswith("Paper score  ")]
    assert row.endswith("  too few")
    assert max(map(len, lines)) <= 80
