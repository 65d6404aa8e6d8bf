"""The public surface of the package cannot drift."""

from __future__ import annotations

import store


def test_the_public_names_are_sorted_and_are_all_there_is() -> None:
    public = {name for name in vars(store) if not name.startswith("_")}
    modules = {name for name in public if type(vars(store)[name]).__name__ == "module"}
    assert store.__all__ == sorted(public - modules - {"annotations"})
