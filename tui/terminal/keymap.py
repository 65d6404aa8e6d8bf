"""Loads the user's keymap: a file that changes keys of bindings.

Bindings in `tui` are discovered, so no list can be incomplete. Errors in the file are
reported in one sentence before the screen appears.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_config_path
from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import Keys
from textual.screen import Screen

from store.errors import StoreError

_PACKAGE_PREFIX = "tui."
_MODIFIERS = frozenset({"alt", "ctrl", "hyper", "meta", "shift", "super"})
_SIGNS = "".join(map(chr, range(33, 127))).replace(",", "")
_KEY_NAMES = frozenset(
    {key.value for key in Keys}
    # Textual's names of characters: "/" is "slash"
    | {bound.key for bound in Binding.make_bindings((sign, "") for sign in _SIGNS)}
    | {"comma"}  # separates keys; as a key it has only a name
)
_MOST = 100_000
"""Maximum characters of a keymap file."""


class KeymapError(StoreError):
    """The file cannot be used; the message has the reason and the next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyBinding:
    """A binding with its default keys."""

    id: str
    keys: tuple[str, ...]
    about: str
    node_type: type[DOMNode]  #: the application, a screen or a widget

    def meets(self, other: KeyBinding) -> bool:
        """Return whether both may be active at the same time.

        Two screens are never active together; a widget may be on any of them.
        """
        is_related = issubclass(self.node_type, other.node_type) or issubclass(
            other.node_type, self.node_type
        )
        are_screens = all(
            issubclass(binding.node_type, Screen) for binding in (self, other)
        )
        return is_related or not are_screens


def default_path() -> Path:
    """Return the default path of the keymap, in the user's configuration."""
    return user_config_path("siftlog") / "keymap.toml"


def all_bindings() -> list[KeyBinding]:
    """Return every binding with an id, the application's first."""
    for room in ("tui.screens", "tui.control", "tui.widgets", "tui.labelling"):
        package = importlib.import_module(room)
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for name in ("tui.app", "tui.inline", "tui.replay_monitor"):
        importlib.import_module(name)
    bindings = {
        (kind, bound.id): bound for kind in kinds(DOMNode) for bound in _bound(kind)
    }
    return sorted(
        bindings.values(),
        key=lambda bound: (
            not issubclass(bound.node_type, App),
            not issubclass(bound.node_type, Screen),
            bound.node_type.__name__,
        ),
    )


def kinds(kind: type[DOMNode]) -> Iterator[type[DOMNode]]:
    """Yield imported classes of the monitor that can have bindings."""
    if kind.__module__.startswith(_PACKAGE_PREFIX):
        yield kind
    for below in kind.__subclasses__():
        yield from kinds(below)


def _bound(kind: type[DOMNode]) -> Iterator[KeyBinding]:
    keys: dict[str, list[str]] = {}
    about: dict[str, str] = {}
    for binding in Binding.make_bindings(kind.__dict__.get("BINDINGS", ())):
        if binding.id is not None:
            keys.setdefault(binding.id, []).append(binding.key)
            about.setdefault(binding.id, binding.description)
    for name, bound in keys.items():
        yield KeyBinding(id=name, keys=tuple(bound), about=about[name], node_type=kind)


def printed(bindings: Iterable[KeyBinding]) -> str:
    """Format the bindings as a keymap file without changes."""
    same: dict[str, list[KeyBinding]] = {}
    for bound in bindings:
        same.setdefault(bound.id, []).append(bound)
    lines_by_scope: dict[str, list[str]] = {}
    for name, bounds in same.items():
        keys = dict.fromkeys(key for bound in bounds for key in bound.keys)
        setting = f'"{name}" = "{",".join(keys)}"'
        line = f"{setting:<42} # {bounds[0].about or name}"
        lines_by_scope.setdefault(_scope_name(bounds), []).append(line)
    lines = [
        "# Keys of the siftlog monitor. Keep the lines that you change; several keys",
        "# of one binding are separated by commas.",
    ]
    for scope, settings in lines_by_scope.items():
        lines += ["", f"# {scope}", *settings]
    return "\n".join([*lines, ""])


def _scope_name(bounds: list[KeyBinding]) -> str:
    node_type = bounds[0].node_type
    if issubclass(node_type, App):
        return "everywhere"
    if len(bounds) > 1 or not issubclass(node_type, Screen):
        return "lists and texts"
    return f"on the screen {node_type.__name__.removesuffix('Screen')}"


def read_keymap(path: Path, bindings: Iterable[KeyBinding]) -> dict[str, str]:
    """Read a keymap file: keys by the id of their binding.

    Raises:
        KeymapError: it is unreadable, names an unknown binding or key, or assigns a key
            to two bindings.
    """
    try:
        text = path.read_text("utf-8")[:_MOST]
        read = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise KeymapError(
            f"the keymap {path} cannot be read ({error}): fix it, or "
            "create a new one with 'siftlog watch --print-keymap'"
        ) from error
    return checked(read, list(bindings), str(path))


def checked(
    read: Mapping[str, Any], bindings: list[KeyBinding], source: str
) -> dict[str, str]:
    """Validate a keymap.

    Args:
        read: the file's content; nested tables are parts of an id.
        bindings: all bindings.
        source: the file's name in errors.

    Raises:
        KeymapError: it is invalid.
    """
    keymap = {}
    ids = [bound.id for bound in bindings]
    for name, keys in _flat(read):
        if name not in ids:
            near = difflib.get_close_matches(name, ids, n=1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise KeymapError(
                f"the keymap {source} names {name!r}, and no binding is called so: "
                f"{meant}'siftlog watch --print-keymap' lists them"
            )
        keymap[name] = ",".join(_keys_of(name, keys, source))
    _refuse_clashes(keymap, bindings, source)
    return keymap


def _flat(read: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in read.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _keys_of(name: str, keys: object, source: str) -> list[str]:
    key_names = (
        [key.strip() for key in keys.split(",")] if isinstance(keys, str) else []
    )
    for key in key_names or [""]:
        if not _is_key(key):
            raise KeymapError(
                f"the keymap {source} gives {name!r} the key {key or keys!r}, which "
                'does not exist: write it like "f", "F", "ctrl+f", "space" or "j,down"'
            )
    # Textual's names: "?" is "question_mark"
    return [bound.key for bound in Binding.make_bindings([(",".join(key_names), "")])]


def _is_key(key: str) -> bool:
    if len(key) == 1:
        return key.isprintable()
    *modifiers, last = key.split("+")
    return set(modifiers) <= _MODIFIERS and last in _KEY_NAMES


def _refuse_clashes(
    keymap: Mapping[str, str], bindings: list[KeyBinding], source: str
) -> None:
    """Refuse a key of the keymap for two bindings that may be active together.

    Clashes of the defaults are allowed: the front binding gets the key.
    """
    usual: dict[str, set[str]] = {}
    for bound in bindings:
        usual.setdefault(bound.id, set()).update(bound.keys)
    for bound in bindings:
        for key in keymap[bound.id].split(",") if bound.id in keymap else ():
            for other in bindings:
                if other.id == bound.id or not bound.meets(other):
                    continue
                mapped = keymap.get(other.id)
                is_usual = key in usual[bound.id] & usual[other.id]
                if not is_usual and key in (
                    mapped.split(",") if mapped else other.keys
                ):
                    raise KeymapError(
                        f"the keymap {source} gives the key {key!r} to {bound.id!r}, "
                        f"and {other.id!r} has it too: give one of them another key"
                    )
