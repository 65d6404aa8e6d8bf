"""explain on imports: lists with gold, numbers as they were given, the state again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobs.evidence_retrieval.explain import explain
from jobs.evidence_retrieval.inputs import load
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.testing import MemoryAnswers
from tests.jobs.evidence_retrieval.given_files import (
    CLEAN,
    SAMPLE,
    Rows,
    changed,
    ranked,
    read,
    write_csv,
    write_jsonl,
)


def page(folder: Path, rows: Rows, *items: str, **own: object) -> str:
    """Of an import of *rows* with a ranking of each pool."""
    file = write_jsonl(folder / "r.jsonl", ranked(rows))
    settings = EvidenceSettings.model_validate({"rankings": [str(file)], **own})
    found = read(write_csv(folder / "l.csv", rows), settings=settings)
    return explain(load(settings), MemoryAnswers.of_import(found), items)


def test_lists_are_told_by_place_with_gold_and_what_is_shown(tmp_path: Path) -> None:
    shown = page(tmp_path, CLEAN, "p/A.1")
    assert shown.startswith("p/A.1  imported\ncriterion  A.1\npool       4 sentences")
    assert "\ngold       evidence in 2 sentences: p_1 p_3\n" in shown
    assert "  gold  ranking  shown  uid\n" in shown
    rows = shown.split("uid\n")[1].split("\n\n")[0].split("\n")
    assert [row.split() for row in rows] == [
        ["1", "yes", "p_0"],
        ["gold", "2", "yes", "p_1"],
        ["3", "yes", "p_2"],
        ["gold", "4", "p_3"],
    ]


def test_numbers_stand_as_given_beside_the_state_that_follows(tmp_path: Path) -> None:
    lines = page(tmp_path, CLEAN, "p/A.1").splitlines()
    rows = lines[lines.index("numbers") + 2 :]
    told = dict(re.split(r" {2,}", line.strip()) for line in rows)
    assert told["p"] == "0.5"
    assert told["evidence_precision_at_k"] == "0.333333333333"
    assert told["K"] == "3"
    assert told["state"] == told["state by p and taus"] == "UNCERTAIN"


@pytest.mark.parametrize(
    ("cells", "state", "follows"),
    [
        ({"state": "NEG"}, "NEG", "UNCERTAIN"),
        (
            {"p4_prob_calibrated": 0.12},
            "UNCERTAIN",
            "UNCERTAIN; NEG if p = tau_neg counts as NEG",
        ),
        ({"tau_pos": "inf"}, "UNCERTAIN", "UNCERTAIN"),
        ({"tau_neg": ""}, "UNCERTAIN", "not known: p or a threshold is missing"),
    ],
)
def test_a_state_is_held_against_p_and_thresholds(
    tmp_path: Path, cells: dict[str, object], state: str, follows: str
) -> None:
    lines = page(tmp_path, changed(2, **cells), "p/A.1").splitlines()
    assert lines[-2].split() == ["state", state]
    assert lines[-1].strip().split("  ", 1)[1].strip() == follows


def test_the_run_s_own_sentences_and_criteria_fill_the_page(tmp_path: Path) -> None:
    sentences = [
        {"post_id": post, "sid": n, "sent_uid": f"{post}_{n}", "text": f"Line {n}."}
        for post in ("p", "p_1")
        for n in range(4)
    ]
    pool = write_jsonl(tmp_path / "s.jsonl", sentences)
    criteria = write_csv(
        tmp_path / "c.csv",
        [{"criterion_id": f"A.{n}", "text": f"Criterion {n}."} for n in (1, 2)],
    )
    shown = page(tmp_path, CLEAN, "p/A.1", sentences=pool, criteria=criteria)
    assert "criterion  A.1\n      | Criterion 1.\n" in shown
    assert "\ngold       evidence in 2 sentences: 2 4\n" in shown
    assert "  2  gold        2    yes\n      p_1 | Line 1.\n" in shown


def test_a_file_without_lists_says_that_no_sentences_are_named(realdata: Path) -> None:
    settings = EvidenceSettings(allow_ragged=True)
    found = read(realdata / SAMPLE, settings=settings)
    answers = MemoryAnswers.of_import(found)
    shown = explain(load(settings), answers, ("post_001/A.1", "post_001"))
    assert "\ngold       evidence, sentences unnamed\n" in shown
    assert "\nsentences\n  none are named\n" in shown
    assert "  state                    POS\n" in shown
    assert "  state by p and taus      UNCERTAIN\n" in shown
    last = shown.rstrip("\n").split("\n")[-4:]
    assert [line.split()[:4] for line in last] == [
        ["A.1", "0.8200", "POS", "10"],
        ["A.2", "0.1200", "NEG", "5"],
        ["A.3", "0.6800", "POS", "10"],
        ["A.4", "0.0600", "NEG", "5"],
    ]
