from __future__ import annotations

import json

import msgspec
import pytest

from runner.clients import Secret
from runner.clients.secret import Keyring
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
