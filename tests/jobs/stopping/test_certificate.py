"""A certificate is computed again from events; whatever is changed is named."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jobs.stopping.certificate import encoded
from jobs.stopping.certificate_check import check_certificate
from tests.jobs.stopping.libraries import certified, screened, site

PROVE = "SIFTLOG_PROVE" in os.environ
FLIPS = 1000 if PROVE else 60
EDITS = 100 if PROVE else 15


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a certificate, with the library next to it."""
    folder = tmp_path_factory.mktemp("certified")
    library = site(folder)
    asyncio.run(screened(library, ("ann", "bo")))
    written = asyncio.run(certified(library))
    shutil.copy(folder / "library.ris", written.path.parent)
    return written.path.parent


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "1"))


def problems(folder: Path) -> list[str]:
    return check_certificate(folder / "certificate.json").problems


def test_an_intact_one_is_sound_and_says_what_it_proves(folder: Path) -> None:
    report = check_certificate(folder / "certificate.json")
    assert report.problems == []
    document = json.loads((folder / "certificate.json").read_bytes())
    assert document["recall_at_least"] == report.recall
    assert report.recall is not None
    assert report.recall >= document["target"] == 0.5
    assert document["labelled_by"] == ["ann", "bo"]
    assert "recall at least 0." in report.sentence


def test_any_flipped_byte_is_refused_by_a_sentence_that_names_the_file(
    folder: Path,
) -> None:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    assert len(files) == 7
    chance = random.Random(1)
    for number in range(FLIPS):
        path = files[number % len(files)]
        whole = path.read_bytes()
        place = chance.randrange(len(whole))
        changed = bytearray(whole)
        changed[place] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        found = problems(folder)
        path.write_bytes(whole)
        assert found, (path, place)
        assert path.name in " ".join(found), (path, place, found)
    assert problems(folder) == []


def test_an_edited_label_is_refused_also_where_its_copy_is_hashed_again(
    folder: Path,
) -> None:
    chance = random.Random(2)
    for log in sorted((folder / "labels").glob("*.db")):
        with closing(sqlite3.connect(log)) as conn:
            seqs = [
                seq
                for (seq,) in conn.execute(
                    "SELECT e.seq FROM event e JOIN kind k ON k.id = e.kind "
                    "WHERE k.name = 'label_recorded'"
                )
            ]
        for seq in chance.sample(seqs, min(len(seqs), -(-EDITS // 2))):
            draft = folder.with_name("edited")
            shutil.rmtree(draft, ignore_errors=True)
            shutil.copytree(folder, draft)
            edit(draft / "labels" / log.name, seq)
            assert any(f"labels/{log.name}" in line for line in problems(draft))
            vouch(draft)
            assert any(f"labels/{log.name}" in line for line in problems(draft))


def edit(log: Path, seq: int) -> None:
    """Turn the value of a label over, with the same number of bytes."""
    with closing(sqlite3.connect(log)) as conn, conn:
        for (name,) in conn.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            conn.execute(f"DROP TRIGGER {name}")
        (facts,) = conn.execute(
            "SELECT facts FROM event WHERE seq = ?", [seq]
        ).fetchone()
        turned = facts.replace(b"include", b"\0").replace(b"exclude", b"include")
        turned = turned.replace(b"\0", b"exclude")
        assert turned != facts
        conn.execute("UPDATE event SET facts = ? WHERE seq = ?", (turned, seq))


def vouch(folder: Path) -> None:
    """Hash the copies again, as a forger would."""
    path = folder / "certificate.json"
    document = json.loads(path.read_bytes())
    for one in document["logs"]:
        log = folder / "labels" / one["log"]
        one["sha256"] = hashlib.sha256(log.read_bytes()).hexdigest()
    path.write_bytes(encoded(document))


def change(path: str, value: object) -> Callable[[dict[str, Any]], None]:
    def changed(document: dict[str, Any]) -> None:
        *names, last = path.split(".")
        for name in names:
            document = document[name]
        document[last] = value

    return changed


@pytest.mark.parametrize(
    ("forge", "sentence"),
    [
        (change("target", 0.95), "target is 0.95, and the events give 0.5"),
        (change("recall_at_least", 0.999), "recall_at_least is 0.999"),
        (change("labelled_by", ["cy"]), "labelled_by"),
        (change("code.sha256", "0"), "code.sha256"),
        (change("run", "other"), "hold no plan of a screening"),
        (change("logs", []), "is not part of certificate.json"),
        (change("logs", None), "does not list its label logs"),
        (change("library", None), "does not name the files of its library"),
        (change("more", 1), "more is unknown"),
        (lambda document: document.pop("alpha"), "alpha is missing"),
        (lambda document: document["draws"].pop(), "draws is a list of"),
    ],
)
def test_a_changed_value_is_named(
    folder: Path, forge: Callable[[dict[str, Any]], None], sentence: str
) -> None:
    path = folder / "certificate.json"
    document = json.loads(path.read_bytes())
    forge(document)
    path.write_bytes(encoded(document))
    assert sentence in " ".join(problems(folder))


def test_what_is_missing_is_named(folder: Path) -> None:
    for name in ("library.ris", "order.csv", "certificate.html", "labels/ann.db"):
        aside = folder / "aside"
        (folder / name).rename(aside)
        assert any(name in line and "missing" in line for line in problems(folder))
        aside.rename(folder / name)
