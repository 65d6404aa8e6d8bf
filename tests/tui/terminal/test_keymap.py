"""Keys of one's own: what a file may say, and what is said where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.binding import Binding
from textual.dom import DOMNode

from tui.terminal.keymap import (
    KeymapError,
    all_bindings,
    checked,
    kinds,
    printed,
    read_keymap,
)

KNOWN = all_bindings()


def test_every_binding_of_ours_has_an_id() -> None:
    nameless = [
        (kind.__name__, binding.key)
        for kind in kinds(DOMNode)
        for binding in Binding.make_bindings(kind.__dict__.get("BINDINGS", ()))
        if binding.id is None
    ]
    assert not nameless
    assert {"detach", "tasks", "move.down"} <= {bound.id for bound in KNOWN}


def test_what_is_printed_can_be_read_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "keymap.toml"
    path.write_text(printed(KNOWN))
    keymap = read_keymap(path, KNOWN)
    assert set(keymap) == {bound.id for bound in KNOWN}
    for bound in KNOWN:
        assert set(bound.keys) <= set(keymap[bound.id].split(","))


def test_keys_are_named_as_a_person_writes_them() -> None:
    read = {"help": "f1, F", "tasks": {"filter": "ctrl+f"}, "detach": "!"}
    assert checked(read, KNOWN, "k.toml") == {
        "help": "f1,F",
        "tasks.filter": "ctrl+f",
        "detach": "exclamation_mark",
    }


@pytest.mark.parametrize(
    ("read", "said"),
    [
        ({"detatch": "z"}, "k.toml names 'detatch'.*did you mean 'detach'"),
        ({"zzz": "z"}, "no binding is called so: 'siftlog watch --print-keymap'"),
        ({"help": "hyperspace"}, "gives 'help' the key 'hyperspace'.*does not exist"),
        ({"help": "cmd+x"}, "'cmd\\+x'"),
        ({"help": 7}, "the key 7"),
        ({"help": ""}, "the key ''"),
        ({"help": "f1,"}, "does not exist"),
        ({"help": "t"}, "the key 't' to 'help', and 'tasks' has it too"),
        ({"help": "f1", "tasks": "f1"}, "the key 'f1' to 'help', and 'tasks'"),
        ({"tasks.sort": "slash"}, "'tasks.sort', and 'tasks.filter' has it too"),
        ({"tasks.sort": "j"}, "'tasks.sort', and 'move.down' has it too"),
    ],
)
def test_what_cannot_be_followed_is_one_sentence(
    read: dict[str, object], said: str
) -> None:
    with pytest.raises(KeymapError, match=said):
        checked(read, KNOWN, "k.toml")


def test_two_screens_may_use_the_same_key_and_keys_may_be_exchanged() -> None:
    assert checked({"freeze": "s"}, KNOWN, "k") == {"freeze": "s"}
    exchanged = {"metrics.window": "b", "metrics.model": "z"}
    assert checked(exchanged, KNOWN, "k") == exchanged


@pytest.mark.parametrize("text", [b"help = ", b"\xff", None])
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, text: bytes | None
) -> None:
    path = tmp_path / "keymap.toml"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(KeymapError, match="cannot be read"):
        read_keymap(path, KNOWN)
