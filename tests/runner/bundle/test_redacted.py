"""A redacted bundle holds no text, and proves each text that its author opens.

SIFTLOG_PROVE tries a thousand disclosures and a thousand forged ones; the suite, few.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import zstandard

from runner.bundle.commitments import Opening, RedactionSecret
from runner.bundle.disclosure import (
    WHAT,
    Discloser,
    Disclosure,
    check_disclosure,
    disclose_items,
    read_disclosure,
)
from runner.bundle.manifest import NAME, RedactedManifest, decoded, encoded
from runner.bundle.pieces import PIECE
from runner.bundle.recorded import RecordedValues
from runner.bundle.redacted_verify import RedactionReport, checked
from runner.bundle.verify import check
from runner.errors import RunnerError, UsageError
from runner.score.repeat import rescorer
from store.database import open_reader
from store.errors import ignore_progress
from tests.processes import siftlog
from tests.runner.bundle.conftest import Bundled, made
from tests.runner.bundle.forging import contents, forged, log_changed, packed
from tests.runner.bundle.redacting import Redacted, redact, redacted_run

TRIALS = 1000 if "SIFTLOG_PROVE" in os.environ else 60
SCORES = "scores/1"


@pytest.fixture(scope="module")
def redacted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redacted]:
    with redacted_run(tmp_path_factory.mktemp("redacted")) as made:
        yield made


def _decompressed(path: Path) -> Iterator[tuple[str, bytes]]:
    """Every member of a bundle, and every body in its logs."""
    zstd = zstandard.ZstdDecompressor()
    for name, content in contents(path).items():
        yield name, content
        if name == "log.db" or name.startswith("labels/"):
            file = path.with_suffix(".looked-at")
            file.write_bytes(content)
            with closing(sqlite3.connect(file)) as log:
                for table in ("body", "blob"):
                    for (data,) in log.execute(f"SELECT data FROM {table}"):
                        is_packed = data[:4] == b"\x28\xb5\x2f\xfd"
                        size = 1 << 24
                        yield (
                            f"{name}, {table}",
                            zstd.decompress(data, max_output_size=size)
                            if is_packed
                            else data,
                        )
            file.unlink()


def _pieces(texts: tuple[str, ...]) -> set[bytes]:
    """Every piece of some texts, as they are and as JSON writes them."""
    forms = {
        form.encode()
        for text in texts
        for form in (
            text,
            json.dumps(text)[1:-1],
            json.dumps(text, ensure_ascii=False)[1:-1],
            json.dumps(json.dumps(text))[3:-3],
        )
    }
    return {
        form[at : at + PIECE] for form in forms for at in range(len(form) - PIECE + 1)
    }


def _hits(path: Path, pieces: set[bytes]) -> list[tuple[str, bytes]]:
    return [
        (name, content[at : at + PIECE])
        for name, content in _decompressed(path)
        for at in range(len(content) - PIECE + 1)
        if content[at : at + PIECE] in pieces
    ]


def test_no_piece_of_any_text_is_in_a_redacted_bundle(redacted: Redacted) -> None:
    pieces = _pieces(redacted.texts)
    assert len(pieces) > 5000
    assert not _hits(redacted.path, pieces)


@pytest.fixture(scope="module")
def ordinary(redacted: Redacted) -> Path:
    """The bundle of the same scoring with all texts."""
    return made(redacted.folder, redacted.unpacked.with_name("whole.zip")).path


def test_an_ordinary_bundle_is_full_of_them(redacted: Redacted, ordinary: Path) -> None:
    names = {name for name, _ in _hits(ordinary, _pieces(redacted.texts))}
    assert {"inputs/papers/papers.jsonl", f"{SCORES}/scorecard.json", "log.db"} <= names
    assert any(name.startswith("labels/") for name in names)


def test_no_hash_without_a_salt_could_confirm_a_guess(redacted: Redacted) -> None:
    with open_reader(redacted.folder.log) as reader:
        hashes = {bytes(row[0]) for row in reader.execute("SELECT sha256 FROM blob")}
        hashes |= {bytes(row[0]) for row in reader.execute("SELECT h FROM chain")}
    hashes |= {hashlib.sha256(text.encode()).digest() for text in redacted.texts}
    hashes.add(
        hashlib.sha256(
            (redacted.folder.scores / "1/scorecard.json").read_bytes()
        ).digest()
    )
    for name, content in _decompressed(redacted.path):
        for sha256 in hashes:
            assert sha256 not in content, name
            assert sha256.hex().encode() not in content, name


def test_the_scorecard_is_the_same_but_for_texts(redacted: Redacted) -> None:
    before = (redacted.folder.scores / "1/scorecard.json").read_text()
    after = (redacted.unpacked / SCORES / "scorecard.json").read_text()
    assert re.sub(r"~[0-9a-f]{64}", "", after) != after
    (metric,) = json.loads(after)["models"]["baseline/lexical"]["metrics"].values()
    (original,) = json.loads(before)["models"]["baseline/lexical"]["metrics"].values()
    changed = {name for name in metric if metric[name] != original[name]}
    assert changed == {"note"}
    found = check(redacted.path, ignore_progress)
    assert found.is_sound
    assert found.redaction is not None
    assert (found.redaction.metrics, found.redaction.recomputed) == (1, 1)
    assert found.redaction.verdicts == 11


def test_labels_and_verdicts_show_choices_alone(redacted: Redacted) -> None:
    lines = (redacted.unpacked / SCORES / "verdicts.jsonl").read_text().splitlines()
    answers = {json.loads(line)[1] for line in lines}
    assert {0, 1} < answers
    values = json.loads((redacted.unpacked / SCORES / "values.json").read_bytes())
    assert values["choices"] == {"0": "exclude", "1": "include"}
    assert {a for a in answers if str(a)[:1] != "~"} == {0, 1}
    with closing(sqlite3.connect(redacted.unpacked / "labels/1.db")) as log:
        values = [
            json.loads(facts)["value"]
            for (facts,) in log.execute("SELECT facts FROM event")
            if b'"value"' in facts
        ]
    assert values[0] == "include"
    assert values[1].startswith("~")


@pytest.mark.usefixtures("installed")
def test_a_scorecard_without_texts_keeps_its_bytes(
    bundled: Bundled, tmp_path: Path
) -> None:
    folder = bundled.copied(tmp_path)
    bundle, _ = redact(folder)
    members = contents(bundle.path)
    card = (folder.scores / "1/scorecard.json").read_bytes()
    assert members[f"{SCORES}/scorecard.json"] == card
    assert sorted(members) == [
        "bundle.json",
        "log.db",
        f"{SCORES}/scorecard.json",
        f"{SCORES}/values.json",
        f"{SCORES}/verdicts.jsonl",
    ]


def test_the_same_secret_gives_the_same_bytes_and_another_one_no_commitment(
    redacted: Redacted, tmp_path: Path
) -> None:
    again, _ = redact(redacted.folder, tmp_path / "a.zip", redacted.secret)
    assert again.path.read_bytes() == redacted.path.read_bytes()
    other, secret = redact(redacted.folder, tmp_path / "b.zip")
    assert secret.stat().st_mode & 0o077 == 0
    tokens = re.compile(rb"~([0-9a-f]{64})")
    before, after = (
        {t for _, content in _decompressed(path) for t in tokens.findall(content)}
        for path in (redacted.path, other.path)
    )
    assert len(before) == len(after)
    assert not before & after


def test_a_secret_is_never_replaced_and_serves_one_scoring(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    first = RedactionSecret.at(path, "r", 1)
    assert RedactionSecret.at(path, "r", 1) == first
    assert first.key.hex() not in repr(first)
    with pytest.raises(UsageError, match="is the secret of scoring 1 of r"):
        RedactionSecret.at(path, "r", 2)
    path.write_text("{}")
    with pytest.raises(UsageError, match="is no secret of a redacted bundle"):
        RedactionSecret.at(path, "r", 1)


@pytest.fixture(scope="module")
def discloser(redacted: Redacted) -> Iterator[Discloser]:
    with rescorer(redacted.folder) as run, open_reader(redacted.folder.log) as reader:
        yield Discloser(
            run, reader, redacted.manifest, RedactionSecret.read(redacted.secret)
        )


def _faults(redacted: Redacted, disclosure: Disclosure) -> list[str]:
    return check_disclosure(disclosure, redacted.unpacked, redacted.manifest).problems


def test_what_the_author_opens_is_proven_and_what_is_forged_is_not(
    redacted: Redacted, discloser: Discloser
) -> None:
    rng = random.Random(7)
    every = discloser.disclosure(redacted.keys, WHAT, whole=True)
    assert not _faults(redacted, every)
    assert len(every.openings) >= 50
    proven = 0
    for _ in range(TRIALS):
        what = rng.sample(("text", "prompt", "reply"), rng.randint(1, 3))
        chosen = rng.sample(redacted.keys, rng.randint(1, 3))
        disclosure = discloser.disclosure(chosen, what, whole=rng.random() < 0.1)
        report = check_disclosure(disclosure, redacted.unpacked, redacted.manifest)
        assert report.is_sound
        assert {task.item for task in report.tasks} <= {*chosen}
        proven += 1
    refused = 0
    for _ in range(TRIALS):
        opening = rng.choice(every.openings)
        forgery = _forgery(rng, opening, every.openings)
        disclosure = replace(every, openings=(forgery,))
        assert _faults(redacted, disclosure), forgery
        refused += 1
    assert (proven, refused) == (TRIALS, TRIALS)


def _forgery(
    rng: random.Random, opening: Opening, others: tuple[Opening, ...]
) -> Opening:
    """An opening that claims something else than the author committed to."""
    other = rng.choice(
        [
            one
            for one in others
            if one.value != opening.value and one.place != opening.place
        ]
    )
    value = bytearray(opening.value)
    value[rng.randrange(len(value))] ^= 1 << rng.randrange(8)
    longer = opening.value + rng.randbytes(rng.randint(1, 9))
    salt = bytearray(opening.salt)
    salt[rng.randrange(len(salt))] ^= 1 << rng.randrange(8)
    choices = [
        replace(opening, value=bytes(value)),
        replace(opening, value=longer),
        replace(opening, value=opening.value[:-1]),
        replace(opening, salt=bytes(salt)),
        replace(opening, salt=rng.randbytes(32)),
        replace(opening, salt=other.salt),
        replace(opening, value=other.value),
        replace(opening, place=other.place),
        replace(opening, at="event/1"),
        replace(opening, at=f"event/{10**6}"),
        replace(
            opening, at=rng.choice(["", "x/1", "labels/9.db/event/1", "verdict/0"])
        ),
        # what belongs to the salt, the place or the value is told apart
        replace(
            opening,
            place=opening.place + opening.value[:1].decode("latin-1"),
            value=opening.value[1:],
        ),
    ]
    return rng.choice(choices)


def test_a_reply_is_not_proven_at_another_event(
    redacted: Redacted, discloser: Discloser
) -> None:
    disclosure = discloser.disclosure(redacted.keys, ("reply",), whole=False)
    replies = [o for o in disclosure.openings if o.place.endswith("/payload")]
    assert len(replies) > 9
    first, second = replies[:2]
    moved = replace(first, at=second.at)
    assert _faults(redacted, replace(disclosure, openings=(moved,)))


def test_an_item_opens_nothing_of_others(
    redacted: Redacted, discloser: Discloser
) -> None:
    key, *others = redacted.keys
    disclosure = discloser.disclosure([key], (), whole=False)
    text = disclosure.as_json()
    assert key in text
    assert not any(other in text for other in others)
    assert RedactionSecret.read(redacted.secret).key.hex() not in text


def test_a_reader_asks_for_a_task_by_its_number(
    redacted: Redacted, discloser: Discloser
) -> None:
    disclosure = discloser.disclosure([], (), whole=False, tasks=[3])
    (task,) = check_disclosure(disclosure, redacted.unpacked, redacted.manifest).tasks
    assert (task.task, task.item, task.replies) == (3, redacted.keys[2], 1)
    assert task.parts == task.of_parts == 3
    with pytest.raises(UsageError, match="has no task 99: siftlog tasks r lists"):
        discloser.disclosure([], (), whole=False, tasks=[99])
    with pytest.raises(UsageError, match="has no item 'unheard of'"):
        discloser.disclosure(["unheard of"], (), whole=False)


def test_the_original_scorecard_and_the_end_of_the_log_can_be_opened(
    redacted: Redacted, discloser: Discloser
) -> None:
    disclosure = discloser.disclosure([], (), whole=True)
    assert not _faults(redacted, disclosure)
    values = {opening.place: opening.value for opening in disclosure.openings}
    card = (redacted.folder.scores / "1/scorecard.json").read_bytes()
    assert values["bundle/scorecard"] == card
    with open_reader(redacted.folder.log) as reader:
        ((link,),) = reader.execute(
            "SELECT h FROM chain ORDER BY last_seq DESC LIMIT 1"
        ).fetchall()
    assert values["bundle/log"] == bytes(link).hex().encode()


def test_commands_disclose_and_verify(redacted: Redacted, tmp_path: Path) -> None:
    out = tmp_path / "d.json"
    written = disclose_items(
        redacted.folder,
        [redacted.keys[0]],
        (),
        whole=False,
        bundle=None,
        secret=None,
        out=out,
        progress=ignore_progress,
    )
    assert (written.bundle, written.file) == (redacted.path, out)
    # no job, no run and no secret are at hand here
    words = ("verify", redacted.path, "--disclosure", out)
    done = siftlog(*words, cwd=tmp_path)
    assert "is sound" in done.stdout
    assert "redacted, with" in done.stdout
    assert redacted.keys[0] in done.stdout
    fields = json.loads(out.read_text())
    fields["openings"][0]["text"] += "?"
    out.write_text(json.dumps(fields))
    done = siftlog(*words, cwd=tmp_path, check=False)
    assert done.returncode == 6
    assert "the bundle does not hold its commitment" in done.stderr


def test_a_disclosure_is_of_one_bundle(
    redacted: Redacted, discloser: Discloser, tmp_path: Path
) -> None:
    disclosure = discloser.disclosure([redacted.keys[0]], (), whole=False)
    other = replace(disclosure, head="0" * 64)
    (fault,) = _faults(redacted, other)
    assert fault.startswith("it is of another bundle: of scoring 1 of run r, whose log")
    path = tmp_path / "d.json"
    path.write_text(disclosure.as_json())
    assert read_disclosure(path) == disclosure
    for content in ("", "[]", "{}", '{"schema": "siftlog.disclosure/2"}'):
        path.write_text(content)
        with pytest.raises(UsageError, match="is no disclosure"):
            read_disclosure(path)


def test_the_wrong_secret_opens_nothing(redacted: Redacted, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    RedactionSecret.at(other, "r", 1)
    with pytest.raises(RunnerError, match=r"other.json does not open .* \(opening 1"):
        disclose_items(
            redacted.folder,
            [redacted.keys[0]],
            (),
            whole=False,
            bundle=redacted.path,
            secret=other,
            out=tmp_path / "d.json",
            progress=ignore_progress,
        )
    assert not (tmp_path / "d.json").exists()


def _rewritten(redacted: Redacted, path: Path, name: str, content: bytes) -> list[str]:
    """The faults of the bundle with another member, by somebody who knows the form."""
    members = contents(redacted.path)
    members[name] = content
    manifest = decoded(members[NAME])
    assert isinstance(manifest, RedactedManifest)
    listed = tuple(
        replace(
            member,
            size=len(members[member.name]),
            sha256=hashlib.sha256(members[member.name]).hexdigest(),
        )
        for member in manifest.members
    )
    members[NAME] = encoded(replace(manifest, members=listed))
    found = check(packed(path, members), ignore_progress)
    return [f"{fault.where}: {fault.message}" for fault in found.faults]


def test_values_that_give_another_metric_are_refused(
    redacted: Redacted, tmp_path: Path
) -> None:
    name = f"{SCORES}/values.json"
    content = contents(redacted.path)[name]
    values = msgspec.json.decode(content, type=RecordedValues)
    (metric,) = values.metrics
    metric.first[0] = 1.0 - (metric.first[0] or 0.0)
    path = tmp_path / "x.zip"
    faults = _rewritten(redacted, path, name, msgspec.json.encode(values))
    assert faults == [
        f"{name}, accuracy of baseline/lexical: gives another number than the scorecard"
    ]
    del metric.first[0]
    (fault,) = _rewritten(redacted, path, name, msgspec.json.encode(values))
    assert "columns of different lengths" in fault


def test_verdicts_about_no_task_and_texts_in_the_log_are_refused(
    redacted: Redacted, tmp_path: Path
) -> None:
    name = f"{SCORES}/verdicts.jsonl"
    line = b"[99,null,null,true,null,null,false]\n"
    (fault,) = _rewritten(redacted, tmp_path / "x.zip", name, line)
    assert "is about task 99, which has no answer" in fault
    members = contents(redacted.path)
    card = members[f"{SCORES}/scorecard.json"].replace(b'"n": 11', b'"n": 12')
    (fault,) = _rewritten(
        redacted, tmp_path / "x.zip", f"{SCORES}/scorecard.json", card
    )
    assert "is not what scoring 1 recorded" in fault
    change = log_changed(tmp_path, "UPDATE body SET data = x'7b7d' WHERE seq > 9")
    changed = forged(redacted.path, tmp_path / "y.zip", change)
    assert not check(changed, ignore_progress).is_sound


@pytest.mark.parametrize("card", [b"[]", b"{}", b'{"models": 1}', b"\xff", b"{"])
def test_a_scorecard_that_is_none_is_a_fault(
    redacted: Redacted, tmp_path: Path, card: bytes
) -> None:
    members = contents(redacted.path)
    manifest = decoded(members[NAME])
    assert isinstance(manifest, RedactedManifest)
    digest = hashlib.sha256(card).hexdigest()
    folder = tmp_path / "unpacked"
    for name, content in members.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / SCORES / "scorecard.json").write_bytes(card)
    faults = [*checked(folder, replace(manifest, digest=digest), RedactionReport())]
    assert [fault.what for fault in faults] == ["scorecard"]


def test_no_ordinary_bundle_is_disclosed(
    redacted: Redacted, ordinary: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is not redacted: it holds every text"):
        disclose_items(
            redacted.folder,
            [redacted.keys[0]],
            (),
            whole=False,
            bundle=ordinary,
            secret=redacted.secret,
            out=tmp_path / "d.json",
            progress=ignore_progress,
        )
