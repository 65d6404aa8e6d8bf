"""`siftlog screen`: a library is screened to a stop, killed processes or not."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import TypeVar

import pytest

from jobs.stopping.screening_fold import in_order
from store.labels.events import (
    ItemDrawn,
    LabelRecorded,
    ScreeningPlanned,
    ScreeningStopped,
)
from store.labels.folder import LabelFolder
from tests.commands import siftlog
from tests.jobs.stopping.scripted import screen, truth
from tests.pages import follow
from tests.reference import DOCS
from tests.test_json import checked

PROVE = "SIFTLOG_PROVE" in os.environ
PROVEN = pytest.mark.skipif(not PROVE, reason="long: it runs in make prove")
KILLS = 20 if PROVE else 1
RECORDS, RELEVANT = 80, 12
T = TypeVar("T")
WORDS = ("lib.ris", "--question=Does warming help frogs?", "--target-recall=0.5")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library and its labels."""
    cwd = tmp_path_factory.mktemp("screened")
    relevant = [n % (RECORDS // RELEVANT) == 1 for n in range(RECORDS)]
    (cwd / "lib.ris").write_text(
        "".join(
            f"TY  - JOUR\nID  - {n}\nTI  - {'warm frogs' if yes else 'stones'} {n}\n"
            f"AB  - a text of record {n}\nER  - \n\n"
            for n, yes in enumerate(relevant)
        )
    )
    with (cwd / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "label"))
        writer.writerows((n, int(yes)) for n, yes in enumerate(relevant))
    return cwd


@pytest.fixture
def cwd(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "here"))


def rank(cwd: Path) -> None:
    """Run the model that ranks, without the cost of another process."""
    words = ("run", "screening", "--library=lib.ris", WORDS[1], "--run-id=screen-lib")
    siftlog(*words, "--no-report", cwd=cwd)


def standing(out: str) -> list[str]:
    """The lines that say how far the screening is and what is proved."""
    return [line for line in out.splitlines() if "recall >=" in line]


def events(cwd: Path, kind: type[T]) -> list[T]:
    logs = LabelFolder(cwd / "runs" / "screen-lib" / "labels")
    logs.poll()
    every = (entry.event for entry in in_order(logs.entries))
    return [event for event in every if isinstance(event, kind)]


def test_kill_9_loses_no_acknowledged_label_and_the_stop_is_certified(
    cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank(cwd)
    answer = truth(cwd / "labels.csv").__getitem__
    told, before = 0, ""
    for number in range(KILLS):
        answered, out = screen(
            cwd,
            *(*WORDS, "--seed=5", "--author=ann"),
            answer=answer,
            kill_after=60 // KILLS,
        )
        told += answered
        assert len(events(cwd, LabelRecorded)) >= told, (number, out)
        assert before in {"", standing(out)[0]}
        before = standing(out)[-1]
    answered, out = screen(cwd, *WORDS, "--author=bo", answer=answer)
    assert standing(out)[0] == before  # the bound after a kill is the one before it
    assert "Stop: the target is reached." in out, out
    (plan,) = events(cwd, ScreeningPlanned)
    assert (plan.seed, plan.target, plan.order) == (5, 0.5, "tfidf")
    labels = events(cwd, LabelRecorded)
    assert len(labels) == told + answered
    folder = cwd / "runs" / "screen-lib" / "certificates" / "1"
    document = json.loads((folder / "certificate.json").read_bytes())
    assert document["labelled"] == len({label.item for label in labels})
    assert document["labelled_by"] == ["ann", "bo"]
    assert document["recall_at_least"] >= 0.5
    _check(cwd, folder)
    _go_on(cwd, monkeypatch)


def _check(cwd: Path, folder: Path) -> None:
    """The run verifies; a changed library, log or certificate does not."""
    done = siftlog("verify", "screen-lib", cwd=cwd)
    assert "1/certificate.json is sound" in done.stdout
    done = siftlog("verify", folder / "certificate.json", "--json", cwd=cwd)
    assert json.loads(done.stdout)["sound"]
    library = cwd / "lib.ris"
    text = library.read_text()
    library.write_text(text.replace("warm", "wary", 1))
    done = siftlog("verify", "screen-lib", cwd=cwd, check=False)
    assert done.returncode == 6
    assert "lib.ris differs" in done.stderr
    done = siftlog("screen", *WORDS, cwd=cwd, check=False)
    assert done.returncode == 1
    assert "lib.ris: the library has changed since run screen-lib began" in done.stderr
    library.write_text(text)
    done = siftlog("screen", *WORDS, "--alpha=0.2", cwd=cwd, check=False)
    assert done.returncode == 2
    assert "--alpha is 0.2, and run screen-lib was planned with 0.05" in done.stderr


def _go_on(cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels after the stop are recorded, and the certificate stays what it is."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("e\ne\nq\n"))
    done = siftlog("screen", *WORDS, "--go-on", "--json", cwd=cwd)
    (row,) = checked(done.stdout)
    assert row["schema"] == "siftlog.screening/1"
    assert (row["answered"], row["stop"]) == (2, True)
    assert "certificates/2" in row["certificate"]
    assert len(events(cwd, ScreeningStopped)) == 2
    done = siftlog("verify", "screen-lib", cwd=cwd)
    assert "1/certificate.json is sound" in done.stdout
    assert "label events have followed" in done.stdout
    assert "2/certificate.json is sound" in done.stdout


@PROVEN
def test_a_resumed_screening_has_the_bound_of_one_that_nothing_interrupted(
    cwd: Path, tmp_path: Path
) -> None:
    answer = truth(cwd / "labels.csv").__getitem__
    whole = Path(shutil.copytree(cwd, tmp_path / "whole"))
    rank(cwd)
    rank(whole)
    screen(whole, *WORDS, "--seed=5", "--author=ann", answer=answer)
    screen(cwd, *WORDS, "--seed=5", "--author=ann", answer=answer, kill_after=30)
    screen(cwd, *WORDS, "--author=ann", answer=answer)
    statuses = []
    for folder in (whole, cwd):
        path = folder / "runs/screen-lib/certificates/1/certificate.json"
        document = json.loads(path.read_bytes())
        names = ("recall_at_least", "reading_order_sha256", "draws_counted", "labelled")
        statuses.append([document[name] for name in names])
    assert statuses[0] == statuses[1]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ((), 2, "Name a library to screen"),
        (("gone.ris",), 2, "gone.ris is no file"),
        (("lib.ris", "--run-id=x"), 2, "--criteria FILE"),
        (("lib.ris", "--target-recall=1.5"), 2, "--target-recall"),
        (("lib.ris", "--alpha=0"), 2, "--alpha"),
        (("bad.ris", "--question=x"), 1, "bad.ris line 1: the record has no end"),
        (("twice.ris", "--question=x"), 1, "twice.ris line 6: the id 1 is that of"),
        (("bare.ris", "--question=x", "--simulate-labels=l"), 1, "has an abstract"),
        (("lib.ris", "--question=x", "--simulate-labels=l"), 2, "l is no file"),
        (
            ("lib.ris", "--question=x", "--simulate-labels=few.csv"),
            1,
            "few.csv: 79 of 80 records have no label",
        ),
        (("--rank-only=gone",), 2, "gone"),
    ],
)
def test_an_error_is_one_sentence_with_the_next_step(
    cwd: Path, words: tuple[str, ...], code: int, sentence: str
) -> None:
    (cwd / "bad.ris").write_text("TY  - JOUR\nID  - 1\nTI  - a\n")
    one = "TY  - JOUR\nID  - 1\nTI  - {}\nER  - \n\n"
    (cwd / "twice.ris").write_text(one.format("a") + one.format("b"))
    (cwd / "bare.ris").write_text(one.format("a"))
    (cwd / "few.csv").write_text("id,label\n1,1\n")
    done = siftlog("screen", *words, cwd=cwd, check=False)
    assert done.returncode == code, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_labels_of_a_file_replace_people(cwd: Path) -> None:
    done = siftlog(
        *("screen", *WORDS, "--simulate-labels=labels.csv", "--seeds=10"),
        *("--order=random", "--json", "--figure-dir=figures"),
        cwd=cwd,
    )
    result = json.loads(done.stdout)
    rules = {rule["name"]: rule for rule in result["rules"]}
    assert result["relevant"] == 14
    assert rules["this rule"]["below_target"] <= 0.2
    assert rules["reading all"]["saved"] == 0
    assert rules["oracle"]["read"] <= rules["this rule"]["read"] <= 1
    assert (cwd / "figures" / "screening-simulation.png").is_file()
    last = result["curve"][-1]
    assert last["bound"] >= result["target"]
    assert not (cwd / "runs").exists()


def test_the_page_of_the_docs_goes_as_it_is_written(tmp_path: Path) -> None:
    printed = follow((DOCS / "screening-to-a-stop.md").read_text(), tmp_path)
    assert "oracle" in printed
    assert "Stop: the target is reached." in printed
    assert "1/certificate.json is sound" in printed


@pytest.mark.timeout(60)  # two commands at once, from their imports on
@pytest.mark.parametrize(
    "authors", [("ann", "bo"), pytest.param(("ann", "ann"), marks=PROVEN)]
)
def test_two_processes_at_once_overwrite_nothing(
    cwd: Path, authors: tuple[str, str]
) -> None:
    rank(cwd)
    answer = truth(cwd / "labels.csv").__getitem__
    asked: list[list[str]] = [[], []]
    both_ask = Barrier(2, timeout=60)

    def person(number: int) -> tuple[int, str]:
        def key(record: str) -> str:
            if not asked[number]:
                both_ask.wait()  # each has a record on the screen
            asked[number].append(record)
            return answer(record)

        words = (*WORDS, "--seed=5", f"--author={authors[number]}")
        return screen(cwd, *words, answer=key)

    with ThreadPoolExecutor(2) as people:
        ends = list(people.map(person, range(2)))
    for _, out in ends:
        assert "Stop: the target is reached." in out, out
    assert asked[0][0] != asked[1][0]
    labels = events(cwd, LabelRecorded)
    given = Counter(
        (author, f"library:{record}", {"i": "include", "e": "exclude"}[answer(record)])
        for author, records in zip(authors, asked, strict=True)
        for record in records
    )
    assert Counter((one.author, one.item, one.value) for one in labels) == given
    # in ranked order nobody reads what another has on the screen or has read
    twice = {*asked[0]} & {*asked[1]}
    assert {f"library:{record}" for record in twice} <= {
        draw.item for draw in events(cwd, ItemDrawn)
    }
    assert len(events(cwd, ScreeningPlanned)) == 1
    done = siftlog("verify", "screen-lib", cwd=cwd)
    assert "2 label logs" in done.stdout
    assert "1/certificate.json is sound" in done.stdout
