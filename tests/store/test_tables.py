"""Events, bodies and manifests survive being stored."""

from __future__ import annotations

import dataclasses
import typing

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.encoding import Encoding, Packer, event_of, facts_of, unpack
from store.events import KINDS, NAMES, Event, UnknownEvent, kind_of
from store.task import PlannedTask, manifest_bytes, planned_tasks

_TEXT = st.text(max_size=20)
_BY_TYPE: dict[object, st.SearchStrategy[object]] = {
    str: _TEXT,
    int: st.integers(-(2**60), 2**60),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    type(None): st.none(),
}


def _values(hint: object) -> st.SearchStrategy[object]:
    if hint in _BY_TYPE:
        return _BY_TYPE[hint]
    if dataclasses.is_dataclass(hint) or _is_struct(hint):
        return _objects(typing.cast("type", hint))
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if origin is list:
        return st.lists(_values(arguments[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(_TEXT, _values(arguments[1]), max_size=3)
    if origin is tuple:
        return st.tuples(*map(_values, arguments))
    return st.one_of(*map(_values, arguments))


def _objects(of: type) -> st.SearchStrategy[object]:
    hints = typing.get_type_hints(of)
    names: list[str] = [*getattr(of, "__struct_fields__", ())]
    names = names or [field.name for field in dataclasses.fields(of)]
    return st.builds(of, **{name: _values(hints[name]) for name in names})


def _is_struct(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_events_are_frozen_keyword_only_and_stored_without_defaults(kind: str) -> None:
    event = KINDS[kind]
    config = event.__struct_config__
    assert config.frozen
    assert config.omit_defaults
    assert event.__match_args__ == ()  # none by position
    assert event.VERSION >= 1


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_comes_back_as_it_was(kind: str) -> None:
    @given(_objects(KINDS[kind]))
    def check(event: object) -> None:
        typed = typing.cast("Event", event)
        assert NAMES[type(typed)] == kind_of(type(typed)) == kind
        assert event_of(kind, typed.VERSION, facts_of(typed)) == typed

    check()


def test_what_is_not_known_is_kept_as_it_is() -> None:
    facts = b'{"of":"the future"}'
    for kind, version in (("of_the_future", 1), ("run_started", 99)):
        assert event_of(kind, version, facts) == UnknownEvent(
            kind=kind, version=version, facts=facts
        )


def test_facts_that_are_damaged_are_an_error() -> None:
    for facts in (b"", b"{}", b"[]", b'{"task":"one","attempt":1}'):
        with pytest.raises(msgspec.DecodeError):
            event_of("task_completed", 1, facts)


@given(st.binary(max_size=3000), st.integers(1, 3))
def test_bodies_come_back_byte_for_byte(data: bytes, times: int) -> None:
    body = data * times
    encoding, stored = Packer().pack(body)
    assert unpack(encoding, stored, len(body)) == body
    assert len(stored) <= len(body)


def test_only_what_gets_shorter_is_compressed() -> None:
    packer = Packer()
    assert packer.pack(b"a" * 511) == (Encoding.AS_RECEIVED, b"a" * 511)
    assert packer.pack(b"a" * 512)[0] is Encoding.ZSTD
    noise = bytes(range(256)) * 2
    assert packer.pack(noise)[0] in {Encoding.AS_RECEIVED, Encoding.ZSTD}


def test_a_body_that_is_damaged_is_an_error() -> None:
    encoding, stored = Packer().pack(b"a" * 5000)
    for damaged in (stored[:-1], stored[1:], b"", b"x" * 30):
        with pytest.raises(ValueError, match="body"):
            unpack(encoding, damaged, 5000)
    with pytest.raises(ValueError, match="body"):
        unpack(encoding, stored, 4999)


_PLANNED = st.builds(
    PlannedTask,
    stage=st.sampled_from(["a", "b", "ä"]),
    key=_TEXT,
    model=st.sampled_from(["m", "n"]),
    replicate=st.integers(1, 9),
    root=st.integers(1, 10**9),
    skip=st.none() | _TEXT,
    context=st.none() | _TEXT,
    group=st.none() | _TEXT,
)


@given(st.lists(_PLANNED, max_size=20))
def test_a_manifest_comes_back_as_it_was(tasks: list[PlannedTask]) -> None:
    assert planned_tasks(manifest_bytes(tasks)) == tasks


@given(st.binary(max_size=60))
def test_bytes_that_are_no_manifest_are_an_error(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        planned_tasks(b"!" + data)


def test_a_manifest_without_a_field_is_an_error() -> None:
    with pytest.raises(msgspec.DecodeError):
        planned_tasks(b'[{"stage":"ask","key":"k","model":"m","replicate":1}]')


@pytest.mark.parametrize(
    ("data", "length"), [(b"\x28\xb5", 10), (b"", b"x"), ("text", 4), (b"", 1 << 80)]
)
def test_whatever_a_damaged_row_holds_is_no_body(data: object, length: object) -> None:
    with pytest.raises(ValueError, match="decompressed"):
        unpack(Encoding.ZSTD, data, length)  # type: ignore[arg-type]
