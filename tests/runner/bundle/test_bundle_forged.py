"""Bundles that are whole, with right hashes, and yet do not hold what was recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runner.bundle.manifest import NAME, encoded
from runner.bundle.verify import BundleReport, check
from runner.errors import RunnerError
from store.errors import ignore_progress
from tests.runner.bundle.conftest import Bundled
from tests.runner.bundle.forging import (
    Members,
    contents,
    forged,
    log_changed,
    manifest_of,
    packed,
    told,
)

SCORECARD = "scores/1/scorecard.json"


def _checked(
    bundled: Bundled, tmp_path: Path, change: Callable[[Members], None]
) -> BundleReport:
    return check(forged(bundled.path, tmp_path / "forged.zip", change), ignore_progress)


SWAPPED = (
    "UPDATE event SET seq = -5 WHERE seq = 5",
    "UPDATE event SET seq = 5 WHERE seq = 6",
    "UPDATE event SET seq = 6 WHERE seq = -5",
)


@pytest.mark.parametrize(
    ("statements", "where"),
    [
        (("DELETE FROM event WHERE seq = 5",), "event"),
        (
            ("DELETE FROM event WHERE seq = 5", "DELETE FROM body WHERE seq = 5"),
            "event",
        ),
        (SWAPPED, "event"),
        (("UPDATE event SET ts_us = ts_us + 1 WHERE seq = 7",), "event"),
        (("UPDATE task SET state = 4 WHERE task = 1",), "table task, row 1"),
        (("DROP TABLE chain",), "events"),
        (("UPDATE run SET run_id = 'other'",), "events 1 to "),
    ],
)
def test_a_log_that_was_changed_is_found_and_the_place_is_named(
    bundled: Bundled, tmp_path: Path, statements: tuple[str, ...], where: str
) -> None:
    found = _checked(bundled, tmp_path, log_changed(tmp_path, *statements))
    assert found.faults
    assert found.faults[0].where.startswith(where)
    assert not found.is_rebuilt


def test_a_log_without_its_last_commits_is_not_the_one_that_was_bundled(
    bundled: Bundled, tmp_path: Path
) -> None:
    events = bundled.said["events"]
    cut = f"(SELECT max(last_seq) FROM chain WHERE last_seq < {events})"
    change = log_changed(
        tmp_path,
        f"DELETE FROM event WHERE seq > {cut}",
        f"DELETE FROM body WHERE seq > {cut}",
        f"DELETE FROM mark WHERE seq > {cut}",
        f"DELETE FROM chain WHERE last_seq > {cut}",
    )
    found = _checked(bundled, tmp_path, change)
    assert found.faults
    said = " ".join(f"{fault.where} {fault.message}" for fault in found.faults)
    assert "event" in said or "table mark" in said


def test_what_is_too_much_or_too_little_is_named(
    bundled: Bundled, tmp_path: Path
) -> None:
    members = contents(bundled.path)
    members["inputs/extra.txt"] = b"x"
    del members["run.toml"]
    found = check(packed(tmp_path / "x.zip", members), ignore_progress)
    assert [(fault.where, fault.message) for fault in found.faults] == [
        ("inputs/extra.txt", "does not belong here"),
        ("run.toml", "is missing"),
    ]


def test_a_member_that_is_not_what_the_manifest_says_is_named(
    bundled: Bundled, tmp_path: Path
) -> None:
    members = contents(bundled.path)
    members["scores/1/operations.json"] += b" "
    (fault,) = check(packed(tmp_path / "x.zip", members), ignore_progress).faults
    assert fault.where == "scores/1/operations.json"
    assert fault.message == "is not what bundle.json says"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("member", "where"),
    [
        ("inputs/counted/count.txt", "inputs/counted"),
        ("inputs/tree/tree/deep/a paper.txt", "inputs/deep"),
    ],
)
def test_an_input_that_was_changed_is_found_by_what_the_log_recorded(
    bundled: Bundled, tmp_path: Path, member: str, where: str
) -> None:
    def change(members: Members) -> None:
        members[member] = members[member].upper()

    (fault,) = _checked(bundled, tmp_path, change).faults
    assert (fault.what, fault.where) == ("input", where)
    assert fault.message == "is not what scoring 1 has read"


def test_another_scorecard_is_not_the_one_that_was_recorded(
    bundled: Bundled, tmp_path: Path
) -> None:
    def change(members: Members) -> None:
        members[SCORECARD] = members[SCORECARD].replace(b'"value": 3', b'"value": 4')

    (fault,) = _checked(bundled, tmp_path, change).faults
    assert fault.where == SCORECARD
    assert fault.message == "is not what scoring 1 recorded"


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"head": "0" * 64}, "event"),
        ({"events": 3}, "event"),
        ({"run": "other"}, "event"),
        ({"job": "other"}, "event"),
        ({"digest": "0" * 64}, "scoring 1"),
    ],
)
def test_a_manifest_that_tells_of_another_run_is_found(
    bundled: Bundled, tmp_path: Path, changed: dict[str, object], where: str
) -> None:
    members = contents(bundled.path)
    told(members, **changed)
    (fault,) = check(packed(tmp_path / "x.zip", members), ignore_progress).faults
    assert fault.where.startswith(where)


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"format": 1}', b"\xff"])
def test_a_manifest_that_cannot_be_read_is_named(
    content: bytes, tmp_path: Path
) -> None:
    path = packed(tmp_path / "x.zip", {NAME: content})
    (fault,) = check(path, ignore_progress).faults
    assert fault.where == NAME


def test_a_manifest_that_is_written_otherwise_hides_nothing(
    bundled: Bundled, tmp_path: Path
) -> None:
    members = contents(bundled.path)
    members[NAME] = members[NAME].replace(b'"format"', b'"more": 1, "format"')
    (fault,) = check(packed(tmp_path / "x.zip", members), ignore_progress).faults
    assert fault.message == "is not written as siftlog writes it"


def test_a_bundle_of_a_later_siftlog_asks_for_an_upgrade(
    bundled: Bundled, tmp_path: Path
) -> None:
    members = contents(bundled.path)
    members[NAME] = encoded(replace(manifest_of(members), format=2))
    with pytest.raises(RunnerError, match="upgrade siftlog"):
        check(packed(tmp_path / "x.zip", members), ignore_progress)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (
            (
                "DROP TABLE run",
                f"CREATE VIEW run AS {ENDLESS} SELECT max(i) AS schema_ver FROM n",
            ),
            "the view 'run'",
        ),
        (("CREATE VIEW more AS SELECT 1",), "the view 'more'"),
        (
            ("CREATE TRIGGER t AFTER INSERT ON heartbeat BEGIN DELETE FROM task; END",),
            "the trigger 't'",
        ),
        (("CREATE INDEX i ON task(abs(task))",), "the index 'i'"),
        (("CREATE TABLE g(a, b AS (a + 1))",), "the table 'g'"),
        (("CREATE VIRTUAL TABLE v USING fts5(a)",), "the table 'v'"),
    ],
)
def test_a_log_with_code_of_anothers_making_is_not_read(
    bundled: Bundled, tmp_path: Path, statements: tuple[str, ...], said: str
) -> None:
    found = _checked(bundled, tmp_path, log_changed(tmp_path, *statements))
    assert said in found.faults[0].message
    assert "which siftlog does not make" in found.faults[0].message
    assert found.log is None
    assert not found.is_rebuilt


@pytest.mark.parametrize("looks", [1, 5, 20])
def test_a_check_that_takes_too_long_is_broken_off(
    bundled: Bundled, looks: int
) -> None:
    left = iter(range(looks))

    def is_late() -> bool:
        return next(left, None) is None

    with pytest.raises(RunnerError, match="--time-limit SECONDS"):
        check(bundled.path, ignore_progress, is_late=is_late)
