"""A bundle has the stop certificates of its run, and label logs that runs share."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import re
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from zipfile import ZipFile

import pytest

from runner.bundle import certified
from runner.bundle.disclosure import (
    Disclosure,
    check_disclosure,
    disclose_items,
    read_disclosure,
)
from runner.bundle.manifest import Manifest, RedactedManifest
from runner.bundle.pack import certificate_files, label_logs_of, make_bundle
from runner.bundle.verify import check
from runner.certificates import Stated, certificate_frames
from runner.errors import RunnerError, UsageError
from store.errors import ignore_progress
from store.labels.folder import read_labels
from store.labels.writer import LabelWriter
from store.runs import RunFolder
from tests.commands import siftlog
from tests.runner.bundle.forging import Members, contents, forged
from tests.runner.bundle.redacting import redact
from tests.store.memory_log import FakeClock

CERTIFICATE = "certificates/1/certificate.json"


@dataclass(frozen=True)
class Screened:
    """A library that was screened to a stop, with labels in a shared folder."""

    folder: RunFolder
    shared: Path
    bundle: Path


async def _label(folder: Path, author: str) -> None:
    async with await LabelWriter.open(
        folder, author=author, clock=FakeClock(), owner="x:1", siftlog_version="0"
    ) as writer:
        await writer.record("an item", "include")


@pytest.fixture(scope="module")
def screened(tmp_path_factory: pytest.TempPathFactory) -> Screened:
    cwd = tmp_path_factory.mktemp("screened")
    words = ("--plain", "--author=ann", "--target-recall=0.8", "--seed=5")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO("i\n" * 150))
        siftlog("screen", "sample", *words, "--labels=team", cwd=cwd)
    folder = RunFolder(cwd / "runs/screen-library")
    asyncio.run(_label(folder.labels, "ann"))
    bundle = make_bundle(
        folder,
        None,
        cwd / "shared.zip",
        report=False,
        labels=cwd / "team",
        environ={},
        progress=ignore_progress,
    )
    return Screened(folder=folder, shared=cwd / "team", bundle=bundle.path)


def test_labels_of_both_folders_and_the_certificate_are_packed(
    screened: Screened, tmp_path: Path
) -> None:
    with ZipFile(screened.bundle) as opened:
        names = opened.namelist()
        opened.extractall(tmp_path)
    assert {"labels/ann.db", "labels/ann-2.db", CERTIFICATE} <= {*names}
    assert {name for name in names if name.startswith("certificates/")} == {
        *certificate_files(screened.folder)
    }
    packed = {entry.item for entry in read_labels(tmp_path / "labels").by_field}
    assert "an item" in packed
    assert len(packed) > 100


def test_without_its_folder_shared_labels_are_not_packed(screened: Screened) -> None:
    assert [*label_logs_of(screened.folder, None)] == ["labels/ann.db"]
    with pytest.raises(UsageError, match="has no label log: name another --labels"):
        label_logs_of(screened.folder, screened.folder.scores)


def test_a_bundle_is_verified_with_nothing_else_at_hand(
    screened: Screened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    elsewhere = screened.folder.path.with_name("elsewhere")
    screened.folder.path.rename(elsewhere)
    try:
        assert check(screened.bundle, ignore_progress).is_sound
    finally:
        elsewhere.rename(screened.folder.path)


def _changed_certificate(members: Members) -> None:
    document = json.loads(members[CERTIFICATE])
    document["recall_at_least"] = 0.99
    members[CERTIFICATE] = json.dumps(document, indent=1).encode() + b"\n"


def _of_another_run(members: Members) -> None:
    members[CERTIFICATE] = members[CERTIFICATE].replace(b"screen-library", b"other")


def _without_its_labels(members: Members) -> None:
    del members["certificates/1/labels/ann.db"]


def _changed_label(members: Members) -> None:
    name = "certificates/1/labels/ann.db"
    members[name] = members[name].replace(b'"include"', b'"exclude"', 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_changed_certificate, "recall_at_least is 0.99, and the events give"),
        (_of_another_run, "is of another run"),
        (_without_its_labels, "which certificate.json names, is missing"),
        (_changed_label, "differs from the copy that certificate.json names"),
    ],
)
def test_a_changed_certificate_is_found(
    screened: Screened, tmp_path: Path, change: Callable[[Members], None], message: str
) -> None:
    path = forged(screened.bundle, tmp_path / "x.zip", change)
    assert contents(path) != contents(screened.bundle)
    faults = check(path, ignore_progress).faults
    assert [fault.what for fault in faults] == ["certificate"] * len(faults)
    assert message in " ".join(fault.message for fault in faults)
    assert faults[0].where == "certificates/1/certificate.json"


STATED = "certificates/1/stated.json"


def test_a_certificate_that_its_steps_contradict_is_not_redacted(
    screened: Screened, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: object) -> Stated:
        raise ValueError("draw 1 is not the one of seed 5")

    def other(_: object) -> Stated:
        return {"number": 7}

    for stated, problem in (
        (refused, r"cannot be computed again \(draw 1 is not the one of seed 5\)"),
        (other, "states 1 as its number, and its steps give 7"),
    ):
        frames = replace(certificate_frames(), stated=stated)
        monkeypatch.setattr(certified, "certificate_frames", lambda made=frames: made)
        with pytest.raises(RunnerError, match=f"{problem}: siftlog verify"):
            certified.certificate_contents(screened.folder)


@pytest.fixture(scope="module")
def hidden(screened: Screened) -> Path:
    """The redacted bundle of the same screening."""
    return redact(screened.folder, screened.folder.path.with_name("hidden.zip"))[0].path


def test_a_redacted_bundle_has_the_certificate_in_numbers(
    screened: Screened, hidden: Path
) -> None:
    report = check(hidden, ignore_progress)
    assert report.is_sound
    assert report.redaction is not None
    (stated,) = report.redaction.certificates.values()
    document = json.loads((screened.folder.path / CERTIFICATE).read_bytes())
    assert {**stated} == {name: document[name] for name in stated}
    assert stated["recall_at_least"] >= 0.8
    names = {name for name in contents(hidden) if name.startswith("certificates/")}
    assert names == {STATED, "certificates/1/frame.msgpack"}


def _higher_recall(members: Members) -> None:
    members[STATED] = re.sub(
        rb'"recall_at_least":[\d.]+', b'"recall_at_least":0.99', members[STATED]
    )


def _other_steps(members: Members) -> None:
    name = "certificates/1/frame.msgpack"
    members[name] = members[name].replace(struct.pack("<q", 2), struct.pack("<q", 1), 9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_higher_recall, "recall_at_least is 0.99, and the steps of the screening"),
        (_other_steps, "the steps of the screening give"),
    ],
)
def test_a_changed_certificate_of_a_redacted_bundle_is_found(
    hidden: Path, tmp_path: Path, change: Callable[[Members], None], message: str
) -> None:
    path = forged(hidden, tmp_path / "x.zip", change)
    assert contents(path) != contents(hidden)
    faults = check(path, ignore_progress).faults
    assert {(fault.what, fault.where) for fault in faults} == {
        ("certificate", "certificates/1")
    }
    assert message in faults[0].message


def test_the_author_proves_which_certificate_it_is(
    screened: Screened, hidden: Path, tmp_path: Path
) -> None:
    written = disclose_items(
        screened.folder,
        (),
        (),
        whole=True,
        bundle=hidden,
        secret=None,
        out=tmp_path / "whole.json",
        progress=ignore_progress,
    )
    disclosure = read_disclosure(written.file)
    (opening,) = (of for of in disclosure.openings if of.at == "certificates/1")
    content = (screened.folder.path / CERTIFICATE).read_bytes()
    assert opening.text == hashlib.sha256(content).hexdigest()
    forged_opening = replace(opening, value=b"0" * 64)
    checked = [
        _checked(hidden, replace(disclosure, openings=(of,)))
        for of in (opening, forged_opening)
    ]
    assert checked == [True, False]


def _checked(bundle: Path, disclosure: Disclosure) -> bool:
    reports: list[bool] = []

    def use(folder: Path, manifest: Manifest) -> None:
        assert isinstance(manifest, RedactedManifest)
        reports.append(check_disclosure(disclosure, folder, manifest).is_sound)

    check(bundle, ignore_progress, use=use)
    return reports[0]
