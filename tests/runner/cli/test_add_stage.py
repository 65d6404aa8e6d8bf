"""`siftlog add-stage` as a process: forecast, kill, resume without the file, bundle."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests import commands as here
from tests.ledgers import read_ledger
from tests.processes import siftlog, simulated, start, status, until

EXAMPLE = Path(__file__).parents[3] / "docs" / "example"

JUDGE = """\
name = "support"
judges = "question"

[fields.supported]
ask = "Does the text state the number in the reply?"
type = "one-of"
options = ["yes", "no", "unclear"]
"""

PRICE = ("--model", "j", "--price", "2,4")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("participants.py", "trials.jsonl"):
        shutil.copy(EXAMPLE / name, tmp_path)
    (tmp_path / "support.toml").write_text(JUDGE)
    return tmp_path


def test_a_killed_stage_pays_nothing_twice_and_needs_no_file(folder: Path) -> None:
    with simulated("--latency-ms", 60, "--ledger", "l.jsonl", cwd=folder) as url:
        models = ("--model", "a", "--model", "b", "--base-url", url)
        sample = ("participants.py", "--rows", "trials.jsonl", *models)
        run = ("run", *sample, "--price", "1,2", "--run-id", "r", "--no-report")
        siftlog(*run, cwd=folder)
        first = (folder / "runs/r/scores/1/scorecard.json").read_bytes()
        add = ("add-stage", "r", "support.toml", *PRICE, "--concurrency", 2)
        log = (folder / "runs/r/log.db").read_bytes()
        dry = siftlog(*add, "--dry-run", "--json", cwd=folder)
        forecast = json.loads(dry.stdout)
        assert (folder / "runs/r/log.db").read_bytes() == log
        before = len(read_ledger(folder / "l.jsonl"))
        process = start(*add, "--budget", 0.5, "--no-report", cwd=folder)
        until(folder, "r", lambda seen: seen["attempts"]["answered"] >= before + 3)
        process.kill()
        process.wait()
        (folder / "support.toml").unlink()
        siftlog("resume", "r", "--no-report", cwd=folder)
        lines = read_ledger(folder / "l.jsonl")
    assert forecast["requests"] == 12
    assert float(forecast["stages"][0]["spend_usd"]) > 0
    models_called = Counter(line.model for line in lines)
    assert (models_called["a"], models_called["b"]) == (6, 6)
    state = status(folder, "r")
    # only the calls in flight at the kill are made again; the last may not have left
    assert 12 <= models_called["j"] <= 12 + state["attempts"]["unknown"] <= 14
    assert state["tasks"]["completed"] == 24
    assert state["budget_usd"] < 0.51
    second = json.loads((folder / "runs/r/scores/2/scorecard.json").read_bytes())
    for model, scores in json.loads(first)["models"].items():
        metrics = second["models"][model]["metrics"]
        assert scores["metrics"].items() <= metrics.items()
        assert metrics["support.supported.yes"]["n"] == 6
    assert (folder / "runs/r/scores/1/scorecard.json").read_bytes() == first
    # the bundle recomputes the scorecard from the log alone
    siftlog("bundle", "r", "--no-report", cwd=folder)
    siftlog("verify", "r", cwd=folder)
    (folder / "support.toml").write_text(JUDGE)
    again = siftlog(*add, cwd=folder, check=False)
    assert again.returncode == 2
    assert "Run r has the added stage support already" in again.stderr


def test_a_stage_ends_at_its_own_budget(folder: Path) -> None:
    with simulated(cwd=folder) as url:
        run = ("participants.py", "--rows", "trials.jsonl", "--model", "a")
        free = ("--base-url", url, "--price", "1,2", "--no-score")
        siftlog("run", *run, *free, "--run-id", "r", cwd=folder)
        add = ("add-stage", "r", "support.toml", *PRICE, "--no-score")
        stopped = siftlog(*add, "--budget", 0.005, cwd=folder, check=False)
        spent = status(folder, "r")["cost_usd"]
        siftlog("resume", "r", "--budget", 1, "--no-score", cwd=folder)
    assert stopped.returncode == 4
    assert spent < 0.006
    assert status(folder, "r")["tasks"]["completed"] == 12


def test_a_split_run_is_judged_in_a_fork_that_adopts_all_its_answers(
    folder: Path,
) -> None:
    with simulated("--ledger", "l.jsonl", cwd=folder) as url:
        run = ("participants.py", "--rows", "trials.jsonl", "--model", "a")
        free = ("--base-url", url, "--price", "1,2", "--no-score")
        for part in ("0/2", "1/2"):
            siftlog("run", *run, *free, "--run-id", "r", "--shard", part, cwd=folder)
        add = ("support.toml", *PRICE, "--base-url", url, "--no-report")
        refused = siftlog("add-stage", "r", *add, cwd=folder, check=False)
        siftlog("fork", "r", "--as", "f", "--no-score", cwd=folder)
        siftlog("add-stage", "f", *add, cwd=folder)
        models = Counter(line.model for line in read_ledger(folder / "l.jsonl"))
    assert refused.returncode == 2
    assert "siftlog fork r --as NEW" in refused.stderr
    assert models == {"a": 6, "j": 6}
    card = json.loads((folder / "runs/f/scores/1/scorecard.json").read_bytes())
    assert card["models"]["a"]["metrics"]["support.supported.yes"]["n"] == 6
    assert "is sound" in siftlog("verify", "f", cwd=folder).stdout


REPLIES = [
    {"id": item, "prompt": f"How many {item}?", "reply": text, "model": model}
    for item, text, model in [
        ("mice", "12.", "elsewhere/a"),
        ("mice", "None.", "elsewhere/b"),
        ("rats", "7.", "elsewhere/a"),
    ]
]


def test_imported_replies_are_judged_and_explained(tmp_path: Path) -> None:
    lines = "".join(f"{json.dumps(reply)}\n" for reply in REPLIES)
    (tmp_path / "replies.jsonl").write_text(lines)
    (tmp_path / "support.toml").write_text(JUDGE)
    scan = JUDGE.replace("judges", "scans").replace('"support"', '"about"')
    (tmp_path / "about.toml").write_text(scan)
    siftlog("import", "replies.jsonl", "--as", "r", "--no-report", cwd=tmp_path)
    with simulated("--ledger", "l.jsonl", cwd=tmp_path) as url:
        price = (*PRICE, "--base-url", url, "--no-report")
        add = ("add-stage", "r", "support.toml", *price, "--budget", 0.005)
        stopped = siftlog(*add, cwd=tmp_path, check=False)
        siftlog("resume", "r", "--budget", 1, "--no-report", cwd=tmp_path)
        siftlog("add-stage", "r", "about.toml", *price, cwd=tmp_path)
        calls = Counter(line.model for line in read_ledger(tmp_path / "l.jsonl"))
    assert stopped.returncode == 4
    # each reply, then each prompt; nothing of the other tool's models
    assert calls == {"j": 3 + 2}
    scores = tmp_path / "runs/r/scores"
    cards = [
        json.loads((scores / str(number) / "scorecard.json").read_bytes())
        for number in (1, len([*scores.iterdir()]))
    ]
    for model, card in cards[0]["models"].items():
        metrics = cards[1]["models"][model]["metrics"]
        assert card["metrics"].items() <= metrics.items()
        assert {"support.supported.yes", "about.supported.yes"} <= {*metrics}
    page = siftlog("explain", "r", "mice", cwd=tmp_path).stdout
    for title in ("mice, reply of elsewhere/a", "mice, reply of elsewhere/b"):
        assert page.count(title) == 1
    assert "about  j on texts of question" in page
    assert "rats" not in page
    siftlog("verify", "r", cwd=tmp_path)
    found = json.loads(siftlog("regress", "runs", "--json", cwd=tmp_path).stdout)
    # the plan of the files is not checked, that of both added stages is
    assert found["steps"]["plan"]["compared"] == 5
    assert found["steps"]["requests"]["compared"] == 5
    assert not found["differs"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('name = "a"\njudges = "question"\n', "needs the key 'fields'"),
        (JUDGE.replace("judges", "judge"), "did you mean 'judges'"),
        (JUDGE.replace('judges = "question"\n', ""), "judges = STAGE or scans = STAGE"),
        (JUDGE.replace('"question"', '"answer"'), "no stage 'answer'"),
    ],
)
def test_a_wrong_declaration_is_one_sentence(
    folder: Path, text: str, sentence: str
) -> None:
    run = ("run", "participants.py", "--rows", "trials.jsonl", "--no-score")
    here.siftlog(*run, "--run-id", "r", cwd=folder)
    (folder / "support.toml").write_text(text)
    add = here.siftlog("add-stage", "r", "support.toml", cwd=folder, check=False)
    assert add.returncode in {1, 2}
    assert sentence in add.stderr
    assert len(add.stderr.strip().splitlines()) == 1


def test_answers_of_a_gathering_stage_without_groups_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("judge.toml").write_text(JUDGE.replace('"question"', '"abstract"'))
    words = ("--limit", "3", "--run-id", "r", "--no-score")
    assert here.command("run", "screening", *words).code == 0
    assert here.command("add-stage", "r", "judge.toml", "--no-score").code == 0
    stages = {row["stage"]: row for row in status(tmp_path, "r")["stages"]}
    assert (stages["abstract"]["completed"], stages["support"]["completed"]) == (3, 3)
    assert here.command("regress", "runs", "--json").code == 0


def test_the_last_gold_is_used_again_and_the_end_shows_the_new_stage(
    tmp_path: Path,
) -> None:
    here.siftlog("new", "recipe.toml", "--sample", cwd=tmp_path)
    field = ("--type", "integer", "--question", "enrolled=How many?")
    papers = ("--papers", "papers", "--limit", 3)
    here.siftlog("run", "ask", *papers, *field, "--run-id", "r", cwd=tmp_path)
    here.siftlog("score", "r", "--gold", "gold.csv", cwd=tmp_path)
    (tmp_path / "right.toml").write_text(JUDGE.replace("question", "ask"))
    added = here.siftlog("add-stage", "r", "right.toml", cwd=tmp_path)
    assert f"gold {tmp_path / 'gold.csv'}, as scoring 2 was." in added.stderr
    assert "Accuracy, all values" in added.stdout
    assert "supported.yes" in added.stdout
    fork = here.siftlog("fork", "r", "--as", "f", cwd=tmp_path)
    assert "Accuracy, all values" in fork.stdout
    taken = here.siftlog("fork", "r", "--as", "f", cwd=tmp_path, check=False)
    assert "choose another --as." in taken.stderr
    (tmp_path / "gold.csv").rename(tmp_path / "moved.csv")
    resumed = here.siftlog("resume", "r", cwd=tmp_path)
    assert "to use it: siftlog score r --gold FILE" in resumed.stderr


def test_a_gold_that_only_a_scoring_replaced_is_named(tmp_path: Path) -> None:
    here.siftlog("new", "recipe.toml", "--sample", cwd=tmp_path)
    other = tmp_path / "other.csv"
    other.write_text((tmp_path / "gold.csv").read_text().replace("660", "661"))
    field = ("--type", "integer", "--question", "enrolled=How many?")
    papers = ("--papers", "papers", "--limit", 3, "--gold", "gold.csv")
    here.siftlog("run", "ask", *papers, *field, "--run-id", "r", cwd=tmp_path)
    plain = here.siftlog("fork", "r", "--as", "e", cwd=tmp_path)
    here.siftlog("score", "r", "--gold", "other.csv", cwd=tmp_path)
    fork = here.siftlog("fork", "r", "--as", "f", cwd=tmp_path)
    assert "not with" not in plain.stderr
    (line,) = [line for line in fork.stderr.splitlines() if "not with" in line]
    assert line == (
        f"Scored with gold of the run, not with {other}, which scoring 2 had; to use "
        f"that: siftlog score f --gold {other}"
    )
