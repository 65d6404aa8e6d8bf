"""Looks for keys in what goes into a bundle, which is made to be given away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from runner.clients.secret import Secret
from runner.errors import RunnerError, UsageError
from runner.options import read_toml
from runner.parameters import headers_of, variable_in

_OVERLAP = 1 << 14
"""Bytes of a piece that are looked at once more with the next: no key is longer."""


def keys(environment: Mapping[str, str], config: Path) -> dict[str, Secret]:
    """The keys of this machine by variable: `*_API_KEY`, and what the run names."""
    names = {name for name in environment if name.endswith("_API_KEY")}
    if config.exists():
        names.update(_variables(read_toml(config)))
    return dict(_set(sorted(names), environment))


def _variables(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _variables(value)
        elif name == "api_key_env":
            yield str(value)
        elif name == "extra_headers":
            found = (variable_in(header) for _, header in headers_of(str(value)))
            yield from (variable for _, variable in filter(None, found))


def _set(
    names: Iterable[str], environment: Mapping[str, str]
) -> Iterator[tuple[str, Secret]]:
    for name in names:
        try:
            yield name, Secret(environment.get(name, ""))
        except UsageError:
            continue  # no endpoint was ever sent that


def without_keys(
    member: str, pieces: Iterable[bytes], keys: Mapping[str, Secret]
) -> Iterator[bytes]:
    """The pieces of a file as they are.

    Raises:
        RunnerError: one of the keys is in them.
    """
    before = b""
    for piece in pieces:
        window = before + piece
        for variable, secret in keys.items():
            if secret.is_in(window):
                raise RunnerError(
                    f"{member} holds the key that {variable} has here: take it out, or "
                    "replace the key where it was issued, before this is given away."
                )
        before = window[-_OVERLAP:]
        yield piece
