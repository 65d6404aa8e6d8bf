"""Of an event only what the table names is left in clear; all else is a token."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from runner.bundle.commitments import RedactionSecret, SaltedCommitter, commitment_of
from runner.bundle.pieces import PIECE, PieceIndex, texts_in
from runner.bundle.redaction import _MAPPINGS, Redactor
from store.encoding import event_of, facts_of
from store.events import KINDS, Entry, kind_of
from store.log.integrity import EventRow
from store.redacted_log import EventContent
from store.results import ItemParts
from tests.replay.every_kind import ENTRIES

BY_KIND = {
    kind_of(type(entry.event)): entry
    for entries in ENTRIES.values()
    for entry in entries
    if isinstance(entry, Entry)
}
"""An event of every kind."""

each_kind = pytest.mark.parametrize("entry", BY_KIND.values(), ids=[*BY_KIND])


def _redactor(note: Any = None) -> Redactor:
    secret = RedactionSecret(run="r", scoring=1, key=bytes(32))
    return Redactor(
        commit=SaltedCommitter(secret, bytes(32), note),
        part=lambda sha256: sha256,
        choices=frozenset({"yes"}),
    )


def _redacted(entry: Entry, redactor: Redactor, seq: int = 7) -> EventContent:
    kind = kind_of(type(entry.event))
    row = EventRow(seq, 1, 1, kind, 1, None, None, None, 0, 0, b"", None)
    return redactor.event(row, EventContent(facts_of(entry.event), entry.payload))


@each_kind
def test_a_redacted_event_is_an_event_of_its_kind(entry: Entry) -> None:
    redacted = _redacted(entry, _redactor())
    event = event_of(kind_of(type(entry.event)), 1, redacted.facts)
    assert type(event) is type(entry.event)
    assert (redacted.payload is None) == (entry.payload is None)


@each_kind
def test_what_stays_is_named_by_the_table(entry: Entry) -> None:
    """Texts that a table does not name are gone, wherever they stand."""
    redactor = _redactor()
    redacted = _redacted(entry, redactor)
    for text in _texts(json.loads(redacted.facts)):
        if text[:1] not in {"~", "{", "["}:
            assert text in redactor.visible


def test_fields_of_a_later_siftlog_do_not_stay() -> None:
    facts = json.loads(facts_of(BY_KIND["attempt_failed"].event)) | {
        "explanation": "a new text",
        "more": {"texts": ["another new text"]},
    }
    for kind in ("attempt_failed", "kind_of_tomorrow"):
        row = EventRow(7, 1, 1, kind, 1, None, None, None, 0, 0, b"", None)
        content = EventContent(json.dumps(facts).encode(), b'{"say": "a new payload"}')
        redacted = _redactor().event(row, content)
        said = redacted.facts + (redacted.payload or b"")
        assert b"new text" not in said
        assert b"new payload" not in said


def test_every_object_whose_names_are_data_is_known() -> None:
    """A mapping that an event has one day must not leave its names in clear."""
    mappings = {
        path
        for event in KINDS.values()
        for path in _mappings(msgspec.inspect.type_info(event), "")
    }
    mappings |= {*_mappings(msgspec.inspect.type_info(ItemParts), "payload")}
    assert mappings <= _MAPPINGS


def _mappings(info: Any, path: str) -> Iterator[str]:
    match info:
        case msgspec.inspect.DictType():
            yield path
            yield from _mappings(info.value_type, f"{path}.*")
        case msgspec.inspect.StructType() | msgspec.inspect.DataclassType():
            for field in info.fields:
                name = f"{path}.{field.encode_name}" if path else field.encode_name
                yield from _mappings(field.type, name)
        case msgspec.inspect.UnionType():
            for one in info.types:
                yield from _mappings(one, path)
        case msgspec.inspect.ListType() | msgspec.inspect.VarTupleType():
            yield from _mappings(info.item_type, f"{path}.*")
        case _:
            pass


def _texts(value: Any) -> Iterator[str]:
    match value:
        case dict():
            yield from _texts([*value.values()])
        case list():
            for item in value:
                yield from _texts(item)
        case str():
            yield value


def test_no_two_values_of_a_log_share_a_salt() -> None:
    salts: dict[bytes, tuple[str, bytes]] = {}
    redactor = _redactor(
        lambda _at, place, salt, value: (
            salts.setdefault(salt, (place, value)) == (place, value)
            or pytest.fail(f"{place} has the salt of {salts[salt]}")
        )
    )
    for seq, entry in enumerate(BY_KIND.values(), 1):
        _redacted(entry, redactor, seq)
    assert len(salts) > 40


def test_a_commitment_depends_on_every_part() -> None:
    parts = ("event/1/payload", bytes(32), b"yes")
    first = commitment_of(*parts)
    assert len(first) == 32
    assert commitment_of(*parts) == first
    others = {
        commitment_of("event/1/payloady", bytes(32), b"es"),
        commitment_of("event/2/payload", bytes(32), b"yes"),
        commitment_of("event/1/payload", b"\1" + bytes(31), b"yes"),
        commitment_of("event/1/payload", bytes(32), b"no"),
    }
    assert len(others - {first}) == 4


def test_a_salt_depends_on_secret_content_and_place() -> None:
    def first(key: bytes, context: bytes, place: str) -> bytes:
        salts: list[bytes] = []
        secret = RedactionSecret(run="r", scoring=1, key=key)
        note = lambda _at, _place, salt, _value: salts.append(salt)  # noqa: E731
        SaltedCommitter(secret, context, note).place(place, b"x")
        return salts[0]

    variants = {
        first(bytes(32), bytes(32), "a"),
        first(b"\1" * 32, bytes(32), "a"),
        first(bytes(32), b"\1" * 32, "a"),
        first(bytes(32), bytes(32), "b"),
    }
    assert len(variants) == 4


def test_a_shared_piece_is_found_wherever_it_is() -> None:
    rng = random.Random(3)
    for _ in range(300):
        piece = rng.randbytes(PIECE).hex()[:PIECE]
        length = rng.choice([PIECE - 1, PIECE])
        short = f"{'x' * rng.randrange(9)}{piece[:length]}{'y' * rng.randrange(9)}"
        long = f"{'a' * rng.randrange(40)}{piece[:length]}{'b' * rng.randrange(40)}"
        index = PieceIndex([short, "z" * 50])
        index.scan(long.encode())
        assert index.shared == ({short} if length == PIECE else set())


def test_texts_are_read_as_replies_hold_them() -> None:
    inner = json.dumps({"quote": 'a "text"\nof two lines'})
    body = {"model": "a-model-of-a-very-long-name", "choices": [{"content": inner}]}
    texts = [*texts_in(json.dumps(body).encode())]
    assert texts == [inner.encode(), b'a "text"\nof two lines']
    assert [*texts_in(b"{broken")] == [b"{broken"]
