"""Writes the frame that metrics are computed from, with tokens in place of names.

The member is MessagePack: commitments to all names, in the order of their texts, and
the tree of values. A name in the tree is its place among them, such as `~00000017`:
these are equal and sort as the names did.

Arrays are stored as their bytes, and short integers as long ones: eight bytes of a
number hold a zero, so that no row of numbers looks like a text.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import Field, fields, is_dataclass
from typing import Any, Final, TypeVar, get_origin

import msgspec
import numpy as np
from pydantic import BaseModel, TypeAdapter

from runner.bundle.commitments import HASH_BYTES
from runner.bundle.redaction import TOKEN, Redactor

FRAME: Final = "frame.msgpack"

_ARRAY = 1
"""Extension type of MessagePack."""


class _Encoded(msgspec.Struct, array_like=True, frozen=True):
    """The content of the file."""

    commitments: bytes  #: to the names
    tree: msgspec.Raw


class _EncodedArray(msgspec.Struct, array_like=True, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data: bytes


class _Writer:
    """Turns a frame into a tree that MessagePack has types for.

    Args:
        clear: returns a text that stays.
        name: returns the token of a name.
        visible: settings that stay.
    """

    def __init__(
        self,
        clear: Callable[[str], str],
        name: Callable[[str], str],
        visible: Container[str],
    ) -> None:
        self._clear = clear
        self._name = name
        self._visible = visible

    def tree(self, value: Any, *, stays: bool = False) -> Any:  # noqa: ANN401, PLR0911 - of any frame
        match value:
            case None | bool() | int() | float():
                return value
            case enum.Enum():
                return value.value
            case str():
                return self._clear(value) if stays or not value else self._name(value)
            case np.generic():
                return value.item()
            case np.ndarray():
                return _array(value)
            case BaseModel():
                return self._settings(value)
            case Mapping():
                return self._mapping(value, keys_stay=stays, stay=stays)
            case _ if is_dataclass(value):
                return {
                    field.name: self._field(getattr(value, field.name), field, stays)
                    for field in fields(value)
                    if field.init
                }
            case _:
                return [self.tree(item, stays=stays) for item in _listed(value)]

    def _field(self, value: Any, field: Field[Any], stays: bool) -> Any:  # noqa: ANN401 - of any frame
        if "keys_stay" in field.metadata:
            return self._mapping(value, keys_stay=True, stay=stays)
        return self.tree(value, stays=stays or "stays" in field.metadata)

    def _mapping(
        self, value: Mapping[Any, Any], *, keys_stay: bool, stay: bool
    ) -> dict[Any, Any]:
        return {
            self._key(key, stays=keys_stay): self.tree(item, stays=stay)
            for key, item in value.items()
        }

    def _key(self, key: Any, *, stays: bool) -> Any:  # noqa: ANN401 - of any frame
        if isinstance(key, tuple):
            return tuple(self.tree(part, stays=stays) for part in key)
        return self.tree(key, stays=stays)

    def _settings(self, settings: BaseModel) -> dict[str, Any]:
        """The settings that the scorecard shows."""
        values = settings.model_dump(mode="json")
        return {
            name: self.tree(value, stays=True)
            for name, value in values.items()
            if name in self._visible
        }


class _Names:
    """The names of a frame, whose order is known when all are."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}

    def noted(self, text: str) -> str:
        """Note a name."""
        return self.tokens.setdefault(text, "")

    def number(self) -> None:
        """Make the tokens."""
        self.tokens = {
            text: f"{TOKEN}{place:08d}"
            for place, text in enumerate(sorted(self.tokens))
        }


def _listed(values: Any) -> Iterable[Any]:  # noqa: ANN401 - of any frame
    if isinstance(values, set | frozenset):
        return sorted(values)
    if isinstance(values, Iterable):
        return values
    raise TypeError(f"{type(values).__name__} is no type of a frame")


def _array(values: Any) -> msgspec.msgpack.Ext:  # noqa: ANN401 - an array
    wide = values.astype(np.int64) if values.dtype.kind in "iu" else values
    if wide.dtype.kind not in "bif":
        raise TypeError(f"an array of {wide.dtype} is no type of a frame")
    array = _EncodedArray(dtype=values.dtype.str, shape=wide.shape, data=wide.tobytes())
    return msgspec.msgpack.Ext(_ARRAY, msgspec.msgpack.encode(array))


def encoded_frame(frame: Any, redactor: Redactor, visible: Container[str]) -> bytes:  # noqa: ANN401 - of any job
    """Encode a frame.

    Args:
        frame: of a scoring.
        redactor: of the bundle.
        visible: settings that the scorecard shows.
    """
    redactor.commit.at = "frame"
    names = _Names()

    def clear(text: str) -> str:
        token = redactor.clear(text)
        # in a path, the mark of a token would begin the form of a metric
        return token if token == text else token.removeprefix(TOKEN)

    _Writer(clear, names.noted, visible).tree(frame)
    names.number()
    tree = _Writer(clear, names.tokens.__getitem__, visible).tree(frame)
    commitments = b"".join(
        bytes.fromhex(redactor.item(text).removeprefix(TOKEN)) for text in names.tokens
    )
    return msgspec.msgpack.encode(
        _Encoded(
            commitments=commitments, tree=msgspec.Raw(msgspec.msgpack.encode(tree))
        )
    )


AnyFrame = TypeVar("AnyFrame")


def decoded_frame(content: bytes, frame: type[AnyFrame]) -> AnyFrame:
    """Decode a frame, with a token for each name.

    Raises:
        ValueError: it is something else.
    """
    encoded = msgspec.msgpack.decode(content, type=_Encoded)
    tree = msgspec.msgpack.decode(encoded.tree, ext_hook=_extension)
    return msgspec.convert(tree, frame, dec_hook=_converted)


def _extension(code: int, data: memoryview) -> Any:  # noqa: ANN401 - an array
    if code != _ARRAY:
        raise ValueError(f"it has an extension of type {code}")
    array = msgspec.msgpack.decode(data, type=_EncodedArray)
    dtype = np.dtype(array.dtype)
    if dtype.kind not in "biuf":
        raise ValueError(f"it has an array of {dtype}")
    stored = np.dtype("<i8") if dtype.kind in "iu" else dtype
    return np.frombuffer(array.data, stored).reshape(array.shape).astype(dtype)


def frame_commitments(content: bytes) -> Iterable[bytes]:
    """Return the commitments of a frame's names, in hex."""
    data = msgspec.msgpack.decode(content, type=_Encoded).commitments
    return (
        data[at : at + HASH_BYTES].hex().encode()
        for at in range(0, len(data), HASH_BYTES)
    )


def _converted(wanted: Any, value: Any) -> Any:  # noqa: ANN401 - a type and a value
    """Return settings or an array of a frame."""
    if isinstance(wanted, type) and issubclass(wanted, BaseModel):
        settings = {
            name: TypeAdapter[Any](wanted.model_fields[name].annotation or Any)
            for name in value
            if name in wanted.model_fields
        }
        return wanted.model_construct(
            **{name: of.validate_python(value[name]) for name, of in settings.items()}
        )
    if isinstance(value, np.ndarray):
        return value
    if get_origin(wanted) is Counter and isinstance(value, dict):
        return Counter(value)
    raise ValueError(f"{type(value).__name__} stands where {wanted} should")
