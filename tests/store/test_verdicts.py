"""Verdicts of a scoring: what is read back, also from files of older siftlogs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from store.errors import QueryError
from store.query import parse_query
from store.verdicts import (
    OUTCOMES,
    Score,
    StoredVerdict,
    all_verdicts,
    equal_verdicts,
    latest_verdicts,
    outcome_tasks,
    read_scores,
    read_tasks,
    write_verdicts,
)
from tests.replacing import replace

FIRST = StoredVerdict(task=1, value="a", expected="a", correct=True, rule="r")
VERDICTS = [
    FIRST,
    StoredVerdict(
        task=2, value="b", expected="a", correct=False, rule="r", is_grounded=False
    ),
    StoredVerdict(
        task=3, value="c", expected="", correct=None, rule="r", is_grounded=True
    ),
    StoredVerdict(
        task=3, value="d", expected="", correct=None, rule="r", is_grounded=False
    ),
]


def test_verdicts_come_back_with_what_is_known_of_their_quotes(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.db"
    write_verdicts(path, VERDICTS)
    assert list(all_verdicts(path)) == VERDICTS
    found = {name: list(read_tasks(path, name)) for name in OUTCOMES}
    assert found == {"right": [1], "wrong": [2], "ungrounded": [2, 3]}
    assert read_scores(path, [3])[3] == Score(
        verdicts=2, judged=0, right=0, value="c", rule="r", ungrounded=1
    )


def test_verdicts_are_equal_in_their_order_whatever_is_known_of_quotes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "verdicts.db"
    write_verdicts(path, VERDICTS)
    assert equal_verdicts(path, VERDICTS) == 4
    other = replace(VERDICTS[1], is_grounded=None)
    assert equal_verdicts(path, [FIRST, other, *VERDICTS[2:]]) == 4
    wrong = replace(VERDICTS[1], correct=True)
    for changed in (
        [FIRST, wrong, *VERDICTS[2:]],
        VERDICTS[::-1],
        VERDICTS[:3],
        [*VERDICTS, FIRST],
        [],
    ):
        assert equal_verdicts(path, changed) is None


def test_a_file_of_an_older_siftlog_knows_nothing_of_quotes(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "CREATE TABLE verdict(task INTEGER NOT NULL, value TEXT NOT NULL, "
            "expected TEXT NOT NULL, correct INTEGER, rule TEXT NOT NULL) STRICT"
        )
        db.execute("INSERT INTO verdict VALUES (1, 'a', 'a', 1, 'r')")
        db.commit()
    assert list(all_verdicts(path)) == [FIRST]
    assert list(read_tasks(path, "ungrounded")) == []
    assert list(read_tasks(path, "right")) == [1]


def test_the_newest_scoring_beside_a_log_is_read_and_a_damaged_one_is_empty(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log.db"
    assert latest_verdicts(log) is None
    assert outcome_tasks(log, "wrong") == "[]"
    for number in (9, 10):
        folder = tmp_path / "scores" / str(number)
        folder.mkdir(parents=True)
        write_verdicts(folder / "verdicts.db", VERDICTS[: number - 8])
    (tmp_path / "scores" / "draft").mkdir()
    assert outcome_tasks(log, "wrong") == "[2]"
    (tmp_path / "scores" / "10" / "verdicts.db").write_bytes(b"damaged" * 99)
    assert outcome_tasks(log, "wrong") == "[]"


def test_an_outcome_that_does_not_exist_gets_the_nearest_name() -> None:
    with pytest.raises(QueryError, match="did you mean 'ungrounded'"):
        parse_query("outcome:ungronded")
