"""Labels from the command line: recorded, compared, and the truth of a scoring."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from runner.cli.rm import _labels
from store.labels.folder import read_labels
from store.runs import RunFolder
from tests.commands import siftlog

HEADER = "item,value,author,blind,reason\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of screening and one of ask."""
    cwd = tmp_path_factory.mktemp("labels")
    fast = ("--boot-b=20", "--no-report")
    siftlog("run", "screening", "--run-id=s", "--limit=12", *fast, cwd=cwd)
    siftlog("run", "ask", "--run-id=a", *fast, cwd=cwd)
    return cwd


@pytest.fixture
def cwd(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "here")
    return tmp_path / "here"


def label(cwd: Path, *words: str, keys: str) -> CompletedProcess[str]:
    """Label from a script, a key a line."""
    before = sys.stdin
    sys.stdin = io.StringIO("\n".join(keys) + "\n")
    try:
        return siftlog("label", *words, "--plain", cwd=cwd)
    finally:
        sys.stdin = before


def exported(cwd: Path, run: str) -> list[dict[str, str]]:
    done = siftlog("labels", "export", run, cwd=cwd)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_a_script_labels_and_a_later_call_continues(cwd: Path) -> None:
    done = label(cwd, "s", "--author=ann", keys="iezeruq")
    assert "3 labels recorded" in done.stderr
    done = label(cwd, "s", "--author=ann", keys="q")
    assert "3 of 12 are done" in done.stderr
    rows = exported(cwd, "s")
    assert [row["value"] for row in rows] == ["include", "exclude", "unclear"]
    assert [row["blind"] for row in rows] == ["yes", "yes", "no"]
    assert {row["run"] for row in rows} == {"s"}
    shown = siftlog("labels", "s", cwd=cwd).stdout
    assert "3 by 1 person" in shown
    assert "1 withdrawn" in shown
    done = label(cwd, "s", "--author=bob", keys="iq")
    assert "1 label recorded" in done.stderr


def test_an_import_takes_all_rows_or_none(cwd: Path) -> None:
    label(cwd, "s", "--author=ann", keys="iei")
    items = [row["item"] for row in exported(cwd, "s")]
    file = cwd / "more.csv"

    def import_(text: str, *words: str, code: int = 0) -> str:
        file.write_text(HEADER + text)
        done = siftlog("labels", "import", *words, file, cwd=cwd, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    off = import_(f"{items[0]},include,bo,yes,\n{items[1]},maybe,bo,,\n", "s", code=1)
    assert "more.csv row 3: 'maybe' is no value" in off
    assert "row 3: item 'x' is none of the run" in import_(
        f"{items[0]},include,bo,,\nx,include,bo,,\n", "s", code=1
    )
    file.write_text(f"item,field,value\n{items[0]},title,include\n")
    done = siftlog("labels", "import", "s", file, cwd=cwd, check=False)
    assert "row 2: field 'title' is none of the run (give one of ''" in done.stderr
    assert "blind is 'perhaps'" in import_(
        f"{items[0]},include,bo,perhaps,\n", "s", code=1
    )
    assert "in row 2 too" in import_(
        f"{items[0]},include,bo,,\n{items[0]},exclude,bo,,\n", "s", code=1
    )
    assert read_labels(cwd / "runs/s/labels").authors == ["ann"]
    rows = f"{items[0]},include,bo,yes,\n{items[1]},include,bo,no,-table\n"
    assert "Recorded 2 labels" in import_(rows, "s")
    assert "Recorded 0 labels" in import_(rows, "s")
    # an export is read back, also into a folder that no run has
    whole = siftlog("labels", "export", "s", cwd=cwd).stdout
    file.write_text(whole)
    (cwd / "shared").mkdir()
    siftlog("labels", "import", "s", file, "--labels", "shared", cwd=cwd)
    found = read_labels(cwd / "shared")
    assert len(found.current) == 5
    assert max(one.event.reason for one in found.labels) == "-table"
    (disputed,) = found.disputed()
    assert disputed.item == items[1]


def test_people_are_compared_and_an_adjudicator_decides(cwd: Path) -> None:
    label(cwd, "s", "--author=ann", keys="iieeee")
    label(cwd, "s", "--author=bo", keys="iieeei")
    done = siftlog("labels", "agreement", "s", "--models", "--json", cwd=cwd)
    (field,) = json.loads(done.stdout)["fields"]
    assert field["people"] == 2
    assert field["raters"][:2] == ["ann", "bo"]
    assert field["all_people"]["cohen"]["value"] == pytest.approx(2 / 3)
    assert field["latent"]["converged"]
    assert "Gwet's AC1" in siftlog("labels", "agreement", "s", cwd=cwd).stdout
    done = label(cwd, "s", "--author=cy", "--adjudicate", keys="e")
    assert "ann: exclude" in done.stdout
    assert "bo: include" in done.stdout
    labels = read_labels(cwd / "runs/s/labels")
    assert not labels.disputed()
    (decision,) = labels.adjudications
    assert len(decision.event.considered) == 2
    wrong = siftlog(
        *("labels", "adjudicate", "s", "nothing", "--value=include"),
        cwd=cwd,
        check=False,
    )
    assert (wrong.returncode, "no item 'nothing'" in wrong.stderr) == (2, True)


def test_a_draw_is_recorded_before_an_item_is_shown(cwd: Path) -> None:
    words = ("s", "--draw=disagreement", "--n=4", "--seed=3")
    label(cwd, *words, "--author=ann", keys="q")
    labels = read_labels(cwd / "runs/s/labels")
    assert [draw.event.position for draw in labels.draws] == [1, 2, 3, 4]
    assert not labels.labels
    done = label(cwd, *words, "--author=bo", keys="eeee")
    assert "4 of 4 are done" in done.stderr
    labels = read_labels(cwd / "runs/s/labels")
    assert len(labels.draws) == 4  # the same draw for both
    for one in labels.labels:
        draw = labels.drawn[one.about]
        assert (one.event.draw, one.event.probability) == (
            draw.id,
            draw.event.probability,
        )
        assert draw.ts_us < one.ts_us


@pytest.mark.parametrize("run", ["s", "a"])
def test_a_changed_label_is_the_cause_of_another_score(cwd: Path, run: str) -> None:
    keys = "iieeii" if run == "s" else "nnnnnn"
    label(cwd, run, "--author=ann", keys=keys)
    score = ("score", run, "--gold", "labels", "--no-report")
    done = siftlog(*score, "--json", cwd=cwd)
    assert "gold: 6 values from labels of ann" in done.stderr
    first = json.loads(done.stdout)
    again = json.loads(siftlog(*score, "--json", cwd=cwd).stdout)
    assert first["digest"] == again["digest"]
    row = exported(cwd, run)[0]
    value = "exclude" if run == "s" else "undecided"
    siftlog(
        *("labels", "adjudicate", run, row["item"], "--value", value),
        *(("--field", row["field"]) if row["field"] else ()),
        cwd=cwd,
    )
    changed = json.loads(siftlog(*score, "--json", cwd=cwd).stdout)
    assert changed["digest"] != first["digest"]
    difference = json.loads(siftlog("diff", run, "1", "4", "--json", cwd=cwd).stdout)
    assert '"kind": "label"' in json.dumps(difference)
    text = siftlog("diff", run, "3", "4", cwd=cwd).stdout
    assert f"label {'labels' if run == 's' else 'gold'}" in text
    # a bundle has the gold values, and repeats the scoring without the run
    siftlog("bundle", run, "--no-report", "--out", "b.zip", cwd=cwd)
    assert "is sound" in siftlog("verify", "b.zip", cwd=cwd).stdout


def test_no_label_is_no_truth(cwd: Path) -> None:
    done = siftlog("score", "s", "--gold", "labels", cwd=cwd, check=False)
    assert (done.returncode, "siftlog label s" in done.stderr) == (2, True)


def test_verify_finds_a_changed_label_and_rm_names_labels(cwd: Path) -> None:
    label(cwd, "s", "--author=ann", keys="ie")
    assert "1 label log" in siftlog("verify", "s", cwd=cwd).stdout
    assert _labels(RunFolder(cwd / "runs/s")) == "2 labels by 1 person"
    assert _labels(RunFolder(cwd / "runs/a")) == ""
    log = cwd / "runs/s/labels/ann.db"
    lines = siftlog("events", log, "--json", cwd=cwd).stdout.splitlines()
    kinds = [json.loads(line)["event"] for line in lines]
    assert kinds == ["labels_started", "label_recorded", "label_recorded"]
    data = log.read_bytes()
    log.write_bytes(data.replace(b'"include"', b'"exclude"'))
    done = siftlog("verify", "s", cwd=cwd, check=False)
    assert done.returncode == 6
    assert "ann.db" in done.stderr
    log.write_bytes(data)
    done = siftlog("rm", "s", "--yes", cwd=cwd)
    assert "2 labels by 1 person" in done.stdout
