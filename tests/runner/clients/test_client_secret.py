"""tests.runner.clients.test_client_secret"""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.clients import Secret
from runner.clients.client import Keyring
from runner.errors import UsageError

KEY = "sk-canary/0123456789"


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret(KEY)
    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        repr([secret]),
        repr({"k": secret}),
    ]
    assert not any(KEY in text for text in shown)
    assert secret.reveal() == KEY


def test_a_secret_is_not_encoded_by_accident() -> None:
    for encode in (msgspec.json.encode, json.dumps):
        with pytest.raises(TypeError):
            encode({"key": Secret(KEY)})


def test_a_key_is_masked_in_both_spellings_of_its_slash() -> None:
    secret = Secret(KEY)
    escaped = KEY.replace("/", "\\/")
    assert secret.mask(f"<{KEY}> <{escaped}>") == "<***> <***>"
    assert secret.mask_bytes(f"<{KEY}> <{escaped}>".encode()) == b"<***> <***>"


PRINTABLE = "".join(map(chr, range(33, 127)))
NAMED = {"/": "\\/", '"': '\\"', "\\": "\\\\"}
MUST_ESCAPE = {'"', "\\"}


@st.composite
def _written(draw: st.DrawFn, text: str) -> str:
    """*text* as the inside of a JSON string, each letter escaped in any way or none."""
    written = []
    for letter in text:
        code = f"{ord(letter):04x}"
        ways = [f"\\u{code}", f"\\u{code.upper()}"]
        if letter in NAMED:
            ways.append(NAMED[letter])
        if letter not in MUST_ESCAPE:
            ways.append(letter)
        written.append(draw(st.sampled_from(ways)))
    return "".join(written)


@given(data=st.data(), depth=st.integers(1, 3))
def test_no_way_of_writing_a_key_in_json_brings_it_through(
    data: st.DataObject, depth: int
) -> None:
    # not a backslash at the end: it cannot be told from that before a quote
    key = "sk-" + data.draw(st.text(PRINTABLE, min_size=9, max_size=30)) + "x"
    around = data.draw(st.text(" aé\U0001f600", max_size=5))
    value = f'"{around}{data.draw(_written(key))}{around}"'
    for _ in range(1, depth):
        value = json.dumps(value)
    secret = Secret(key)
    masked = secret.mask_bytes(value.encode())
    assert secret.mask(value).encode() == masked
    assert not secret.is_in(masked)
    assert secret.is_in(value.encode())
    shown = masked.decode()
    for _ in range(depth):
        # still JSON, and nothing that it decodes to holds the key
        assert key not in shown
        shown = msgspec.json.decode(shown, type=str)
    assert key not in shown


def test_what_is_no_key_is_left_as_it_is() -> None:
    secret = Secret(KEY)
    for text in ('{"a": "C:\\\\tmp \\u0073k-canar\\u00e9 \\n"}', "\\x73k", "a\\/b"):
        assert secret.mask(text) == text
        assert secret.mask_bytes(text.encode()) == text.encode()


def test_keys_are_masked_together_and_a_key_within_another_leaves_no_rest() -> None:
    keys = Keyring(Secret(KEY), Secret(f"{KEY}-and-more"))
    assert keys.mask(f"{KEY} {KEY}-and-more") == "*** ***"
    assert keys.mask_bytes(f"{KEY} {KEY}-and-more".encode()) == b"*** ***"
    assert Keyring().mask(KEY) == KEY


def test_the_placeholder_of_a_server_without_keys_damages_no_reply() -> None:
    assert Secret("none").mask("none of the options") == "none of the options"


@pytest.mark.parametrize("value", ["", "a b", "key\n", "\tkey", "schlüssel"])
def test_a_key_that_cannot_stand_in_a_header_is_refused_unseen(value: str) -> None:
    with pytest.raises(UsageError, match="set the variable again") as raised:
        Secret(value)
    assert repr(value) not in str(raised.value)
