"""Declares the options that `watch` and `serve` share, and resolves the theme."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

RATES = ("0.5", "1", "2", "4")


_F = TypeVar("_F", bound=Callable[..., object])


def shared(command: _F) -> _F:
    """Add the options of both commands, which serve passes on to watch."""
    for option in (
        click.option(
            "--runs-dir",
            envvar="SIFTLOG_RUNS_DIR",
            type=click.Path(path_type=Path),
            default=Path("runs"),
            show_default=True,
            help="Folder of runs.",
        ),
        click.option(
            "--rate",
            type=click.Choice(RATES),
            help="Refreshes per second.  [default: 2; 1 over ssh or a slow connection]",
        ),
        click.option(
            "--theme",
            envvar="TEXTUAL_THEME",
            help="Colour theme: dark, light, contrast, monochrome, ansi-dark, "
            "ansi-light, or one of Textual's.",
        ),
        click.argument("run_name", metavar="[RUN]", required=False),
    ):
        command = option(command)
    return command


def resolve_theme(name: str | None) -> str:
    """Return the theme of that name, or the default.

    Raises:
        click.UsageError: there is none.
    """
    from textual.theme import BUILTIN_THEMES

    from tui.render.colours import COLOUR_THEMES, DARK, MONOCHROME

    if name is None:
        return (MONOCHROME if os.environ.get("NO_COLOR") else DARK).name
    short = {
        palette.name.removeprefix("siftlog-"): palette.name for palette in COLOUR_THEMES
    }
    theme_name = short.get(name, name)
    if theme_name in {*short.values(), *BUILTIN_THEMES}:
        return theme_name
    names = ", ".join([*short, *sorted(BUILTIN_THEMES)])
    raise click.UsageError(
        f"There is no theme {name!r} (--theme, or TEXTUAL_THEME in the environment). "
        f"There are {names}."
    )
